package stage

import "golang.org/x/sys/unix"

// nestable are the namespaces that the sandbox of a browser is made of. One of
// mounts is not among them: without it, a process that has every capability in
// its own user namespace has none over what it sees of the file system.
const nestable = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// nestRules take away what capabilities in a user and a network namespace of
// one's own would otherwise open: the kernel's tables of packet filters, the
// repair of TCP connections, and the configuration of interfaces. Other doors
// to the network's configuration are sockets that no cage has.
func nestRules() []rule {
	refuse := fail(unix.EPERM)
	level := func(v uint32) test { return test{arg: 1, value: v} }
	option := func(v uint32) test { return test{arg: 2, value: v} }
	options := []branch{
		allow(level(unix.SOL_IP), test{arg: 2, mask: ^uint32(tables - 1)}), // those below the tables
		{[]test{level(unix.SOL_IP)}, refuse},
		{[]test{level(unix.SOL_TCP), option(unix.TCP_REPAIR)}, refuse},
	}
	for n := uint32(tables); n < tables+8; n++ { // between these and others, IPv6 has ordinary options
		if n == unix.IPV6_RECVTCLASS || n == unix.IPV6_TCLASS {
			continue
		}
		options = append(options, branch{[]test{level(unix.SOL_IPV6), option(n)}, refuse})
	}
	return []rule{
		{unix.SYS_UNSHARE, []branch{allow(test{value: unix.CLONE_NEWUSER}, test{high: true})}, refuse},
		{unix.SYS_SETSOCKOPT, options, retAllow},
		{unix.SYS_GETSOCKOPT, options, retAllow},
		terminalRule(branch{[]test{{arg: 1, mask: 0xffffff00, value: siocBase}}, refuse}),
	}
}

const (
	tables   = 64     // the lowest option of the packet filters, XT_BASE_CTL
	siocBase = 0x8900 // the ioctls of sockets
)
