package executor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// fake is an executor whose loads the test lets go on.
type fake struct {
	loads, closes atomic.Int32
	gate          chan struct{} // a load waits for it, if it is not nil
	fail          atomic.Bool
	panics        bool
}

func (*fake) Enforces() []capability.Kind {
	return []capability.Kind{capability.Filesystem, capability.Network}
}

func (f *fake) Load(ctx context.Context, s *manifest.Skill) (executor.Program, error) {
	f.loads.Add(1)
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	switch {
	case f.panics:
		panic("hostile")
	case f.fail.Load():
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "bad module"}
	}
	return &fakeProgram{fake: f}, nil
}

type fakeProgram struct {
	fake   *fake
	closed atomic.Bool
}

func (*fakeProgram) Run(context.Context, executor.Job) (sdk.Result, error) { return sdk.Result{}, nil }

func (p *fakeProgram) Close() error {
	if p.closed.Swap(true) {
		return errors.New("closed twice")
	}
	p.fake.closes.Add(1)
	return nil
}

func skill(digest string) *manifest.Skill {
	return &manifest.Skill{About: manifest.About{Name: "s"}, Runtime: "fake", Home: manifest.Home{Digest: digest, File: "skill.toml"}}
}

func programs(f *fake) *executor.Programs {
	return executor.NewPrograms(map[string]executor.Executor{"fake": f})
}

func TestLeaseOnce(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	p := programs(f)
	var wg sync.WaitGroup
	got := make(chan executor.Program, 20)
	for range 20 {
		wg.Go(func() {
			prog, release, err := p.Lease(t.Context(), skill("a"))
			if err != nil {
				t.Error(err)
				return
			}
			got <- prog
			release()
			release()
		})
	}
	close(f.gate)
	wg.Wait()
	close(got)
	first := <-got
	for prog := range got {
		if prog != first {
			t.Error("two programs of one digest")
		}
	}
	if _, release, err := p.Lease(t.Context(), skill("b")); err != nil {
		t.Error(err)
	} else {
		release()
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if f.loads.Load() != 2 || f.closes.Load() != 2 {
		t.Errorf("%d loads, %d closes; want 2 and 2", f.loads.Load(), f.closes.Load())
	}
	if _, _, err := p.Lease(t.Context(), skill("a")); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("after Close: %v, want kind unavailable", err)
	}
}

// A program that is dropped closes with its last lease, and not before.
func TestDropWaitsForLeases(t *testing.T) {
	f := &fake{}
	p := programs(f)
	_, release1, err1 := p.Lease(t.Context(), skill("a"))
	old, release2, err2 := p.Lease(t.Context(), skill("a"))
	if err := errors.Join(err1, err2, p.Drop("a"), p.Drop("a"), p.Drop("unknown")); err != nil {
		t.Fatal(err)
	}
	release1()
	if f.closes.Load() != 0 {
		t.Error("closed under a lease")
	}
	again, release3, err := p.Lease(t.Context(), skill("a"))
	if err != nil || again == old {
		t.Errorf("after Drop: the same program, or %v", err)
	}
	release2()
	if f.closes.Load() != 1 {
		t.Error("not closed after the last lease")
	}
	release3()
	if err := p.Drop("a"); err != nil || f.closes.Load() != 2 {
		t.Errorf("an idle program is not closed at once: %v", err)
	}
	if err := p.Close(); err != nil || f.closes.Load() != 2 {
		t.Errorf("closed %d times, %v", f.closes.Load(), err)
	}
}

// A program that is dropped while it loads is closed if nobody waits for it.
func TestDropWhileLoading(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	p := programs(f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Lease(ctx, skill("a")); sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v, want kind canceled", err)
	}
	if err := p.Drop("a"); err != nil {
		t.Error(err)
	}
	close(f.gate)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if f.loads.Load() > f.closes.Load()+1 { // Close may have ended the load instead
		t.Errorf("%d loads, %d closes", f.loads.Load(), f.closes.Load())
	}
}

// Close ends a load that would go on for ever.
func TestCloseEndsLoads(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	p := programs(f)
	done := make(chan error)
	go func() {
		_, _, err := p.Lease(context.Background(), skill("a"))
		done <- err
	}()
	for f.loads.Load() == 0 {
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("a lease on a program that did not load")
	}
}

// A failure is told to all who wait for it, and is not kept.
func TestFailureIsNotKept(t *testing.T) {
	f := &fake{}
	f.fail.Store(true)
	p := programs(f)
	for range 2 {
		if _, _, err := p.Lease(t.Context(), skill("a")); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("got %v, want kind invalid", err)
		}
	}
	f.fail.Store(false)
	_, release, err := p.Lease(t.Context(), skill("a"))
	if err != nil || f.loads.Load() != 3 {
		t.Fatalf("%v after %d loads", err, f.loads.Load())
	}
	release()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoadPanic(t *testing.T) {
	p := programs(&fake{panics: true})
	if _, _, err := p.Lease(t.Context(), skill("a")); sdk.KindOf(err) != sdk.Internal {
		t.Errorf("got %v, want kind internal", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A skill that its runtime cannot hold to its manifest does not load.
func TestLeaseRefuses(t *testing.T) {
	needs := func(kind capability.Kind, entry string) *manifest.Skill {
		s := skill("a")
		c, err := capability.Parse(kind, entry, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		s.Needs.Allow = capability.Set{c}
		return s
	}
	unknown := skill("a")
	unknown.Runtime = "container"
	secret := skill("a")
	secret.Secrets = []manifest.Secret{{Name: "TOKEN"}}
	for name, c := range map[string]struct {
		skill *manifest.Skill
		says  string // "" if it loads
	}{
		"unknown_runtime": {unknown, "this host has fake"},
		"no_digest":       {skill(""), "digest"},
		"exec":            {needs(capability.Exec, "git"), "exec"},
		"env":             {needs(capability.Env, "LANG"), "env"},
		"client":          {needs(capability.Client, "sampling"), "client"},
		"secret":          {secret, "secrets"},
		"filesystem":      {needs(capability.Filesystem, "read:/data"), ""},
		"network":         {needs(capability.Network, "example.com"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := programs(&fake{})
			_, release, err := p.Lease(t.Context(), c.skill)
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				release()
			} else if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error of kind invalid that says %q", err, c.says)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// fixed is an executor whose guests' rules cannot change.
type fixed struct{ *fake }

func (fixed) Fixed() {}

func TestFixed(t *testing.T) {
	p := executor.NewPrograms(map[string]executor.Executor{"fake": &fake{}, "native": fixed{&fake{}}})
	for runtime, want := range map[string]bool{"fake": false, "native": true, "unknown": false} {
		if got := p.Fixed(&manifest.Skill{Runtime: runtime}); got != want {
			t.Errorf("runtime %s: %v, want %v", runtime, got, want)
		}
	}
}
