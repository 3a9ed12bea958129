package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/sdk"
)

func TestJob(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	r := begin(t, h, ann)
	goOn := make(chan struct{})
	r.Go(func(context.Context, context.Context) End {
		_ = r.append([]byte("hello\n"))
		<-goOn
		return End{Result: json.RawMessage(`{"exit_code":0}`)}
	})
	p, err := h.Read(t.Context(), ann, r.ID(), Reading{Max: DefaultRead, Wait: time.Minute})
	if err != nil || string(p.Data) != "hello\n" || p.EOF || p.Status != Active || p.Unread != 0 || p.Bytes != 6 {
		t.Fatalf("%+v, %v", p, err)
	}
	w.pass(time.Second)
	close(goOn)
	p, err = h.Read(t.Context(), ann, r.ID(), Reading{Max: DefaultRead, Wait: time.Minute})
	if err != nil || len(p.Data) > 0 || !p.EOF {
		t.Fatalf("%+v, %v", p, err)
	}
	<-r.done
	for _, host := range []*Tasks{h, w.host("b2")} {
		o := ann
		if host != h {
			w.die("b1")
			o.Session = "s2"
		}
		jobs := list(t, host, o)
		if len(jobs) != 1 {
			t.Fatalf("%+v", jobs)
		}
		j := jobs[0]
		if j.ID != 1 || j.Status != Exited || string(j.Result) != `{"exit_code":0}` || string(j.Args) != `{"command":"x"}` || j.Description != "a test" ||
			j.EndedAt.Sub(j.StartedAt) != time.Second || j.URI != "skill-output://1" || !strings.HasSuffix(j.Path, "output.log") || j.Bytes != 6 || j.Error != "" {
			t.Errorf("%+v", j)
		}
		if p := read(t, host, o, 1, at(0)); string(p.Data) != "hello\n" || !p.EOF {
			t.Errorf("%+v", p)
		}
	}
}

func TestHowItEnded(t *testing.T) {
	long := strings.Repeat("x", maxResult+1)
	for name, c := range map[string]struct {
		end     End
		stop    string
		why     string
		status  Status
		says    string
		written int
	}{
		"well":                      {End{Result: json.RawMessage(`1`)}, "", "", Exited, "", 0},
		"with an error":             {End{Error: "exit 1"}, "", "", Exited, "exit 1", 0},
		"out of time":               {End{TimedOut: true, Error: "late"}, "", "", TimedOut, "late", 0},
		"revoked":                   {End{Killed: true, Error: "denied"}, "", "", Killed, "denied", 0},
		"asked to stop":             {End{Result: json.RawMessage(`2`)}, "TERM", "", Killed, "", 0},
		"killed":                    {End{}, "KILL", "the host shut down", Killed, "the host shut down", 0},
		"stopped when out of time":  {End{TimedOut: true}, "INT", "", Killed, "", 0},
		"a result that is too long": {End{Result: json.RawMessage(`"` + long + `"`)}, "", "", Exited, "65539 bytes is too long", 0},
		"a result that is none":     {End{Result: json.RawMessage(`{`)}, "", "", Exited, "not JSON", 0},
		"an error that is too long": {End{Error: long}, "", "", Exited, "xxx", 0},
		"too much output":           {End{}, "", "", Killed, "more than 1 MiB of output", 3 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.bounds.Written = 1 << 20
			h := w.host("b1")
			r := begin(t, h, ann)
			if c.stop != "" {
				r.Stop(c.stop, time.Second, c.why)
			}
			r.Go(func(soft, _ context.Context) End {
				for range c.written >> 18 {
					_ = r.append(make([]byte, 1<<18))
				}
				if c.written > 0 {
					<-soft.Done()
				}
				return c.end
			})
			<-r.done
			j := list(t, h, ann)[0]
			if j.Status != c.status || !strings.Contains(j.Error, c.says) || c.says == "" && j.Error != "" || len(j.Error) > maxError {
				t.Errorf("%s, error %.200q", j.Status, j.Error)
			}
			if got := len(j.Result) > 0; got != (len(c.end.Result) > 0 && !strings.Contains(j.Error, "its result")) {
				t.Errorf("result %.40q", j.Result)
			}
		})
	}
}

func TestPanicIsAnError(t *testing.T) {
	h := newWorld(t).host("b1")
	r := begin(t, h, ann)
	r.Go(func(context.Context, context.Context) End { panic("a bug") })
	<-r.done
	if j := list(t, h, ann)[0]; j.Status != Exited || j.Error != "the host failed" {
		t.Errorf("%+v", j)
	}
}

// Who is asked to stop is told how, has its grace and no more, and a second
// demand can only shorten it.
func TestStopOrder(t *testing.T) {
	type demand struct {
		after  time.Duration
		signal string
		grace  time.Duration
	}
	for name, c := range map[string]struct {
		demands []demand
		first   sdk.Stop
		hard    time.Duration // after the first demand
	}{
		"grace":        {[]demand{{0, "TERM", 2 * time.Second}}, sdk.Stop{Signal: "TERM", Grace: 2 * time.Second}, 2 * time.Second},
		"at once":      {[]demand{{0, "KILL", 2 * time.Second}}, sdk.Stop{Signal: "KILL"}, 0},
		"no grace":     {[]demand{{0, "HUP", 0}}, sdk.Stop{Signal: "HUP"}, 0},
		"then at once": {[]demand{{0, "INT", 9 * time.Second}, {time.Second, "KILL", 0}}, sdk.Stop{Signal: "INT", Grace: 9 * time.Second}, time.Second},
		"shorter":      {[]demand{{0, "TERM", 9 * time.Second}, {time.Second, "TERM", time.Second}}, sdk.Stop{Signal: "TERM", Grace: 9 * time.Second}, 2 * time.Second},
		"not longer":   {[]demand{{0, "TERM", time.Second}, {0, "TERM", time.Hour}}, sdk.Stop{Signal: "TERM", Grace: time.Second}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newWorld(t) // t.TempDir outside of the bubble
			synctest.Test(t, func(t *testing.T) {
				h := dir.host("b1")
				r := begin(t, h, ann)
				var soft, hard time.Time
				var told *sdk.Stop
				r.Go(func(s, f context.Context) End {
					<-s.Done()
					soft = time.Now()
					if !errors.As(context.Cause(s), &told) {
						t.Errorf("asked to stop by %v", context.Cause(s))
					}
					<-f.Done()
					hard = time.Now()
					if sdk.KindOf(context.Cause(f)) != sdk.Canceled {
						t.Errorf("ended by force by %v", context.Cause(f))
					}
					return End{}
				})
				time.Sleep(time.Minute)
				began := time.Now()
				for _, d := range c.demands {
					time.Sleep(d.after)
					r.Stop(d.signal, d.grace, "")
				}
				<-r.done
				if soft.Sub(began) != 0 || hard.Sub(began) != c.hard || *told != c.first {
					t.Errorf("asked after %v with %+v, ended by force after %v; want %+v, %v", soft.Sub(began), told, hard.Sub(began), c.first, c.hard)
				}
			})
		})
	}
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h := w.host("b1")
		r := begin(t, h, ann)
		r.Go(polite(r, "x\n"))
		synctest.Wait()
		was, j, err := h.Kill(t.Context(), ann, 1, "TERM", time.Second)
		if err != nil || was != Active || j.Status != Killed || j.Error != "" {
			t.Errorf("%s, %+v, %v", was, j, err)
		}
		if was, j, err = h.Kill(t.Context(), ann, 1, "KILL", 0); err != nil || was != Killed || j.Status != Killed {
			t.Errorf("again: %s, %+v, %v", was, j, err)
		}
		deaf := begin(t, h, ann)
		deaf.Go(func(_, hard context.Context) End { <-hard.Done(); return End{} })
		began := time.Now()
		if _, j, err := h.Kill(t.Context(), ann, 2, "TERM", 3*time.Second); err != nil || j.Status != Killed || time.Since(began) != 3*time.Second {
			t.Errorf("%+v, %v after %v", j, err, time.Since(began))
		}
		rude := begin(t, h, ann)
		let := make(chan struct{})
		rude.Go(func(context.Context, context.Context) End { <-let; return End{} })
		if _, j, err := h.Kill(t.Context(), ann, 3, "KILL", 0); err != nil || j.Status != Active {
			t.Errorf("a job that cannot be ended: %+v, %v", j, err)
		}
		close(let)
		<-rude.done
		_, _, err = h.Kill(t.Context(), ann, 4, "TERM", 0)
		is(t, err, sdk.NotFound, "no job 4")
		call := h.Output(Spec{Owner: ann})
		if _, err := call.Link(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, err = h.Kill(t.Context(), ann, 4, "TERM", 0)
		is(t, err, sdk.Invalid, "no job")
		call.End(End{})
	})
}

// Close leaves nothing behind: the bubble ends only when all goroutines have.
func TestClose(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h := w.host("b1")
		var asked, forced atomic.Int32
		for i := range 3 {
			r := begin(t, h, ann)
			r.Go(func(soft, hard context.Context) End {
				<-soft.Done()
				asked.Add(1)
				if i == 1 {
					<-hard.Done()
					forced.Add(1)
				}
				return End{}
			})
		}
		began := time.Now()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if took := time.Since(began); took != 2*time.Second || asked.Load() != 3 || forced.Load() != 1 {
			t.Errorf("%v, %d asked, %d ended by force", took, asked.Load(), forced.Load())
		}
		for _, j := range list(t, h, ann) {
			if j.Status != Killed || j.Error != "the host shut down" {
				t.Errorf("%+v", j)
			}
		}
		_, err := h.Begin(t.Context(), Spec{Owner: ann})
		is(t, err, sdk.Unavailable, "shutting down")
	})
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		h := w.host("b1")
		let := make(chan struct{})
		r := begin(t, h, ann)
		r.Go(func(context.Context, context.Context) End { <-let; return End{} })
		is(t, h.Close(), sdk.Unavailable, "goes on 5s")
		close(let)
		<-r.done
	})
}

// The cap holds over all hosts, also while many start at the same time, and a
// place is free again when its job has ended or its host has died.
func TestCap(t *testing.T) {
	w := newWorld(t)
	w.bounds.Running = 5
	hosts := []*Tasks{w.host("b1"), w.host("b2")}
	var mu sync.Mutex
	var jobs []*Running
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			r, err := hosts[i%2].Begin(t.Context(), Spec{Owner: ann})
			if err != nil {
				is(t, err, sdk.Limit, "5 jobs run already")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			jobs = append(jobs, r)
		})
	}
	group.Wait()
	if len(jobs) != 5 {
		t.Fatalf("%d run", len(jobs))
	}
	other := ann
	other.Workspace = "/elsewhere"
	begin(t, hosts[0], other).Discard()
	for _, r := range jobs[:2] {
		r.Go(polite(r, ""))
		r.Stop("TERM", 0, "")
		<-r.done
		jobs = append(jobs, begin(t, hosts[0], ann))
	}
	jobs[2].Discard()
	begin(t, hosts[1], ann)
	_, err := hosts[0].Begin(t.Context(), Spec{Owner: ann})
	is(t, err, sdk.Limit)
	w.die("b1")
	alive := begin(t, hosts[1], ann)
	if alive.ID() < 8 {
		t.Errorf("id %d is given out twice", alive.ID())
	}
}

// An end that could not be written frees the place when it is seen.
func TestCapAfterLostEnd(t *testing.T) {
	w := newWorld(t)
	w.bounds.Running = 1
	h := w.host("b1")
	r := begin(t, h, ann)
	let := make(chan struct{})
	r.Go(func(context.Context, context.Context) End { <-let; return End{Result: json.RawMessage(`7`)} })
	w.store.set(errors.New("disk full"))
	close(let)
	<-r.done
	if j := list(t, h, ann)[0]; j.Status != Exited || string(j.Result) != "7" {
		t.Errorf("this process knows better: %+v", j)
	}
	w.store.set(nil)
	if err := h.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := ann
	o.Session = "s2"
	w.die("b1")
	if j := list(t, w.host("b2"), o)[0]; j.Status != Exited || string(j.Result) != "7" {
		t.Errorf("after the sweep: %+v", j)
	}
	begin(t, h, ann).Discard()
	if len(h.live) != 0 {
		t.Errorf("%d are left", len(h.live))
	}
}

func TestBeginFailsCleanly(t *testing.T) {
	w := newWorld(t)
	w.bounds.Running = 1
	h := w.host("b1")
	w.store.set(errors.New("open /var/lib/x: disk full"))
	_, err := h.Begin(t.Context(), Spec{Owner: ann})
	is(t, err, sdk.Unavailable)
	w.store.set(nil)
	dir := h.dir
	h.dir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(h.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = h.Begin(t.Context(), Spec{Owner: ann})
	is(t, err, sdk.Unavailable, "cannot be kept")
	h.dir = dir
	w.empty(t, ann)
	begin(t, h, ann).Discard()
	w.empty(t, ann)
	for _, o := range []Owner{{Caller: "c"}, {Skill: "s"}, {}} {
		_, err := h.Begin(t.Context(), Spec{Owner: o})
		is(t, err, sdk.Internal)
	}
}

// Jobs are told apart by caller, workspace and skill, whatever their names.
func TestOwners(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	r := begin(t, h, ann)
	r.Go(polite(r, "secret\n"))
	for name, o := range map[string]Owner{
		"another skill":     {ann.Caller, ann.Workspace, ann.Session, "other"},
		"another caller":    {"local:bob", ann.Workspace, ann.Session, ann.Skill},
		"another workspace": {ann.Caller, "/w2", ann.Session, ann.Skill},
		"another session":   {ann.Caller, ann.Workspace, "s2", ann.Skill},
		"no session":        {ann.Caller, ann.Workspace, "", ann.Skill},
		"moved border":      {ann.Caller + "/", "w", ann.Session, ann.Skill},
	} {
		if jobs := list(t, h, o); len(jobs) != 0 {
			t.Errorf("%s: %+v", name, jobs)
		}
		_, err := h.Read(t.Context(), o, 1, Reading{Max: DefaultRead})
		is(t, err, sdk.NotFound)
		_, _, err = h.Kill(t.Context(), o, 1, "KILL", 0)
		is(t, err, sdk.NotFound)
	}
	if j := list(t, h, ann)[0]; j.Status != Active {
		t.Errorf("%+v", j)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	o := ann
	o.Session = "s2"
	other := w.host("b2")
	if jobs := list(t, other, o); len(jobs) != 0 {
		t.Errorf("its host lives: %+v", jobs)
	}
	w.die("b1")
	if jobs := list(t, other, o); len(jobs) != 1 || jobs[0].Status != Killed {
		t.Errorf("its host has ended: %+v", jobs)
	}
}

// kill -9 of a host: what it ran is lost, what it wrote is there.
func TestLost(t *testing.T) {
	w := newWorld(t)
	w.bounds.Running = 1
	h := w.host("b1")
	r := begin(t, h, ann)
	if err := r.append([]byte("line\nhalf")); err != nil {
		t.Fatal(err)
	}
	o := ann
	o.Session = "s2"
	other := w.host("b2")
	_, err := other.Read(t.Context(), o, 1, Reading{Max: DefaultRead})
	is(t, err, sdk.NotFound)
	same := w.host("b3") // of the same session, as when it is a task's
	if p := read(t, same, ann, 1, nil); string(p.Data) != "line\n" || p.Status != Active || p.EOF {
		t.Errorf("%+v", p)
	}
	_, _, err = same.Kill(t.Context(), ann, 1, "TERM", 0)
	is(t, err, sdk.Unavailable, "another process")
	w.die("b1")
	if p := read(t, other, o, 1, nil); string(p.Data) != "line\nhalf" || p.Status != Lost || !p.EOF || p.Bytes != 9 || p.EndedAt.IsZero() || p.Error == "" {
		t.Errorf("%+v", p)
	}
	if was, j, err := other.Kill(t.Context(), o, 1, "TERM", 0); err != nil || was != Lost || j.Status != Lost {
		t.Errorf("%s, %+v, %v", was, j, err)
	}
	begin(t, other, o).Discard()
}

// What cannot be found out is not made up.
func TestAliveUnknown(t *testing.T) {
	w := newWorld(t)
	h := w.host("b1")
	begin(t, h, ann)
	other := w.host("b2")
	other.boots = boot.New(other.boots.Self, func(string) (bool, error) { return false, errors.New("permission denied") })
	o := ann
	o.Session = "s2"
	if jobs, err := other.List(t.Context(), o); err == nil {
		t.Errorf("%+v", jobs)
	}
	if j := list(t, h, ann)[0]; j.Status != Active {
		t.Errorf("%+v", j)
	}
}
