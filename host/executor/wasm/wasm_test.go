package wasm

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/executortest"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// probes are built once for all tests.
var probes = struct {
	sync.Mutex
	built map[executortest.Form][]byte
}{built: map[executortest.Form][]byte{}}

func probe(t testing.TB, form executortest.Form) []byte {
	t.Helper()
	probes.Lock()
	defer probes.Unlock()
	if probes.built[form] == nil {
		probes.built[form] = executortest.Build(t, form)
	}
	return probes.built[form]
}

// cacheDir lets the tests that run the probe compile it once.
var cacheDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wasm-")
	if err != nil {
		panic(err)
	}
	cacheDir = filepath.Join(dir, "cache")
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func newExecutor(t testing.TB) *Executor { return newCached(t, "") }

func newCached(t testing.TB, dir string) *Executor {
	x := New(Options{CacheDir: dir})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// skillOf returns a skill of one module and the tool "probe".
func skillOf(abi string, module []byte) *manifest.Skill {
	s := &manifest.Skill{
		About: manifest.About{Name: "probe", Version: "1.0.0"}, Runtime: "wasm", ABI: abi, Source: "probe.wasm",
		Tools:  []manifest.Tool{{Tool: sdk.Tool{Name: "probe", Input: []byte(`{"type":"object"}`)}, Limits: manifest.DefaultLimits}},
		Needs:  capability.Layer{Name: "manifest", Closed: true},
		Limits: manifest.DefaultLimits,
		Home:   manifest.Home{Files: fstest.MapFS{"probe.wasm": {Data: module}}, File: "skill.toml"},
	}
	return s
}

func load(t testing.TB, x *Executor, s *manifest.Skill) executor.Program {
	t.Helper()
	p, err := x.Load(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// jobOf returns a job without any permission.
func jobOf(args string) executor.Job {
	return executor.Job{
		Input:  sdk.Input{Tool: "probe", Args: []byte(args), Timeout: time.Minute},
		Limits: manifest.DefaultLimits,
		Dirs:   executor.Dirs{Tmp: func() (string, error) { return "", errNoTmp }},
		Soft:   context.Background(),
		Ops:    executor.NoOps{},
		Emit:   func(sdk.Event) {},
	}
}

func TestPromises(t *testing.T) {
	for _, form := range []executortest.Form{executortest.Skill, executortest.Command} {
		t.Run(string(form), func(t *testing.T) {
			p := load(t, newCached(t, cacheDir), skillOf(string(form), probe(t, form)))
			executortest.Run(t, executortest.Target{Program: p, Form: form})
		})
	}
}
