package stage

import "golang.org/x/sys/unix"

// ProxyPort is the port of 127.0.0.1 in the cage at which its proxy listens.
const ProxyPort = 3128

// listen opens the proxy's socket in the network namespace, which has nothing
// else, and hands it to the host: no process in the cage carries bytes, and no
// socket of the cage leads out.
func listen() *fault {
	lo, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return at(err, "loopback")
	}
	defer unix.Close(lo)
	ifr, err := unix.NewIfreq("lo")
	if err == nil {
		ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(lo, unix.SIOCSIFFLAGS, ifr)
	}
	if err != nil {
		return at(err, "loopback")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return at(err, "proxy listener")
	}
	defer unix.Close(fd)
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: ProxyPort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err == nil {
		err = send(Listener, fd)
	}
	return at(err, "proxy listener")
}

// send passes a descriptor to the host.
func send(what byte, fd int) error {
	return unix.Sendmsg(StatusFD, []byte{what}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
}
