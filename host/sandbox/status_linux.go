package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// A message is one from the stage; an empty one says that the stage's end of
// the socket is closed. A descriptor that came with it is fd, else -1.
type message struct {
	b  []byte
	fd int
}

// take returns the descriptor, which is the caller's then.
func (m *message) take() int {
	fd := m.fd
	m.fd = -1
	return fd
}

func (m *message) close() {
	if m.fd >= 0 {
		unix.Close(m.fd)
	}
}

// maxMessage bounds what the stage says: a step, a path and a reason.
const maxMessage = 8 << 10

// receive waits for the next message on a nonblocking socket.
func receive(status *os.File) (message, error) {
	m := message{fd: -1}
	conn, err := status.SyscallConn()
	if err != nil {
		return m, err
	}
	buf := make([]byte, maxMessage)
	control := make([]byte, unix.CmsgSpace(4))
	var n, cn int
	var failure error
	err = conn.Read(func(fd uintptr) bool {
		for {
			n, cn, _, _, failure = unix.Recvmsg(int(fd), buf, control, unix.MSG_CMSG_CLOEXEC)
			// A reset says, once and before all messages that are still there,
			// that the stage did not read our last one.
			if failure != unix.EINTR && failure != unix.ECONNRESET {
				return failure != unix.EAGAIN
			}
		}
	})
	if err == nil {
		err = failure
	}
	if err != nil {
		return m, err
	}
	m.b = buf[:max(n, 0)]
	messages, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil {
		return m, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return m, err
		}
		for _, fd := range fds {
			m.close()
			m.fd = fd
		}
	}
	return m, nil
}
