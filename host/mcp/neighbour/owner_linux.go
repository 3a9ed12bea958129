package neighbour

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

var errUnknown = errors.New("nobody that the kernel knows of")

// owner returns the user of the socket at the other end of c, from the kernel's
// table of sockets (proc(5), /proc/net/tcp).
func owner(c net.Conn) (int, error) {
	here, there, err := ends(c)
	if err != nil {
		return 0, err
	}
	for _, t := range []struct {
		file  string
		write func(netip.AddrPort) string
	}{{"/proc/net/tcp", narrow}, {"/proc/net/tcp6", wide}} {
		uid, err := find(t.file, t.write(there), t.write(here))
		if !errors.Is(err, errUnknown) {
			return uid, err
		}
	}
	return 0, errUnknown
}

// find looks for the socket with those ends. One that its process has closed
// is still in the table while it says goodbye, but without an inode, and its user
// reads as 0: that is not root, but nobody.
func find(file, local, remote string) (int, error) {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, errUnknown
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) > 9 && field[1] == local && field[2] == remote {
			if field[9] == "0" {
				return 0, errUnknown
			}
			return strconv.Atoi(field[7])
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, errUnknown
}

// narrow writes an address as /proc/net/tcp does; "" if it is not of IPv4.
func narrow(a netip.AddrPort) string {
	ip := a.Addr().Unmap()
	if !ip.Is4() {
		return ""
	}
	b := ip.As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), a.Port())
}

// wide writes an address as /proc/net/tcp6 does.
func wide(a netip.AddrPort) string {
	b := a.Addr().As16()
	var s strings.Builder
	for i := 0; i < len(b); i += 4 {
		fmt.Fprintf(&s, "%08X", binary.NativeEndian.Uint32(b[i:]))
	}
	fmt.Fprintf(&s, ":%04X", a.Port())
	return s.String()
}
