//go:build !rootfs_portable

package rootfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkOpenat2 is what BenchmarkRead4K is to be compared with.
func BenchmarkOpenat2(b *testing.B) {
	base := scratch(b)
	plant(b, base, "ws/one/two/")
	if err := os.WriteFile(base+"/ws/one/two/f", make([]byte, 4096), 0o644); err != nil {
		b.Fatal(err)
	}
	d, errno := openDir(base+"/ws", false)
	if errno != 0 {
		b.Fatal(errno)
	}
	defer d.close()
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		fd, err := unix.Openat2(d.fd, "one/two/f", &unix.OpenHow{Flags: unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			b.Fatal(err)
		}
		unix.Read(fd, buf)
		unix.Close(fd)
	}
}
