package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func segment(t *testing.T, room int64) *Segment {
	t.Helper()
	s, err := NewSegment(filepath.Join(t.TempDir(), "x"), room)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Finish() })
	return s
}

// TestBothWaysOfWritingAgree writes lines across the steps in which space is
// set aside, through a mapping where there is one and with pwrite.
func TestBothWaysOfWritingAgree(t *testing.T) {
	for name, direct := range map[string]bool{"as_the_system_has_it": false, "pwrite": true} {
		t.Run(name, func(t *testing.T) {
			s := segment(t, 1)
			if direct {
				s.unmap()
				s.direct = true
			}
			var want bytes.Buffer
			for i := range 3000 {
				line := []byte(strings.Repeat("x", i%500) + "\n")
				if err := s.Grow(int64(len(line)) + 100); err != nil {
					t.Fatal(err)
				}
				if err := s.Put(line); err != nil {
					t.Fatal(err)
				}
				want.Write(line)
			}
			if err := s.Intact(); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(s.File.Name())
			if err != nil || !bytes.Equal(bytes.TrimRight(got, "\x00"), want.Bytes()) || len(got)%chunk != 0 {
				t.Errorf("while open: %d bytes for %d, %v", len(got), want.Len(), err)
			}
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			if got, err = os.ReadFile(s.File.Name()); err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Errorf("finished: %d bytes for %d, %v", len(got), want.Len(), err)
			}
		})
	}
}

func TestPutNeedsSpace(t *testing.T) {
	s := segment(t, 1)
	if err := s.Put(make([]byte, chunk+1)); err == nil || s.Off != 0 {
		t.Errorf("%v at %d", err, s.Off)
	}
}

// TestFailedWriteLeavesNothing makes pwrite fail by closing the file.
func TestFailedWriteLeavesNothing(t *testing.T) {
	s := segment(t, 1)
	s.unmap()
	s.direct = true
	if err := s.File.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put([]byte("x\n")); err == nil || s.Off != 0 {
		t.Errorf("%v at %d", err, s.Off)
	}
	if err := Datasync(s.File); !errors.Is(err, os.ErrClosed) {
		t.Errorf("sync of a closed file: %v", err)
	}
}

func TestNames(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, part := range []int{1, 2, 10} {
		name := FileName(at, "ab12", part)
		if e, ok := parseName(name); !ok || e.Boot != "ab12" || e.Part != part || !e.At.Equal(at) || e.Name != name {
			t.Errorf("%s: %+v %v", name, e, ok)
		}
	}
	for _, name := range []string{"", ".jsonl", "a-b.jsonl", "20260102T030405.000000006Z-ab12", "20260102T030405.000000006Z-ab12.0.jsonl",
		"20260102T030405.000000006Z-ab12.1.jsonl", "20260102T030405.000000006Z-ab12.x.jsonl", "20260102T030405Z-ab12.jsonl"} {
		if e, ok := parseName(name); ok {
			t.Errorf("%q is taken for %+v", name, e)
		}
	}
}

func TestListIsInOrder(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []string{FileName(at, "b", 1), FileName(at, "b", 2), FileName(at, "b", 10), FileName(at, "c", 1), FileName(at.Add(1), "a", 1)}
	for _, i := range []int{3, 1, 4, 0, 2} {
		if err := os.WriteFile(filepath.Join(dir, want[i]), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, FileName(at, "d", 1)), 0o700); err != nil {
		t.Fatal(err)
	}
	files, foreign, err := List(dir)
	if err != nil || len(files) != len(want) || len(foreign) != 1 {
		t.Fatalf("%+v, %v, %v", files, foreign, err)
	}
	for i, e := range files {
		if e.Name != want[i] {
			t.Errorf("%d: %s", i, e.Name)
		}
	}
}

func TestLineReader(t *testing.T) {
	nul := strings.Repeat("\x00", 300<<10)
	for name, c := range map[string]struct {
		in   string
		want []string
		end  error
	}{
		"empty":           {"", nil, io.EOF},
		"space_only":      {nul, nil, io.EOF},
		"lines":           {"a\nbb\n", []string{"a", "bb"}, io.EOF},
		"lines_and_space": {"a\n" + nul, []string{"a"}, io.EOF},
		"torn":            {"a\nbb", []string{"a"}, ErrTorn},
		"torn_and_space":  {"a\nb\x00b" + nul, []string{"a"}, ErrTorn},
		"torn_first":      {strings.Repeat("b", 100<<10), nil, ErrTorn},
		"torn_too_long":   {"a\n" + strings.Repeat("b", 100<<10), []string{"a"}, ErrLong},
		"long_line":       {strings.Repeat("b", 100<<10) + "\nc\n", []string{strings.Repeat("b", 100<<10), "c"}, io.EOF},
		"endless":         {strings.Repeat("b", maxLine+1) + "\n", nil, ErrLong},
		"much_space":      {"a\n" + strings.Repeat(nul, 20), []string{"a"}, io.EOF},
		"text_in_space":   {"a\n" + nul + "b" + nul, []string{"a"}, ErrTorn},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLineReader(strings.NewReader(c.in))
			off := 0
			for i := 0; ; i++ {
				line, err := l.Next()
				if err != nil {
					if !errors.Is(err, c.end) || i != len(c.want) {
						t.Errorf("%d lines and %v", i, err)
					}
					break
				}
				if off += len(line) + 1; i >= len(c.want) || string(line) != c.want[i] || l.Line != i+1 || l.Off != int64(off) {
					t.Fatalf("line %d of %d bytes, number %d, offset %d", i, len(line), l.Line, l.Off)
				}
			}
		})
	}
}

func TestFindEnd(t *testing.T) {
	c := NewChain("ab")
	var two []byte
	first := 0
	for range 2 {
		first = len(two)
		line := c.Line(time.Unix(1e9, 0), []byte(`,"type":"end","note":"`+strings.Repeat("n", 40<<10)+`"`))
		two = append(two, line...)
		c.Advance(line)
	}
	nul := make([]byte, 100<<10)
	for name, tc := range map[string]struct {
		in    []byte
		lines int
		seq   int64
		bad   bool
	}{
		"empty":         {nil, 0, 0, false},
		"space":         {nul, 0, 0, false},
		"whole":         {two, len(two), 2, false},
		"and_space":     {append(bytes.Clone(two), nul...), len(two), 2, false},
		"torn":          {two[:len(two)-1], first, 1, false},
		"damaged":       {append(bytes.Clone(two), "x\n"...), len(two) + 2, -1, true},
		"no_line":       {[]byte("x"), 0, 0, false},
		"endless":       {bytes.Repeat([]byte("x"), 8*maxLine), 0, -1, true},
		"only_newlines": {[]byte("\n\n"), 2, -1, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(path, tc.in, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			end, err := FindEnd(f)
			if err != nil || end.Lines != int64(tc.lines) || end.Head("x", false).Seq != tc.seq || (end.Err != nil) != tc.bad {
				t.Errorf("lines end at %d of %d, seq %d, %v, %v", end.Lines, tc.lines, end.Head("x", false).Seq, end.Err, err)
			}
			if tc.seq == 2 && end.Head("x", false).Hash != c.Prev() {
				t.Error("another hash than the chain's")
			}
		})
	}
}

// TestCommitShares counts how many syncs many waiters need, while the first
// sync is held back until all of them wait.
func TestCommitShares(t *testing.T) {
	var c Commit
	var syncs int
	var seq int64
	gate := make(chan struct{})
	flush := func() (int64, error) {
		c.mu.Lock()
		syncs++
		upTo := seq
		c.mu.Unlock()
		<-gate
		return upTo, nil
	}
	const n = 50
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			c.mu.Lock()
			seq++
			mine := seq
			c.mu.Unlock()
			if err := c.Wait(mine, flush); err != nil {
				t.Error(err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.done < mine {
				t.Errorf("record %d is not on disk", mine)
			}
		})
	}
	for all := false; !all; {
		c.mu.Lock()
		all = seq == n
		c.mu.Unlock()
	}
	close(gate)
	wg.Wait()
	if syncs > 3 {
		t.Errorf("%d syncs", syncs)
	}
}

// TestCommitFailureIsFinal: after one failed sync the kernel may have dropped
// the bytes, and the next one would not say so.
func TestCommitFailureIsFinal(t *testing.T) {
	var c Commit
	bad := errors.New("bad disk")
	if err := c.Wait(1, func() (int64, error) { return 1, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
	if err := c.Wait(2, func() (int64, error) { return 2, nil }); !errors.Is(err, bad) {
		t.Error(err)
	}
}
