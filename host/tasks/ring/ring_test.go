package ring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func create(t testing.TB, segment int64, crowded func() bool) *Log {
	t.Helper()
	l, err := Create(filepath.Join(t.TempDir(), "logs", "17"), segment, crowded)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// text makes n bytes of lines of different lengths with characters of 1 to 4
// bytes, some of them broken.
func text(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	for b.Len() < n {
		for range r.IntN(12) {
			b.WriteString([]string{"a", "é", "漢", "🙂", "zz"}[r.IntN(5)])
		}
		if r.IntN(9) == 0 {
			b.WriteByte(0xff)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// What is read is what was written, without what was dropped: in order, nothing
// twice, and no line or character cut in two that fits a read.
func TestReadsAreTheStream(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		crowd := r.IntN(3) == 0
		l := create(t, int64(40+r.IntN(200)), func() bool { return crowd && r.IntN(2) == 0 })
		stream := text(r, 50+r.IntN(2000))
		n := 16 + r.IntN(60)
		var got, dropped, written int64
		read := func(final bool) {
			for {
				c, err := l.Read(got, n, final)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if c.At != got+c.Dropped || c.Next != c.At+int64(len(c.Data)) {
					t.Fatalf("seed %d: a chunk of %d at %d after %d, next %d, dropped %d", seed, len(c.Data), c.At, got, c.Next, c.Dropped)
				}
				if !bytes.Equal(c.Data, stream[c.At:c.Next]) {
					t.Fatalf("seed %d: at %d: %q, want %q", seed, c.At, c.Data, stream[c.At:c.Next])
				}
				whole(t, stream, c, n, final && c.Next == written)
				dropped += c.Dropped
				if c.Next == got {
					return
				}
				got = c.Next
			}
		}
		for written < int64(len(stream)) {
			step := min(1+r.Int64N(90), int64(len(stream))-written)
			if err := l.Append(stream[written : written+step]); err != nil {
				t.Fatal(err)
			}
			written += step
			if r.IntN(3) == 0 {
				read(false)
			}
			same(t, l)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		read(true)
		if got != written {
			t.Fatalf("seed %d: read up to %d of %d", seed, got, written)
		}
	}
}

// whole fails if c cuts a line that fits n bytes, or a character.
func whole(t *testing.T, stream []byte, c Chunk, n int, last bool) {
	t.Helper()
	if len(c.Data) == 0 || last {
		return
	}
	if c.Next < int64(len(stream)) && !utf8.RuneStart(stream[c.Next]) {
		t.Fatalf("cut in a character: %q before %q", c.Data, stream[c.Next:min(int64(len(stream)), c.Next+4)])
	}
	if c.Data[len(c.Data)-1] == '\n' {
		return
	}
	line := c.Data[bytes.LastIndexByte(c.Data, '\n')+1:]
	if len(line) < n-utf8.UTFMax {
		t.Fatalf("cut in the line %q, which has room in %d bytes", line, n)
	}
}

// same fails unless the log reads the same to another process, which has only
// the files.
func same(t *testing.T, l *Log) {
	t.Helper()
	other, err := Open(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	first, end := l.Bounds()
	if f, e := other.Bounds(); f != first || e != end {
		t.Fatalf("another process sees %d to %d, want %d to %d", f, e, first, end)
	}
	a, err := l.Read(first, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := other.Read(first, 1<<20, true)
	if err != nil || !bytes.Equal(a.Data, b.Data) || int64(len(a.Data)) != end-first {
		t.Fatalf("another process reads %q, %v; want %q", b.Data, err, a.Data)
	}
}

func TestReadTable(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		at    int64
		n     int
		final bool
		want  string
		next  int64
	}{
		"a whole line":                    {"one\n", 0, 16, false, "one\n", 4},
		"a line that goes on":             {"one\ntw", 0, 16, false, "one\n", 4},
		"nothing but that":                {"one\ntw", 4, 16, false, "", 4},
		"it ends there":                   {"one\ntw", 4, 16, true, "tw", 6},
		"as many lines as fit":            {"one\ntwo\nthree\nfour\n", 0, 16, false, "one\ntwo\nthree\n", 14},
		"a longer line":                   {strings.Repeat("x", 40), 0, 16, false, strings.Repeat("x", 16), 16},
		"a character across the end":      {strings.Repeat("x", 14) + "漢漢", 0, 16, false, strings.Repeat("x", 14), 14},
		"final but not the end":           {"0123456789abc\ndefghi", 0, 16, true, "0123456789abc\n", 14},
		"broken characters":               {strings.Repeat("\x80", 40), 0, 16, false, strings.Repeat("\x80", 16), 16},
		"half a character at the end":     {"a\xe6\xbc", 0, 16, true, "a\xe6\xbc", 3},
		"at the end":                      {"one\n", 4, 16, false, "", 4},
		"from the middle, as it was said": {"one\n", 1, 16, false, "ne\n", 4},
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t, 1<<20, nil)
			if err := l.Append([]byte(c.text)); err != nil {
				t.Fatal(err)
			}
			got, err := l.Read(c.at, c.n, c.final)
			if err != nil || string(got.Data) != c.want || got.Next != c.next || got.Dropped != 0 {
				t.Errorf("%q, next %d, dropped %d, %v; want %q, next %d", got.Data, got.Next, got.Dropped, err, c.want, c.next)
			}
		})
	}
}

// Two segments are all that there is, however much is written.
func TestBounded(t *testing.T) {
	l := create(t, 1000, nil)
	for i := range 500 {
		if err := l.Append(fmt.Appendf(nil, "line %d\n", i)); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(l.dir)
		if err != nil || len(entries) > 2 {
			t.Fatalf("%v, %v", entries, err)
		}
		var size int64
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
			if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Fatalf("%s has mode %v", e.Name(), info.Mode())
			}
		}
		if size > 2000 {
			t.Fatalf("%d bytes are kept", size)
		}
	}
	c, err := l.Read(0, 100, false)
	if err != nil || c.Dropped == 0 || !strings.HasPrefix(string(c.Data), "line ") {
		t.Errorf("%+v, %v", c, err)
	}
	if info, err := os.Stat(l.dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Where the rest of a line that is gone is not there yet, nothing is skipped.
func TestDroppedLineGoesOn(t *testing.T) {
	l := create(t, 20, nil)
	if err := l.Append([]byte(strings.Repeat("x", 50))); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Read(0, 100, false); err != nil || c.Next != 0 || len(c.Data) > 0 || c.Dropped != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := l.Append([]byte("\nyes\n")); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Read(0, 100, false); err != nil || string(c.Data) != "yes\n" || c.Dropped != 51 {
		t.Errorf("%q, %+v, %v", c.Data, c, err)
	}
}

// A full disk loses output, says how much, and does no harm to the rest.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("LEFT OUT: no /dev/full: ", err)
	}
	l := create(t, 1000, nil)
	if err := l.Append([]byte("before\n")); err != nil {
		t.Fatal(err)
	}
	disk := l.file
	l.file = full
	if err := l.Append([]byte("lost\n")); err != nil {
		t.Error("the writer is told:", err)
	}
	l.file = disk
	if err := l.Append([]byte("after\n")); err != nil {
		t.Fatal(err)
	}
	_ = full.Close()
	if n, why := l.Lost(); n != 5 || why == nil || !strings.Contains(why.Error(), "no space") {
		t.Errorf("lost %d: %v", n, why)
	}
	if c, err := l.Read(0, 100, false); err != nil || string(c.Data) != "before\nafter\n" {
		t.Errorf("%q, %v", c.Data, err)
	}
}

// A segment that cannot be begun is tried again.
func TestTurnFails(t *testing.T) {
	l := create(t, 10, nil)
	if err := l.Append([]byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(l.dir, nameBefore(0))
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if n, _ := l.Lost(); n != 3 {
		t.Errorf("lost %d", n)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("def\n")); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Read(0, 100, false); err != nil || string(c.Data) != "0123456789def\n" {
		t.Errorf("%q, %v", c.Data, err)
	}
}

// Nothing but a regular file of the directory itself is read.
func TestFollowsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("LEFT OUT: making links needs a privilege")
	}
	l := create(t, 100, nil)
	if err := l.Append([]byte("mine\n")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, l.Path()); err != nil {
		t.Fatal(err)
	}
	if c, err := l.Read(0, 100, false); err == nil || len(c.Data) > 0 {
		t.Errorf("read %q", c.Data)
	}
	if other, err := Open(l.dir); err != nil {
		t.Error(err)
	} else if _, end := other.Bounds(); end != 0 {
		t.Errorf("a link counts as %d bytes", end)
	}
}

func TestClose(t *testing.T) {
	l := create(t, 100, nil)
	changed := l.Changed()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	<-changed
	if err := l.Append([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

func TestCreateRefusesWhatIsThere(t *testing.T) {
	l := create(t, 100, nil)
	if _, err := Create(l.dir, 100, nil); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
