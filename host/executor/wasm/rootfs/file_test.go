package rootfs

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/skillhost/skill/host/executor"
)

func TestOpenFlags(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		p    string
		flag sys.Oflag
		want sys.Errno
	}{
		{"/workspace/new", sys.O_WRONLY, sys.ENOENT},
		{"/workspace/new", creating, 0},
		{"/workspace/new", creating | sys.O_EXCL, sys.EEXIST},
		{"/workspace/sub", sys.O_DIRECTORY, 0},
		{"/workspace/sub/", sys.O_RDONLY, 0},
		{"/workspace/sub", sys.O_RDWR, sys.EISDIR},
		{"/workspace/sub", sys.O_RDONLY | sys.O_CREAT, sys.EISDIR},
		{"/workspace/sub", sys.O_RDONLY | sys.O_TRUNC, sys.EISDIR},
		{"/workspace/a.txt", sys.O_DIRECTORY, sys.ENOTDIR},
		{"/workspace/a.txt/x", sys.O_RDONLY, sys.ENOTDIR},
		{"/workspace/new2/", creating, sys.EISDIR},
		{"/workspace/no/new", creating, sys.ENOENT},
		{"/workspace/dangling", sys.O_RDONLY, sys.ENOENT},
		{"", sys.O_RDONLY, sys.ENOENT},
		{"/workspace/" + strings.Repeat("x", 300), sys.O_RDONLY, sys.ENAMETOOLONG},
	} {
		x, errno := h.fs.OpenFile(c.p, c.flag, 0o600)
		if errno == 0 {
			x.Close()
		}
		if errno != c.want && !(portable && c.want == sys.ENAMETOOLONG) {
			t.Errorf("open %s %#x: %v, want %v", c.p, c.flag, errno, c.want)
		}
	}
	h.put("/workspace/a.txt", "", sys.O_RDONLY|sys.O_TRUNC)
	if got, errno := h.read("/workspace/a.txt"); got != "" {
		t.Errorf("not truncated: %q, %v", got, errno)
	}
	x, _ := h.fs.OpenFile("/workspace/a.txt", sys.O_RDONLY|sys.O_TRUNC, 0)
	if _, errno := x.Write([]byte("x")); errno != sys.EBADF {
		t.Errorf("write through a file opened for reading: %v", errno)
	}
	if st, err := os.Stat(h.base + "/ws/new"); err != nil || st.Mode() != 0o600 {
		t.Error(st, err)
	}
}

func TestFile(t *testing.T) {
	h := newHouse(t)
	x, errno := h.fs.OpenFile("/workspace/f", sys.O_RDWR|sys.O_CREAT, 0o600)
	if errno != 0 {
		t.Fatal(errno)
	}
	x.Write([]byte("hello world"))
	x.Pwrite([]byte("J"), 0)
	buf := make([]byte, 5)
	if n, errno := x.Pread(buf, 6); string(buf[:n]) != "world" {
		t.Error(n, errno)
	}
	if off, errno := x.Seek(-3, 2); off != 8 {
		t.Error(off, errno)
	}
	if n, errno := x.Read(buf); string(buf[:n]) != "rld" {
		t.Error(n, errno)
	}
	if n, errno := x.Read(buf); n != 0 || errno != 0 {
		t.Errorf("at the end: %d, %v", n, errno)
	}
	if errno := x.SetAppend(true); errno != 0 || !x.IsAppend() {
		t.Error(errno)
	}
	x.Seek(0, 0)
	x.Write([]byte("!"))
	x.Pwrite([]byte("?"), 0)
	x.Truncate(14)
	if got, _ := h.read("/workspace/f"); got != "Jello world!?\x00" && !(got == "?ello world!\x00\x00" && !portable && isDarwin) {
		t.Errorf("%q", got)
	}
	if errno := x.Utimens(1e9, sys.UTIME_OMIT); errno != 0 && errno != sys.EPERM {
		t.Error(errno)
	}
	if errno := h.fs.Utimens("/workspace/f", sys.UTIME_OMIT, 2e9); errno != 0 {
		t.Error(errno)
	}
	st, errno := x.Stat()
	if st.Mtim != 2e9 || st.Size != 14 || !st.Mode.IsRegular() {
		t.Error(st, errno)
	}
	if st2, _ := h.fs.Stat("/workspace/f"); st2.Ino != st.Ino || st2.Dev != st.Dev {
		t.Error("stat and fstat disagree")
	}
	for what, errno := range map[string]sys.Errno{"sync": x.Sync(), "datasync": x.Datasync(), "close": x.Close(), "close again": x.Close()} {
		if errno != 0 {
			t.Error(what, errno)
		}
	}
	if n, errno := x.Pread(buf, -1); errno == 0 {
		t.Error(n)
	}
	for what, errno := range map[string]sys.Errno{
		"read": errnoOf(x.Read(buf)), "write": errnoOf(x.Write(buf)), "stat": errnoOf(x.Stat()), "seek": errnoOf(x.Seek(0, 0)),
		"readdir": errnoOf(x.Readdir(1)), "truncate": x.Truncate(0), "sync": x.Sync(), "utimens": x.Utimens(0, 0), "append": x.SetAppend(false),
	} {
		if errno != sys.EBADF {
			t.Errorf("%s after close: %v", what, errno)
		}
	}
}

func TestReaddir(t *testing.T) {
	h := newHouse(t)
	want := map[string]fs.FileMode{"d": fs.ModeDir, "l": fs.ModeSymlink}
	plant(t, h.base, "ws/many/d/", "ws/many/l -> d")
	for i := range 700 {
		name := fmt.Sprintf("file-with-a-long-name-%04d", i)
		want[name] = 0
		plant(t, h.base, "ws/many/"+name)
	}
	x, errno := h.fs.OpenFile("/workspace/many", sys.O_RDONLY, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer x.Close()
	for _, step := range []int{1, 7, 256, -1, 1 << 30} {
		got := map[string]fs.FileMode{}
		for {
			entries, errno := x.Readdir(step)
			if errno != 0 {
				t.Fatal(errno)
			}
			for _, e := range entries {
				if _, twice := got[e.Name]; twice {
					t.Fatalf("%s twice", e.Name)
				}
				got[e.Name] = e.Type
			}
			if step < 0 || len(entries) < step {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("in steps of %d: %d entries of %d", step, len(got), len(want))
		}
		if _, errno := x.Seek(0, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	for what, errno := range map[string]sys.Errno{
		"read": errnoOf(x.Read(make([]byte, 1))), "write": errnoOf(x.Write([]byte("x"))), "truncate": x.Truncate(0), "seek": errnoOf(x.Seek(1, 0)),
	} {
		if errno != sys.EISDIR {
			t.Errorf("%s of a directory: %v", what, errno)
		}
	}
	plant(t, h.base, "ws/many/later")
	x.Seek(0, 0)
	if entries, _ := x.Readdir(-1); len(entries) != len(want)+1 {
		t.Errorf("a rewound directory does not show what is new")
	}
}

func TestTooManyFiles(t *testing.T) {
	h := newHouse(t)
	var open []sys.File
	for range maxFiles {
		x, errno := h.fs.OpenFile([]string{"/workspace/a.txt", "/workspace/sub", h.base}[len(open)%3], sys.O_RDONLY, 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		open = append(open, x)
	}
	if _, errno := h.read("/workspace/a.txt"); errno != sys.EIO {
		t.Errorf("one more: %v", errno)
	}
	for _, x := range open[100:] {
		x.Close()
	}
	if _, errno := h.read("/workspace/a.txt"); errno != 0 {
		t.Error(errno)
	}
	h.fs.Close()
	if _, errno := open[0].Stat(); errno != sys.EBADF {
		t.Errorf("a file outlives the file system: %v", errno)
	}
	open[2].Close()
}

func BenchmarkNew(b *testing.B) {
	g, d := newGrant(b, "", nil, []string{"write:/a"}), executor.Dirs{Workspace: "/a"}
	b.ReportAllocs()
	for b.Loop() {
		New(g, d).Close()
	}
}

func BenchmarkRead4K(b *testing.B) {
	base := scratch(b)
	plant(b, base, "ws/one/two/")
	for _, p := range []string{"f", "one/two/f"} {
		if err := os.WriteFile(base+"/ws/"+p, make([]byte, 4096), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	layers := [][]string{{"write:@/ws", "read:/usr", "write:${tmp}"}, {"write:@/ws", "read:/usr"}, {"write:@"}}
	f := New(newGrant(b, base, new(record), layers...), executor.Dirs{Workspace: base + "/ws"})
	defer f.Close()
	buf := make([]byte, 4096)
	for _, p := range []string{"f", "one/two/f"} {
		b.Run("rootfs/"+p, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, errno := f.OpenFile("workspace/"+p, sys.O_RDONLY, 0)
				if errno != 0 {
					b.Fatal(errno)
				}
				x.Read(buf)
				x.Close()
			}
		})
		b.Run("os.ReadFile/"+p, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := os.ReadFile(base + "/ws/" + p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("stat", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Stat("workspace/one/two/f")
		}
	})
}
