package tasks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A reading waits for whole lines, for the end, or for its time.
func TestLongPoll(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h := w.host("b1")
		r := begin(t, h, ann)
		r.Go(func(soft, _ context.Context) End {
			time.Sleep(time.Second)
			_ = r.append([]byte("half"))
			time.Sleep(time.Second)
			_ = r.append([]byte(" line\n"))
			time.Sleep(time.Minute)
			_ = r.append([]byte("rest"))
			return End{}
		})
		poll := func(wait time.Duration) (Piece, time.Duration) {
			began := time.Now()
			p, err := h.Read(t.Context(), ann, 1, Reading{Max: DefaultRead, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			return p, time.Since(began)
		}
		if p, took := poll(0); len(p.Data) > 0 || took != 0 {
			t.Errorf("%q after %v", p.Data, took)
		}
		if p, took := poll(10 * time.Second); string(p.Data) != "half line\n" || took != 2*time.Second {
			t.Errorf("%q after %v", p.Data, took)
		}
		if p, took := poll(10 * time.Second); len(p.Data) > 0 || took != 10*time.Second || p.EOF {
			t.Errorf("%q after %v", p.Data, took)
		}
		if p, took := poll(time.Minute); string(p.Data) != "rest" || took != 50*time.Second || !p.EOF {
			t.Errorf("%q after %v, %v", p.Data, took, p.EOF)
		}
		if p, took := poll(time.Minute); len(p.Data) > 0 || took != 0 || !p.EOF {
			t.Errorf("%q after %v", p.Data, took)
		}
		silent := begin(t, h, ann)
		silent.Go(polite(silent, ""))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Read(ctx, ann, 2, Reading{Max: DefaultRead, Wait: time.Minute})
		is(t, err, sdk.Canceled)
		silent.Stop("TERM", 0, "")
		<-silent.done
	})
}

// A job that another process runs is looked at again and again.
func TestLongPollOfAnother(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h, other := w.host("b1"), w.host("b2")
		r := begin(t, h, ann)
		r.Go(func(context.Context, context.Context) End {
			time.Sleep(time.Second)
			_ = r.append([]byte("x\n"))
			return End{}
		})
		p, err := other.Read(t.Context(), ann, 1, Reading{Max: DefaultRead, Wait: time.Minute})
		if err != nil || string(p.Data) != "x\n" {
			t.Errorf("%+v, %v", p, err)
		}
		<-r.done
	})
}

func TestCursors(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	r := begin(t, h, ann)
	if err := r.append([]byte("one\ntwo\nthree\n")); err != nil {
		t.Fatal(err)
	}
	next := func(max int) string {
		p, err := h.Read(t.Context(), ann, 1, Reading{Max: max})
		if err != nil {
			t.Fatal(err)
		}
		return string(p.Data)
	}
	if got := read(t, h, ann, 1, at(4)); string(got.Data) != "two\nthree\n" || got.Unread != 14 {
		t.Errorf("%q, %d unread", got.Data, got.Unread)
	}
	if got := next(8); got != "one\ntwo\n" {
		t.Errorf("an explicit cursor moves that of the session: %q", got)
	}
	if got := list(t, h, ann)[0].Unread; got != 6 {
		t.Errorf("%d unread", got)
	}
	if got := next(16) + next(16); got != "three\n" {
		t.Errorf("%q", got)
	}
	if got := read(t, h, ann, 1, at(0)); string(got.Data) != "one\ntwo\nthree\n" {
		t.Errorf("not repeatable: %q", got.Data)
	}
	for _, c := range []int64{-1, 15, 1 << 60} {
		_, err := h.Read(t.Context(), ann, 1, Reading{Cursor: at(c), Max: 16})
		is(t, err, sdk.Invalid, "has 14 bytes")
	}
}

// Readers of one session that run at the same time share the output: each line
// goes to one of them.
func TestReadersTakeTurns(t *testing.T) {
	h := newWorld(t).host("b1")
	r := begin(t, h, ann)
	var mu sync.Mutex
	var got [][]byte
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				p, err := h.Read(t.Context(), ann, 1, Reading{Max: 64, Wait: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got = append(got, bytes.SplitAfter(p.Data, []byte("\n"))...)
				mu.Unlock()
				if p.EOF {
					return
				}
			}
		})
	}
	var want []string
	r.Go(func(context.Context, context.Context) End {
		for i := range 500 {
			line := fmt.Sprintf("line %d\n", i)
			want = append(want, line)
			_ = r.append([]byte(line))
		}
		return End{}
	})
	group.Wait()
	var lines []string
	for _, l := range got {
		if len(l) > 0 {
			lines = append(lines, string(l))
		}
	}
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines read, %d written", len(lines), len(want))
	}
}

// A call's output costs nothing unless somebody asks for it.
func TestCallOutput(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	write := func(o *Output, n int) {
		t.Helper()
		if _, _, err := o.Append(t.Context(), bytes.Repeat([]byte("x"), n)); err != nil {
			t.Fatal(err)
		}
	}
	small := h.Output(Spec{Owner: ann})
	write(small, maxHeld)
	w.empty(t, ann)
	small.End(End{})
	w.empty(t, ann)
	large := h.Output(Spec{Owner: ann})
	write(large, maxHeld)
	write(large, 1)
	large.End(End{})
	w.empty(t, ann)

	kept := h.Output(Spec{Owner: ann})
	write(kept, 10)
	link, err := kept.Link(t.Context())
	if err != nil || link.Bytes != 10 || link.URI != fmt.Sprintf("skill-output://%d", link.ID) {
		t.Fatalf("%+v, %v", link, err)
	}
	write(kept, 5)
	if again, err := kept.Link(t.Context()); err != nil || again.ID != link.ID || again.Bytes != 15 {
		t.Errorf("%+v, %v", again, err)
	}
	if p := read(t, h, ann, link.ID, nil); p.Status != Active || p.EOF {
		t.Errorf("%+v", p)
	}
	for range 2 {
		kept.End(End{})
	}
	if _, _, err := kept.Append(t.Context(), []byte("x")); sdk.KindOf(err) != sdk.Invalid {
		t.Error(err)
	}
	if _, err := kept.Link(t.Context()); sdk.KindOf(err) != sdk.Invalid {
		t.Error(err)
	}
	if p := read(t, h, ann, link.ID, nil); len(p.Data) != 15 || !p.EOF || p.Status != Exited {
		t.Errorf("%+v", p)
	}
	if b, err := os.ReadFile(link.Path); err != nil || len(b) != 15 {
		t.Errorf("%q, %v", b, err)
	}
	if jobs := list(t, h, ann); len(jobs) != 0 {
		t.Errorf("a call is listed as a job: %+v", jobs)
	}
	if len(h.live) != 0 {
		t.Errorf("%d are left", len(h.live))
	}
}

// A job's output is the job's: it ends with it, and not with the call.
func TestJobOutput(t *testing.T) {
	h := newWorld(t).host("b1")
	r := begin(t, h, ann)
	o := r.Output()
	o.End(End{})
	if n, _, err := o.Append(t.Context(), []byte("x\n")); err != nil || n != 2 {
		t.Error(n, err)
	}
	if link, err := o.Link(t.Context()); err != nil || link.ID != r.ID() {
		t.Errorf("%+v, %v", link, err)
	}
	r.Go(func(context.Context, context.Context) End { return End{} })
	<-r.done
	if _, _, err := o.Append(t.Context(), []byte("x")); sdk.KindOf(err) != sdk.Invalid {
		t.Error(err)
	}
}

// Output that could not be kept is told, with how much and why, and where is
// not. The job goes on.
func TestUnkept(t *testing.T) {
	w := newWorld(t)
	w.bounds.Segment = 10
	h := w.host("b1")
	r := begin(t, h, ann)
	o := r.Output()
	write := func(text string, bytes, lost int64) {
		t.Helper()
		if b, l, err := o.Append(t.Context(), []byte(text)); err != nil || b != bytes || l != lost {
			t.Fatalf("%d bytes, %d lost, %v", b, l, err)
		}
	}
	write("012345678\n", 10, 0)
	folder := filepath.Dir(r.log.Path())
	inTheWay := filepath.Join(folder, "output.0.log")
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("lost\n", 10, 5)
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	write("kept\n", 15, 5)
	r.Go(func(context.Context, context.Context) End { return End{Error: "exit 1"} })
	<-r.done
	p := read(t, h, ann, 1, nil)
	if string(p.Data) != "012345678\nkept\n" || p.Status != Exited || p.Lost != 5 || p.Job.Lost != 5 {
		t.Errorf("%+v", p)
	}
	if !strings.HasPrefix(p.Error, "exit 1; 5 bytes of its output could not be kept: ") || strings.Contains(p.Error, folder) {
		t.Errorf("%q", p.Error)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	_, err := h.Read(t.Context(), ann, 1, Reading{Max: 16})
	is(t, err, sdk.Unavailable, "cannot be read")
}

func TestListBounds(t *testing.T) {
	w := newWorld(t)
	w.bounds.Listed = 3
	h := w.host("b1")
	running := begin(t, h, ann)
	for range 5 {
		r := begin(t, h, ann)
		r.Go(func(context.Context, context.Context) End { return End{} })
		<-r.done
		w.pass(time.Hour)
	}
	ids := func() (out []int64) {
		for _, j := range list(t, h, ann) {
			out = append(out, j.ID)
		}
		return out
	}
	if got := ids(); !slices.Equal(got, []int64{1, 4, 5, 6}) {
		t.Errorf("%v", got)
	}
	w.pass(5*time.Hour + time.Minute)
	if got := ids(); !slices.Equal(got, []int64{1, 5, 6}) {
		t.Errorf("after 8 hours %v", got)
	}
	if p := read(t, h, ann, 2, nil); !p.EOF {
		t.Errorf("what is not listed can still be read: %+v", p)
	}
	running.Discard()
}

// The oldest ends go first, and what runs stays.
func TestQuota(t *testing.T) {
	w := newWorld(t)
	w.bounds.Logs, w.bounds.LogBytes, w.bounds.Segment = 4, 1000, 300
	h := w.host("b1")
	running := begin(t, h, ann)
	end := func(size int) int64 {
		r := begin(t, h, ann)
		r.Go(func(context.Context, context.Context) End {
			_ = r.append(make([]byte, size))
			return End{}
		})
		<-r.done
		return r.ID()
	}
	there := func() (out []int64) {
		for id := range int64(30) {
			if _, err := h.Read(t.Context(), ann, id, Reading{Max: 16}); err == nil {
				out = append(out, id)
			} else {
				is(t, err, sdk.NotFound)
			}
		}
		return out
	}
	for range 5 {
		end(10)
	}
	if got := there(); !slices.Equal(got, []int64{1, 4, 5, 6}) {
		t.Errorf("by number: %v", got)
	}
	end(550)
	end(550)
	begin(t, h, ann).Discard()
	if got := there(); !slices.Equal(got, []int64{1, 8}) {
		t.Errorf("by size: %v", got)
	}
	// What runs makes room for itself, and then keeps less of itself.
	w.bounds.LogBytes, h.bounds.LogBytes = 200, 200
	for range 20 {
		if err := running.append(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if got := there(); !slices.Equal(got, []int64{1}) {
		t.Errorf("%v", got)
	}
	if first, end := running.log.Bounds(); end-first > 300 {
		t.Errorf("%d bytes of a running job are kept", end-first)
	}
	running.Discard()
}

func TestSweep(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	old := begin(t, h, ann)
	old.Go(func(context.Context, context.Context) End { return End{} })
	<-old.done
	read(t, h, ann, 1, nil)
	begin(t, h, ann) // is lost below
	w.pass(6 * 24 * time.Hour)
	w.die("b1")
	h2 := w.host("b2")
	o := ann
	o.Session = "s2"
	scope, err := o.scope()
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"90-b1": false, "91-b2": false, "92-b3": true, "notes": true} {
		if err := os.MkdirAll(filepath.Join(h2.scopeDir(scope), name), 0o700); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(filepath.Join(h2.scopeDir(scope), name)); stays != (err == nil) {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	w.host("b3") // lives, and has its rows elsewhere
	if err := h2.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := read(t, h2, o, 2, nil); p.Status != Lost {
		t.Errorf("%+v", p)
	}
	read(t, h2, o, 1, nil)
	w.pass(24*time.Hour + time.Minute)
	if err := h2.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = h2.Read(t.Context(), o, 1, Reading{Max: 16})
	is(t, err, sdk.NotFound)
	read(t, h2, o, 2, nil)
	if len(h2.cursors) != 1 {
		t.Errorf("cursors %v", h2.cursors)
	}
	if fresh := begin(t, h2, o); fresh.ID() != 3 {
		t.Errorf("id %d", fresh.ID())
	}
}

// A store that is made anew counts from 1 again: nobody's output is mixed up.
func TestNewStore(t *testing.T) {
	w := newWorld(t)
	first := begin(t, w.host("b1"), ann)
	if err := first.append([]byte("first\n")); err != nil {
		t.Fatal(err)
	}
	w.store = newWorld(t).store
	second := begin(t, w.host("b2"), ann)
	if first.ID() != second.ID() {
		t.Fatal(first.ID(), second.ID())
	}
	if p := read(t, w.host("b2"), ann, 1, nil); len(p.Data) > 0 {
		t.Errorf("%q", p.Data)
	}
	if _, err := os.Stat(first.log.Path()); err != nil {
		t.Error("the other host lives:", err)
	}
}
