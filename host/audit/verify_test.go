package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/audit/journal"
	"github.com/skillhost/skill/sdk"
)

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// boots makes a log of n closed boots with one call each.
func boots(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		f := open(t, Options{Dir: dir})
		appendAll(t, f, call(fmt.Sprintf("c%d", i))...)
		closeLog(t, f)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func classes(r Report) string {
	var names []string
	for _, p := range r.Problems {
		names = append(names, p.Class)
	}
	return strings.Join(slices.Compact(names), " ")
}

// TestEveryFlipIsSeen changes every byte of a closed log, and of one whose
// host died, in two ways.
func TestEveryFlipIsSeen(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir})
	appendAll(t, f, call("c1")...)
	path := logFiles(t, dir)[0]
	died := bytes.TrimRight(readFile(t, path), "\x00")
	closeLog(t, f)
	for name, whole := range map[string][]byte{"closed": readFile(t, path), "died": died} {
		copied := filepath.Join(logDir(t), filepath.Base(path))
		writeFile(t, copied, whole)
		if r := verify(t, filepath.Dir(copied)); !r.Intact() {
			t.Fatalf("%s: %+v", name, r)
		}
		file, err := os.OpenFile(copied, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		put := func(i int, c byte) {
			if _, err := file.WriteAt([]byte{c}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		for i, old := range whole {
			for _, c := range []byte{old ^ 1, [...]byte{old ^ 0x20, old ^ 0x80, '\n', 0}[i%4]} {
				if c == old {
					continue
				}
				put(i, c)
				r := verify(t, filepath.Dir(copied))
				if last := i == len(whole)-1; r.Intact() && !(last && strings.HasPrefix(classes(r), classTorn)) {
					t.Errorf("%s: byte %d from %q to %q: %+v", name, i, old, c, r.Problems)
				}
			}
			put(i, old)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, filepath.Dir(copied)); !r.Intact() || strings.HasPrefix(classes(r), classTorn) {
			t.Errorf("%s: when all is put back: %+v", name, r)
		}
	}
}

// TestTampering does to the older of two files what somebody might who has
// something to hide. The newer one remembers it.
func TestTampering(t *testing.T) {
	lines := func(b []byte) [][]byte { return bytes.SplitAfter(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) }
	join := func(l [][]byte) []byte { return append(bytes.TrimSuffix(bytes.Join(l, nil), []byte("\n")), '\n') }
	forge := func(b []byte, from int) []byte { // chains everything from a line on anew
		c := journal.NewChain("")
		var out []byte
		for i, l := range lines(b) {
			l = bytes.TrimSuffix(l, []byte("\n"))
			r, err := decode(l)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				c = journal.NewChain(r.Boot)
			}
			if i >= from {
				body := l[bytes.Index(l, []byte(`,"type"`)):bytes.LastIndex(l, []byte(`,"crc"`))]
				body = bytes.ReplaceAll(body, []byte("greet"), []byte("other"))
				l = c.Line(r.Time, body)
			} else {
				l = append(slices.Clone(l), '\n')
			}
			c.Advance(l)
			out = append(out, l...)
		}
		return out
	}
	cases := map[string]struct {
		change func(b []byte) []byte
		want   string
	}{
		"delete_line":         {func(b []byte) []byte { l := lines(b); return join(slices.Delete(l, 2, 3)) }, classTampered},
		"delete_first":        {func(b []byte) []byte { return join(lines(b)[1:]) }, classTampered},
		"swap_lines":          {func(b []byte) []byte { l := lines(b); l[1], l[2] = l[2], l[1]; return join(l) }, classTampered},
		"repeat_line":         {func(b []byte) []byte { l := lines(b); return join(slices.Insert(l, 2, l[1])) }, classTampered},
		"truncate_lines":      {func(b []byte) []byte { return join(lines(b)[:4]) }, classTampered},
		"truncate_mid_line":   {func(b []byte) []byte { return b[:len(b)-30] }, classTorn + " " + classTampered},
		"truncate_to_nothing": {func([]byte) []byte { return nil }, classTampered},
		"nul_out_tail":        {func(b []byte) []byte { clear(b[len(b)-200:]); return b }, classTorn + " " + classTampered},
		"text_behind_tail":    {func(b []byte) []byte { return append(append(b, make([]byte, 100)...), "{}\n"...) }, classTampered},
		"rechain_from_middle": {func(b []byte) []byte { return forge(b, 2) }, classTampered},
		"rechain_all":         {func(b []byte) []byte { return forge(b, 0) }, classTampered},
		"endless_line":        {func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 5<<20)...) }, classTampered},
		"line_behind_close": {func(b []byte) []byte {
			c := journal.NewChain("")
			l := lines(b)
			for range l {
				c.Advance(append(slices.Clone(bytes.TrimSuffix(l[len(l)-1], []byte("\n"))), '\n'))
			}
			return append(b, c.Line(time.Now(), []byte(`,"type":"end","call":"c0"`))...)
		}, classTampered},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := logDir(t)
			boots(t, dir, 2)
			path := logFiles(t, dir)[0]
			writeFile(t, path, c.change(readFile(t, path)))
			r := verify(t, dir)
			if got := classes(r); got != c.want && got != c.want+" "+classInterrupted {
				t.Errorf("found %q, want %q: %+v", got, c.want, r.Problems)
			}
			if p := r.Problems[0]; p.File != filepath.Base(path) {
				t.Errorf("blames %q", p.File)
			}
			f, err := Open(Options{Dir: dir})
			if err != nil {
				t.Fatalf("a damaged older file keeps the host from starting: %v", err)
			}
			closeLog(t, f)
			for _, err := range Query(dir, Filter{}) {
				_ = err // must come to an end
			}
			if r := verify(t, dir); r.Intact() {
				t.Error("the next boot made it right")
			}
		})
	}
}

func TestDeletedFileIsMissed(t *testing.T) {
	dir := logDir(t)
	boots(t, dir, 3)
	path := logFiles(t, dir)[1]
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r := verify(t, dir)
	if len(r.Problems) != 1 || r.Problems[0].Class != classDeleted || r.Problems[0].File != filepath.Base(path) || r.Intact() {
		t.Errorf("%+v", r.Problems)
	}
}

func TestForeignFilesAreNamed(t *testing.T) {
	dir := logDir(t)
	boots(t, dir, 1)
	for _, name := range []string{"x.jsonl", "20260101T000000.000000000Z-ab.1.jsonl", "20260101T000000.000000000Z-ab.02.jsonl"} {
		writeFile(t, filepath.Join(dir, name), []byte("{}\n"))
	}
	if r := verify(t, dir); classes(r) != classForeign || len(r.Problems) != 3 || !r.Intact() {
		t.Errorf("%+v", r.Problems)
	}
}

func TestHostThatDied(t *testing.T) {
	whole := logDir(t)
	f := open(t, Options{Dir: whole})
	appendAll(t, f, call("c1")...)
	appendAll(t, f, call("c2")[0])
	if r := verify(t, whole); r.Running != 1 || r.Interrupted != 0 || len(r.Problems) != 0 {
		t.Errorf("while it lives: %+v", r)
	}
	name := filepath.Base(logFiles(t, whole)[0])
	b := readFile(t, filepath.Join(whole, name)) // with the space behind its records
	closeLog(t, f)
	data := len(bytes.TrimRight(b, "\x00"))
	if data == len(b) {
		t.Fatal("no space was set aside")
	}
	for what, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"between_records": {b, classInterrupted},
		"in_a_record":     {append(bytes.Clone(b[:data]), `{"v":1,"seq":6,"prev":"`...), classTorn + " " + classInterrupted},
		"with_holes":      {append(append(bytes.Clone(b[:data]), 0, 0, 0, 'x', 0, 'y'), make([]byte, 5000)...), classTorn + " " + classInterrupted},
	} {
		t.Run(what, func(t *testing.T) {
			dir := logDir(t)
			path := filepath.Join(dir, name)
			writeFile(t, path, c.bytes)
			r := verify(t, dir)
			if classes(r) != c.want || !r.Intact() || r.Interrupted != 1 || r.Files[0].State != "unclosed" {
				t.Errorf("%+v", r)
			}
			boots(t, dir, 1)
			if got := readFile(t, path); !bytes.Equal(got, bytes.TrimRight(c.bytes, "\x00")) {
				t.Errorf("the next boot left %d bytes of %d", len(got), len(c.bytes))
			}
			if r := verify(t, dir); classes(r) != c.want || !r.Intact() {
				t.Errorf("after the next boot: %+v", r.Problems)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir, MaxSize: 16 << 10, Version: "9"})
	appendAll(t, f, call("long")[0])
	for i := range 200 {
		appendAll(t, f, call(fmt.Sprint(i))...)
	}
	appendAll(t, f, call("long")[2])
	closeLog(t, f)
	files, _, err := journal.List(dir)
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i, e := range files {
		if size := len(readFile(t, e.Path)); e.Part != i+1 || e.Boot != f.Boot() || size > 20<<10 {
			t.Errorf("part %d is %+v with %d bytes", i+1, e, size)
		}
	}
	if r := verify(t, dir); len(r.Problems) != 0 || r.Calls != 201 || r.Interrupted != 0 {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(files[1].Path); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); classes(r) == "" || r.Intact() {
		t.Errorf("a part is gone: %+v", r.Problems)
	}
}

// A file that does not get to the disk when the next one has begun ends the log
// like any other loss: at once or, since nobody waits for it, soon.
func TestRotationFailsToSync(t *testing.T) {
	for _, durability := range []string{"kernel", "disk"} {
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		f := open(t, Options{Dir: logDir(t), MaxSize: 16 << 10, Durability: durability, Now: func() time.Time { return at }})
		appendAll(t, f, call("1")...)
		if err := f.seg.File.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		for n := 0; err == nil && n < 100_000; n++ {
			if f.boot.part > 1 {
				at = at.Add(time.Second) // it is looked at once a second
				time.Sleep(time.Millisecond)
			}
			err = f.Append(bg, call(fmt.Sprint(n))[0])
		}
		if sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("%s: %v", durability, err)
		}
		if err := f.Append(bg, call("2")[0]); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("%s: a call goes on: %v", durability, err)
		}
	}
}

// Close waits for the file before the last one, and tells that it failed.
func TestCloseAfterRotationFails(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	f := open(t, Options{Dir: logDir(t), MaxSize: 16 << 10, Now: func() time.Time { return at }})
	if err := f.seg.File.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	for n := 0; err == nil && f.boot.part == 1; n++ {
		err = f.Append(bg, call(fmt.Sprint(n))[0])
	}
	if err := f.Close(); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}

// clock returns times that are a second apart.
func clock(at time.Time) func() time.Time {
	return func() time.Time { at = at.Add(time.Second); return at }
}

func TestRetention(t *testing.T) {
	day := 24 * time.Hour
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	dir := logDir(t)
	boot := func(d int) *File {
		f := open(t, Options{Dir: dir, Now: clock(start.Add(time.Duration(d) * day))})
		appendAll(t, f, call(fmt.Sprint(d))...)
		return f
	}
	closeLog(t, boot(0))
	closeLog(t, boot(1))
	long := boot(2) // remembers 0 and 1, and lives on
	closeLog(t, boot(3))

	removed, err := Retain(dir, 2*day+12*time.Hour, 0, start.Add(3*day))
	if err != nil || len(removed) != 1 || len(logFiles(t, dir)) != 3 {
		t.Fatalf("by age: %+v, %v", removed, err)
	}
	if r := verify(t, dir); !r.Intact() || r.Removed != 1 {
		t.Errorf("before the next boot: %+v", r.Problems)
	}
	closeLog(t, boot(4))
	if _, err := os.Stat(filepath.Join(dir, journal.RemovedName)); !os.IsNotExist(err) {
		t.Errorf("the note is still there: %v", err)
	}
	if r := verify(t, dir); !r.Intact() || r.Removed != 1 {
		t.Errorf("after the next boot: %+v", r.Problems)
	}
	if removed, err := Retain(dir, 0, 0, start.Add(99*day)); err != nil || removed != nil {
		t.Errorf("without bounds: %+v, %v", removed, err)
	}
	// Everything closed goes, the boot that noted 0 included; the living one still remembers 0 and 1.
	if removed, err = Retain(dir, 0, 1, start.Add(5*day)); err != nil || len(removed) != 3 || len(logFiles(t, dir)) != 1 {
		t.Fatalf("by size: %+v, %v", removed, err)
	}
	if r := verify(t, dir); !r.Intact() {
		t.Errorf("a removed note is forgotten: %+v", r.Problems)
	}
	closeLog(t, boot(5))
	if r := verify(t, dir); !r.Intact() {
		t.Errorf("a removed note is forgotten by the next boot: %+v", r.Problems)
	}
	closeLog(t, long)
	if r := verify(t, dir); !r.Intact() {
		t.Errorf("at the end: %+v", r.Problems)
	}
	if err := os.Remove(logFiles(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); classes(r) != classDeleted {
		t.Errorf("removed by hand: %+v", r.Problems)
	}
}
