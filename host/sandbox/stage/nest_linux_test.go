package stage

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilterNest: with Nest a filter lets through what the sandbox of a browser
// is made of, and otherwise refuses what any other does, and more.
func TestFilterNest(t *testing.T) {
	eperm := fail(unix.EPERM)
	kinds := []uint64{unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWNS, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWTIME}
	for _, m := range modes {
		m.Nest = true
		code := assemble(rules(m))
		for set := range uint64(1 << len(kinds)) {
			var flags uint64
			for i, k := range kinds {
				if set>>i&1 == 1 {
					flags |= k
				}
			}
			want := eperm
			if set>>3 == 0 {
				want = retAllow
			}
			if got := filter(t, code, arch, unix.SYS_CLONE, flags|1<<40); got != want {
				t.Errorf("%+v: clone %#x: got %#x", m, flags, got)
			}
			want = eperm
			if flags == unix.CLONE_NEWUSER {
				want = retAllow
			}
			if got := filter(t, code, arch, unix.SYS_UNSHARE, flags); got != want {
				t.Errorf("%+v: unshare %#x: got %#x", m, flags, got)
			}
		}
		if got := filter(t, code, arch, unix.SYS_UNSHARE, unix.CLONE_NEWUSER|1<<32); got != eperm {
			t.Errorf("%+v: unshare with high bits: got %#x", m, got)
		}
		for _, n := range forbidden {
			want := eperm
			switch n {
			case unix.SYS_CHROOT:
				want = retAllow
			case unix.SYS_UNSHARE:
				continue
			}
			if got := filter(t, code, arch, uint64(n)); got != want {
				t.Errorf("%+v: call %d: got %#x", m, n, got)
			}
		}
		if got := filter(t, code, arch, unix.SYS_CLONE3); got != fail(unix.ENOSYS) {
			t.Errorf("%+v: clone3: got %#x", m, got)
		}
	}
}

// TestFilterNestNetwork: the tables of packet filters begin at option 64, that
// of ARP at 96, those of bridges at 128; and no interface is configured.
func TestFilterNestNetwork(t *testing.T) {
	code := assemble(rules(Mode{Serves: true, Proxy: true, Nest: true}))
	plain := assemble(rules(Mode{Serves: true, Proxy: true}))
	for option := uint64(0); option < 1024; option++ {
		for level, refused := range map[uint64]bool{
			unix.SOL_IP:     option >= 64,
			unix.SOL_IPV6:   option >= 64 && option < 72 && option != unix.IPV6_TCLASS && option != unix.IPV6_RECVTCLASS,
			unix.SOL_TCP:    option == unix.TCP_REPAIR,
			unix.SOL_SOCKET: false,
		} {
			want := uint32(retAllow)
			if refused {
				want = fail(unix.EPERM)
			}
			for _, number := range []uint64{unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT} {
				if got := filter(t, code, arch, number, 3, level|1<<32, option|1<<33); got != want {
					t.Errorf("call %d, level %d, option %d: got %#x", number, level, option, got)
				}
				if got := filter(t, plain, arch, number, 3, level, option); got != retAllow {
					t.Errorf("without nesting: call %d, level %d, option %d: got %#x", number, level, option, got)
				}
			}
		}
	}
	for request := uint64(0x8800); request < 0x8b00; request++ {
		want := uint32(retAllow)
		if request>>8 == 0x89 {
			want = fail(unix.EPERM)
		}
		if got := filter(t, code, arch, unix.SYS_IOCTL, 3, request); got != want {
			t.Errorf("ioctl %#x: got %#x", request, got)
		}
	}
	if got := filter(t, code, arch, unix.SYS_IOCTL, 0, unix.TIOCSTI); got != fail(unix.EPERM) {
		t.Errorf("TIOCSTI: got %#x", got)
	}
}
