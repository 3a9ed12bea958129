package stage

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filter runs a filter on one system call. The interpreter of x/net reads
// words in network order, so that is how the kernel's structure is laid out.
func filter(t *testing.T, code []unix.SockFilter, arch uint32, number uint64, args ...uint64) uint32 {
	t.Helper()
	var list []bpf.Instruction
	for _, c := range code {
		i := bpf.RawInstruction{Op: c.Code, Jt: c.Jt, Jf: c.Jf, K: c.K}.Disassemble()
		if raw, ok := i.(bpf.RawInstruction); ok {
			t.Fatalf("not an instruction: %+v", raw)
		}
		list = append(list, i)
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, 16)
	words[0], words[1] = uint32(number), arch
	for i, a := range args {
		words[4+2*i], words[5+2*i] = uint32(a), uint32(a>>32)
	}
	var packet []byte
	for _, w := range words {
		packet = binary.BigEndian.AppendUint32(packet, w)
	}
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

var modes = []Mode{{}, {Serves: true}, {Proxy: true}, {Serves: true, Proxy: true}}

func TestFilterCommon(t *testing.T) {
	eperm, enosys := fail(unix.EPERM), fail(unix.ENOSYS)
	for _, m := range modes {
		code := assemble(rules(m))
		if len(code) > 4096 {
			t.Errorf("%d instructions", len(code))
		}
		for _, tt := range []struct {
			name   string
			number uint64
			args   []uint64
			want   uint32
		}{
			{"read", unix.SYS_READ, nil, retAllow},
			{"execve", unix.SYS_EXECVE, nil, retAllow},
			{"landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, nil, retAllow},
			{"clone of a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, retAllow},
			{"vfork of Go", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, retAllow},
			{"clone, high bits", unix.SYS_CLONE, []uint64{1<<40 | uint64(unix.SIGCHLD)}, retAllow},
			{"clone new user", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, eperm},
			{"clone new user among others", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_NEWUSER | 1<<40}, eperm},
			{"clone new cgroup", unix.SYS_CLONE, []uint64{unix.CLONE_NEWCGROUP}, eperm},
			{"clone3", unix.SYS_CLONE3, nil, enosys},
			{"personality of Linux", unix.SYS_PERSONALITY, []uint64{0}, retAllow},
			{"personality, asked", unix.SYS_PERSONALITY, []uint64{0xffffffff}, retAllow},
			{"personality, no randomization", unix.SYS_PERSONALITY, []uint64{0x40000}, eperm},
			{"ioctl TCGETS", unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, retAllow},
			{"ioctl TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, eperm},
			{"ioctl TIOCSTI, high bits, which the kernel ignores", unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, eperm},
			{"ioctl TIOCLINUX", unix.SYS_IOCTL, []uint64{0, tiocLinux}, eperm},
			{"the newest", newest, nil, retAllow},
			{"one that is newer", newest + 1, nil, enosys},
			{"x32", 0x40000000 | unix.SYS_GETPID, nil, enosys},
			{"minus one", 0xffffffff, nil, enosys},
		} {
			if got := filter(t, code, arch, tt.number, tt.args...); got != tt.want {
				t.Errorf("%+v: %s: got %#x, want %#x", m, tt.name, got, tt.want)
			}
		}
		for _, n := range forbidden {
			if got := filter(t, code, arch, uint64(n)); got != eperm {
				t.Errorf("%+v: call %d: got %#x", m, n, got)
			}
		}
		for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
			if got := filter(t, code, other, unix.SYS_READ); got != retKill {
				t.Errorf("%+v: architecture %#x: got %#x", m, other, got)
			}
		}
	}
}

// All families, types and some protocols, in each mode, against the rule in
// words.
func TestFilterSockets(t *testing.T) {
	for _, m := range modes {
		code := assemble(rules(m))
		for family := uint64(0); family < 64; family++ {
			for kind := uint64(0); kind < 16; kind++ {
				for _, flags := range []uint64{0, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 1 << 35} {
					for _, protocol := range []uint64{0, 1, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP} {
						inet := family == unix.AF_INET || family == unix.AF_INET6
						socket := kind == unix.SOCK_STREAM &&
							(m.Serves && family == unix.AF_UNIX || m.Proxy && inet && (protocol == 0 || protocol == unix.IPPROTO_TCP))
						pair := family == unix.AF_UNIX && (kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET)
						for number, want := range map[uint64]bool{unix.SYS_SOCKET: socket, unix.SYS_SOCKETPAIR: pair} {
							got := filter(t, code, arch, number, family, kind|flags, protocol)
							if (got == retAllow) != want || got != retAllow && got != fail(unix.EACCES) {
								t.Fatalf("%+v: call %d of %d, %d, %d: got %#x, want %v", m, number, family, kind|flags, protocol, got, want)
							}
						}
					}
				}
			}
		}
	}
}

func TestFilterConnections(t *testing.T) {
	refuse := fail(unix.EACCES)
	for _, tt := range []struct {
		m                             Mode
		connect, bind, listen, sendto uint32
	}{
		{Mode{}, refuse, refuse, refuse, refuse},
		{Mode{Serves: true}, refuse, retAllow, retAllow, refuse},
		{Mode{Proxy: true}, retAllow, retAllow, retAllow, retAllow},
		{Mode{Serves: true, Proxy: true}, retNotify, retAllow, retAllow, retAllow},
	} {
		t.Run(fmt.Sprintf("%+v", tt.m), func(t *testing.T) {
			code := assemble(rules(tt.m))
			for number, want := range map[uint64]uint32{unix.SYS_CONNECT: tt.connect, unix.SYS_BIND: tt.bind, unix.SYS_LISTEN: tt.listen, unix.SYS_ACCEPT4: retAllow} {
				if got := filter(t, code, arch, number, 3, 0x7fff00000000, 16); got != want {
					t.Errorf("call %d: got %#x, want %#x", number, got, want)
				}
			}
			for _, address := range []uint64{1, 0x7fff00000000, 1 << 32} {
				if got := filter(t, code, arch, unix.SYS_SENDTO, 3, 0, 1, 0, address, 16); got != tt.sendto {
					t.Errorf("sendto with address %#x: got %#x", address, got)
				}
			}
			if got := filter(t, code, arch, unix.SYS_SENDTO, 3, 0x7fff00000000, 1, 0, 0, 0); got != retAllow {
				t.Errorf("send: got %#x", got)
			}
		})
	}
}
