package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// small builds examples/plugin-go, a plugin of usual size, as a skill.
func small(t testing.TB, isolation string) *manifest.Skill {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "plugin"), "github.com/skillhost/skill/examples/plugin-go")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := skillOf("plugin")
	s.Home.Builtin, s.Home.Files, s.Home.Dir = false, os.DirFS(dir), ""
	s.Sandbox.Isolation = isolation
	s.Tools = nil
	return s
}

// open is Load without a comparison, which the manifest of small would fail.
func open(t testing.TB, x *Executor, s *manifest.Skill) *program {
	t.Helper()
	p, err := x.open(s)
	if err != nil {
		t.Fatal(err)
	}
	p.agreed = true
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func one(t testing.TB, p *program) {
	t.Helper()
	j := executor.Job{Input: sdk.Input{Tool: "none", Args: []byte(fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", 100)))},
		Limits: limits(), Ops: executor.NoOps{}, Emit: func(sdk.Event) {}}
	if _, err := p.Run(t.Context(), j); sdk.KindOf(err) != sdk.NotFound { // the plugin's own answer
		t.Fatal(err)
	}
}

func p50(b *testing.B, do func()) {
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		begun := time.Now()
		do()
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
}

// BenchmarkSpawn: from nothing to the answer of the first call, and the end.
func BenchmarkSpawn(b *testing.B) {
	p := open(b, inCages(b, sandbox.Strict), small(b, "fresh"))
	p50(b, func() { one(b, p) })
}

// BenchmarkStart: from nothing to a process that may be called.
func BenchmarkStart(b *testing.B) {
	x := inCages(b, sandbox.Strict)
	p := open(b, x, small(b, "fresh"))
	p50(b, func() {
		pl, err := x.cages.plan(p.skill, executor.Job{Limits: limits()})
		if err != nil {
			b.Fatal(err)
		}
		proc, err := x.spawn(b.Context(), p, pl)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		proc.close()
		b.StartTimer()
	})
}

// BenchmarkReady: the same with a process that waits for the call.
func BenchmarkReady(b *testing.B) {
	p := open(b, inCages(b, sandbox.Strict), small(b, "call"))
	one(b, p)
	times := []time.Duration{}
	for b.Loop() {
		time.Sleep(30 * time.Millisecond)
		begun := time.Now()
		one(b, p)
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
}

// BenchmarkWarm: a call of 100 bytes in a process of a session.
func BenchmarkWarm(b *testing.B) {
	p := open(b, inCages(b, sandbox.Strict), small(b, "session"))
	one(b, p)
	p50(b, func() { one(b, p) })
}

// BenchmarkTransport is what BenchmarkWarm costs without this package: one
// message each way, of the same sizes, on a stream that is there already.
func BenchmarkTransport(b *testing.B) {
	x := inCages(b, sandbox.Strict)
	p := open(b, x, small(b, "session"))
	one(b, p)
	s, err := x.pool.all[0].stream(b.Context(), 1<<20)
	if err != nil {
		b.Fatal(err)
	}
	body := sdk.AppendFrame(nil, []byte(fmt.Sprintf(`{"tool":"none","args":{"text":"%s"}}`, strings.Repeat("x", 100))))
	p50(b, func() {
		err := s.SendMsg(&wire.Message{Kind: wire.Kind_CALL, Body: body})
		if err == nil {
			err = s.RecvMsg(&wire.Message{})
		}
		if err != nil {
			b.Fatal(err)
		}
	})
}

// TestIdleMemory: a plugin that waits for its first call is small.
func TestIdleMemory(t *testing.T) {
	x := inCages(t, sandbox.Strict)
	p := open(t, x, small(t, "session"))
	one(t, p)
	x.pool.mu.Lock()
	pid := x.pool.all[0].guest.Pid()
	x.pool.mu.Unlock()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			t.Logf("%d KiB", kb)
			if kb > 20<<10 {
				t.Errorf("%d KiB resident, want at most 20 MiB", kb)
			}
			return
		}
	}
	t.Errorf("no size in %s", status)
}
