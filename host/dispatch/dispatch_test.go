package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

func TestRecords(t *testing.T) {
	h := newHouse(t)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		for range 3 {
			if err := j.Grant.Check(read(h.scope.Workspace + "/x")); err != nil {
				t.Error(err)
			}
		}
		if err := j.Grant.Check(read("/etc/passwd")); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("reading /etc/passwd: %v", err)
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{"a":"x"}`); err != nil {
		t.Fatal(err)
	}
	// env LANG is an access of its own; the three reads are one and a count.
	if got, want := h.log.types(), "start access access access access end"; got != want {
		t.Errorf("records %q, want %q", got, want)
	}
	if last := h.log.events[4]; last.Count != 3 || last.Decision != "allow" {
		t.Errorf("the repeated access is recorded as %+v", last)
	}
	for _, e := range h.log.events {
		if e.Call != h.log.events[0].Call || e.Call == "" {
			t.Errorf("record of another call: %+v", e)
		}
	}
}

// TestRefusals checks that whatever is refused never reaches the guest and is
// on record.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		tool, args, policy string
		kind               sdk.Kind
		says               string
	}{
		"unknown tool":        {"one-x", `{}`, "", sdk.NotFound, "did you mean one-t"},
		"unknown skill":       {"InvokeSkill", `{"skill_name":"onne"}`, "", sdk.NotFound, "did you mean one"},
		"wrong arguments":     {"one-t", `{"a":1}`, "", sdk.Invalid, "/a"},
		"no arguments object": {"one-t", `[]`, "", sdk.Invalid, "object"},
		"skill not allowed":   {"guest.t", `{}`, "[skills.other]\nallow = false\n", sdk.Denied, "skill allow guest"},
		"skill changed":       {"guest.t", `{}`, "[skills.guest]\nallow = true\ndigest = \"sha256:" + strings.Repeat("0", 64) + "\"\n", sdk.Denied, "changed"},
		"tool refused":        {"one-t", `{}`, "[skills.one.tools.one-t]\nallow = false\n", sdk.Denied, "policy.toml:2"},
		"address refused":     {"InvokeSkill", `{"skill_name":"one","tool":"one-t"}`, "[skills.invoke-skill]\nallow = false\n", sdk.Denied, "policy.toml:2"},
		"target refused":      {"InvokeSkill", `{"skill_name":"one","tool":"one-t"}`, "[skills.one]\nallow = false\n", sdk.Denied, "policy.toml:2"},
		"tool denied by _":    {"guest.t", `{}`, "[defaults.tools]\ndeny = [\"guest_t\"]\n", sdk.Denied, "policy.toml:2"},
		"tool denied by __":   {"guest_t", `{}`, "[callers.\"local:me\".tools]\ndeny = [\"guest__t\"]\n", sdk.Denied, "policy.toml:2"},
		"caller refused":      {"one-t", `{}`, "[callers.\"local:me\"]\nallow = false\n", sdk.Denied, "policy.toml:2"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			if c.policy != "" {
				h.setPolicy(t, c.policy)
			}
			h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
				t.Error("the guest ran")
				return sdk.Result{}, nil
			}
			_, err := h.do(t, c.tool, c.args)
			if sdk.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v (%s), want %s with %q", err, sdk.KindOf(err), c.kind, c.says)
			}
			if got := h.log.types(); got != "refuse" {
				t.Errorf("records %q", got)
			}
			if h.log.events[0].Kind != c.kind {
				t.Errorf("recorded as %q", h.log.events[0].Kind)
			}
		})
	}
}

// TestNoRecordNoCall checks that what cannot be recorded does not run, and that
// a lost end is told.
func TestNoRecordNoCall(t *testing.T) {
	h := newHouse(t)
	full := errors.New("no space left on device")
	ran := false
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) { ran = true; return sdk.Text("ok"), nil }
	h.log.fail = func(audit.Event) error { return full }
	if _, err := h.do(t, "one-t", `{}`); !errors.Is(err, full) || sdk.KindOf(err) != sdk.Unavailable || ran {
		t.Errorf("ran %v, error %v", ran, err)
	}
	h.log.fail = func(e audit.Event) error {
		if e.Type == audit.TypeEnd {
			return full
		}
		return nil
	}
	if _, err := h.do(t, "one-t", `{}`); !errors.Is(err, full) || !strings.Contains(err.Error(), "may have had its effect") || !ran {
		t.Errorf("ran %v, error %v", ran, err)
	}
}

func TestSpellings(t *testing.T) {
	h := newHouse(t)
	for _, c := range [][2]string{
		{"guest.t", `{"a":"x"}`}, {"guest_t", `{"a":"x"}`}, {"guest__t", `{"a":"x"}`}, {"guest/t", `{"a":"x"}`},
		{"InvokeSkill", `{"skill_name":"guest","tool":"t","parameters":{"a":"x"}}`},
		{"InvokeSkill", `{"skill_name":"guest.t","arguments":"{\"a\":\"x\"}"}`},
		{"execute", `{"skill_name":"guest","tool_name":"t","parameters":{"a":"x"}}`},
		{"skill-engine/execute", `{"skill_name":"guest","tool_name":"t","parameters":{"a":"x"}}`},
	} {
		h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
			return sdk.Text(j.Input.Tool + string(j.Input.Args)), nil
		}
		r, err := h.do(t, c[0], c[1])
		if err != nil || r.Content[0].Text != `t{"a":"x"}` {
			t.Errorf("%s %s: %v, %v", c[0], c[1], r, err)
		}
	}
}

// TestLayers checks which accesses the layers of a call let through.
func TestLayers(t *testing.T) {
	h := newHouse(t)
	in, out := h.scope.Workspace+"/in/x", h.scope.Workspace+"/x"
	write := func(p string) capability.Access {
		return capability.Access{Kind: capability.Filesystem, Verb: capability.Write, Target: p}
	}
	for name, c := range map[string]struct {
		tool, narrow, policy string
		access               capability.Access
		refuses              string // layer, or "" if allowed
	}{
		"manifest allows":       {"one-t", "", "", write(out), ""},
		"manifest refuses":      {"one-t", "", "", read("/etc/passwd"), "manifest"},
		"tool narrows":          {"one-narrow", "", "", read(out), "manifest"},
		"tool allows":           {"one-narrow", "", "", read(in), ""},
		"tool narrows writing":  {"one-narrow", "", "", write(in), "manifest"},
		"operator narrows":      {"one-t", "", "[skills.one.capabilities]\nfilesystem = [\"read:${workspace}\"]\n", write(out), "operator"},
		"operator allows":       {"one-t", "", "[skills.one.capabilities]\nfilesystem = [\"read:${workspace}\"]\n", read(out), ""},
		"operator cannot widen": {"one-t", "", "[skills.one.capabilities]\nfilesystem = [\"read:/etc\"]\n", read("/etc/passwd"), "manifest"},
		"operator denies":       {"one-t", "", "[skills.one.deny]\nfilesystem = [\"read:${workspace}/in\"]\n", read(in), "operator"},
		"defaults narrow":       {"one-t", "", "[defaults.capabilities]\nfilesystem = []\n", read(in), "operator"},
		"call narrows":          {"one-t", `{"filesystem":["read:${workspace}/in"]}`, "", read(out), "call"},
		"call cannot widen":     {"one-t", `{"filesystem":["read:/etc"]}`, "", read("/etc/passwd"), "manifest"},
		"call allows":           {"one-t", `{"filesystem":["read:${workspace}/in"]}`, "", read(in), ""},
		"call silent on a kind": {"one-t", `{"network":[]}`, "", read(in), ""},
		"a path like the alias": {"one-t", "", "", write("${tmp}x/y"), "host"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			c.access.Target = strings.Replace(c.access.Target, in, h.scope.Workspace+"/in/x", 1)
			c.access.Target = strings.Replace(c.access.Target, out, h.scope.Workspace+"/x", 1)
			if c.policy != "" {
				h.setPolicy(t, c.policy)
			}
			h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
				err := j.Grant.Check(c.access)
				var e *sdk.Error
				switch {
				case err == nil && c.refuses != "":
					t.Errorf("allowed, want %s to refuse", c.refuses)
				case err != nil && (!errors.As(err, &e) || e.Denial == nil || e.Denial.Layer != c.refuses):
					t.Errorf("%v, want layer %q", err, c.refuses)
				}
				return sdk.Text("ok"), nil
			}
			if _, err := h.Call(t.Context(), sdk.Call{Tool: c.tool, Scope: h.scope, Narrow: json.RawMessage(c.narrow)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInvoke checks that a tool passes on no more than it has, that its calls
// are on record as its own, and that they do not go deeper than maxDepth.
func TestInvoke(t *testing.T) {
	h := newHouse(t)
	depth := 0
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Tool == "one-narrow" {
			return h.viaOps(ctx, t, j, "two-t")
		}
		if err := j.Grant.Check(read(h.scope.Workspace + "/x")); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("invoke_widens: the invoked tool may read what its caller may not: %v", err)
		}
		if err := j.Grant.Check(read(h.scope.Workspace + "/in/x")); err != nil {
			t.Error(err)
		}
		return sdk.Text("inner"), nil
	}
	r, err := h.do(t, "one-narrow", `{}`)
	if err != nil || r.Content[0].Text != "inner" {
		t.Fatalf("%v, %v", r, err)
	}
	var parents []string
	for _, e := range h.log.events {
		if e.Type == audit.TypeStart {
			parents = append(parents, e.Parent)
		}
	}
	if len(parents) != 2 || parents[0] != "" || parents[1] != h.log.events[0].Call {
		t.Errorf("parents %q", parents)
	}
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		depth++
		return h.viaOps(ctx, t, j, "one-t")
	}
	if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Limit || depth != maxDepth {
		t.Errorf("invoke_for_ever: %d deep, %v", depth, err)
	}
}

// viaOps invokes a tool as a guest does.
func (h *house) viaOps(ctx context.Context, t *testing.T, j executor.Job, tool string) (sdk.Result, error) {
	t.Helper()
	f, err := sdk.ParseFrame(sdk.AppendFrame(nil, fmt.Appendf(nil, `{"op":"invoke","tool":%q,"args":{}}`, tool)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := j.Ops.Do(ctx, f)
	if err != nil {
		return sdk.Result{}, err
	}
	return sdk.ParseResult(b)
}

func TestDeadlines(t *testing.T) {
	wait := func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		<-j.Soft.Done()
		<-ctx.Done()
		return sdk.Result{}, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	t.Run("timeout", func(t *testing.T) {
		h := newHouse(t)
		h.guest.run = wait
		if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "limits.timeout") {
			t.Error(err)
		}
	})
	t.Run("partial output restarts the clock", func(t *testing.T) {
		h := newHouse(t)
		began := time.Now()
		h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			for ctx.Err() == nil {
				j.Emit(sdk.Event{Kind: sdk.EventPartial})
				time.Sleep(10 * time.Millisecond)
			}
			return sdk.Result{}, context.Cause(ctx)
		}
		_, err := h.do(t, "one-t", `{}`)
		if took := time.Since(began); sdk.KindOf(err) != sdk.Limit || took < 400*time.Millisecond {
			t.Errorf("ended after %v with %v, want max_timeout", took, err)
		}
	})
	t.Run("the caller goes away", func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancel(t.Context())
		h.guest.run = func(hard context.Context, j executor.Job) (sdk.Result, error) {
			cancel()
			return wait(hard, j)
		}
		_, err := h.Call(ctx, sdk.Call{Tool: "one-t", Scope: h.scope}, nil)
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(h.log.types(), "end") {
			t.Errorf("%v, records %q", err, h.log.types())
		}
	})
	t.Run("panic", func(t *testing.T) {
		h := newHouse(t)
		h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) { panic("a bug") }
		if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Internal || h.log.types() != "start access end" {
			t.Errorf("%v, records %q", err, h.log.types())
		}
	})
}

func TestConcurrency(t *testing.T) {
	h := newHouse(t)
	var mu sync.Mutex
	running, most := 0, 0
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return sdk.Text("ok"), nil
	}
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			if _, err := h.do(t, "one-t", `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most != 2 {
		t.Errorf("%d ran at a time, want 2", most)
	}
}

// TestRevoke checks that what the operator takes away is gone for calls that
// run already.
func TestRevoke(t *testing.T) {
	h := newHouse(t)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		target := read(h.scope.Workspace + "/x")
		if err := j.Grant.Check(target); err != nil {
			t.Error(err)
		}
		h.setPolicy(t, "[skills.one.deny]\nfilesystem = [\"read:${workspace}\"]\n")
		if err := j.Grant.Check(target); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("denied meanwhile, but %v", err)
		}
		h.setPolicy(t, "[skills.one]\nallow = false\n")
		if err := j.Grant.Check(target); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("the skill was refused meanwhile, but %v", err)
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Error(err)
	}
}

// TestOutput checks results against the schema that the tool promises.
func TestOutput(t *testing.T) {
	h := newHouse(t)
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		return sdk.Result{Structured: json.RawMessage(`{"n":"seven"}`)}, nil
	}
	if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Guest {
		t.Errorf("a broken promise gives %v", err)
	}
}

// TestDenialIsTold checks that a tool's failure carries what it was denied,
// with the line that would allow it.
func TestDenialIsTold(t *testing.T) {
	for name, answer := range map[string]func() (sdk.Result, error){
		"failed result": func() (sdk.Result, error) { return sdk.Result{Failed: true}, nil },
		"guest error":   func() (sdk.Result, error) { return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "exit 1"} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
				_ = j.Grant.Check(read("/etc/passwd"))
				return answer()
			}
			r, err := h.do(t, "one-t", `{}`)
			text := fmt.Sprint(r, err)
			for _, want := range []string{`filesystem = ["write:${workspace}", "read:/etc/passwd"]`, "manifest", "[capabilities]"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
		})
	}
}

func TestTmp(t *testing.T) {
	h := newHouse(t)
	var dir string
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		var err error
		if dir, err = j.Dirs.Tmp(); err != nil {
			return sdk.Result{}, err
		}
		if again, err := j.Dirs.Tmp(); err != nil || again != dir {
			t.Errorf("a second directory %q, %v", again, err)
		}
		return sdk.Text("ok"), os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func BenchmarkCorridor(b *testing.B) {
	h := houseOf(b, strings.Replace(manifestText, "env = [\"LANG\"]\n", "", 1)) // which is an access of its own
	dir := b.TempDir()
	log, err := audit.Open(audit.Options{Dir: dir, Key: filepath.Join(b.TempDir(), "key")})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	h.Audit = log
	call := sdk.Call{Tool: "guest.t", Args: json.RawMessage(`{"a":"x"}`), Scope: h.scope}
	b.Run("Plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Plan(call); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Call", func(b *testing.B) {
		b.ReportAllocs()
		took := make([]time.Duration, 0, 1<<20)
		for b.Loop() {
			began := time.Now()
			if _, err := h.Call(b.Context(), call, nil); err != nil {
				b.Fatal(err)
			}
			if len(took) < cap(took) {
				took = append(took, time.Since(began))
			}
		}
		slices.Sort(took) // the mean has the log's new pages in it, and whatever else the machine does
		b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	})
}
