package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/skillhost/skill/host/policy"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// TestFloodHidesNothing: a guest that first touches a thousand files that
// matter to nobody must not thereby hide what it touches afterwards.
func TestFloodHidesNothing(t *testing.T) {
	h := newHouse(t)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		for i := range maxTargets + 5 {
			_ = j.Grant.Check(read(fmt.Sprintf("%s/%d", h.scope.Workspace, i)))
		}
		_ = j.Grant.Check(read("/etc/shadow"))
		_ = j.Grant.Check(capability.Access{Kind: capability.Secrets, Verb: capability.Use, Target: "TOKEN"})
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"deny filesystem.read /etc/shadow", "deny secrets.use TOKEN"} {
		found := false
		for _, e := range h.log.events {
			found = found || strings.Contains(e.Decision+" "+e.Access+" "+e.Target, want)
		}
		if !found {
			t.Errorf("audit_flood: %q is not on record", want)
		}
	}
}

// TestInvokeByAddress: a tool that may not invoke another one may not do so by
// way of InvokeSkill or of another spelling either.
func TestInvokeByAddress(t *testing.T) {
	h := newHouse(t)
	h.setPolicy(t, "[dangerous]\nallow = [\"invoke:*\"]\n[skills.one.deny]\ninvoke = [\"two-t\", \"two.two-t\"]\n[skills.guest]\nallow = false\n")
	var ran string
	for _, header := range []string{
		`{"op":"invoke","tool":"two-t","args":{}}`,
		`{"op":"invoke","tool":"InvokeSkill","args":{"skill_name":"two","tool":"two-t"}}`,
		`{"op":"invoke","tool":"execute","args":{"skill_name":"two","tool":"two-t"}}`,
		`{"op":"invoke","tool":"skill-engine/execute","args":{"skill_name":"two","tool":"two-t"}}`,
		`{"op":"invoke","tool":"skill-engine/two-t","args":{}}`,
	} {
		ran = ""
		h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			if j.Input.Tool != "one-t" {
				ran = j.Input.Tool
				return sdk.Text("inner"), nil
			}
			f, err := sdk.ParseFrame(sdk.AppendFrame(nil, []byte(header)))
			if err != nil {
				t.Fatal(err)
			}
			b, err := j.Ops.Do(ctx, f)
			if err != nil {
				return sdk.Result{}, err
			}
			return sdk.ParseResult(b)
		}
		_, err := h.do(t, "one-t", `{}`)
		if ran != "" {
			t.Errorf("invoke_by_address: %s ran %s, which is denied (%v)", header, ran, err)
		}
	}
}

// TestInvokeDeniedBySpelling: a deny list holds however it spells a tool.
func TestInvokeDeniedBySpelling(t *testing.T) {
	for _, entry := range []string{"guest.t", "guest_t", "guest__t", "guest/t", "guest.*"} {
		for _, header := range []string{
			`{"op":"invoke","tool":"guest.t","args":{}}`,
			`{"op":"invoke","tool":"guest__t","args":{}}`,
			`{"op":"invoke","tool":"InvokeSkill","args":{"skill_name":"guest","tool":"t"}}`,
		} {
			h := newHouse(t)
			digest := h.Catalog.Of("guest")[0].Skill.Home.Digest
			h.setPolicy(t, fmt.Sprintf("[dangerous]\nallow = [\"invoke:*\"]\n[skills.guest]\nallow = true\ndigest = %q\n[skills.one.deny]\ninvoke = [%q]\n", digest, entry))
			h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
				if j.Input.Tool == "t" {
					t.Errorf("invoke_denied_by_spelling: %s ran what %q denies", header, entry)
					return sdk.Text("inner"), nil
				}
				b, err := j.Ops.Do(ctx, sdk.Frame{Header: json.RawMessage(header)})
				if err != nil {
					return sdk.Result{}, err
				}
				return sdk.ParseResult(b)
			}
			if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Denied {
				t.Errorf("%q against %s: %v", entry, header, err)
			}
		}
	}
}

// nest makes the guest invoke tool with args, n times at once.
func nest(ctx context.Context, t *testing.T, j executor.Job, tool, args string, n int) []error {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			b, err := j.Ops.Do(ctx, sdk.Frame{Header: json.RawMessage(fmt.Sprintf(`{"op":"invoke","tool":%q,"args":%s}`, tool, args))})
			if err == nil {
				_, err = sdk.ParseResult(b)
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errs
}

// TestInvokeFlood: a tool must not get around its concurrency by invoking itself.
func TestInvokeFlood(t *testing.T) {
	h := newHouse(t)
	var now, most atomic.Int32
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		switch string(j.Input.Args) {
		case `{}`:
			nest(ctx, t, j, "one-t", `{"a":"mid"}`, 10)
		case `{"a":"mid"}`:
			nest(ctx, t, j, "one-t", `{"a":"leaf"}`, 3)
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
	if most.Load() > maxDepth {
		t.Errorf("invoke_flood: %d ran at a time", most.Load())
	}
}

// TestInvokeCycle: tools that wait for each other's slots are told so.
func TestInvokeCycle(t *testing.T) {
	h := houseOf(t, strings.NewReplacer(`timeout = "150ms"`, `timeout = "30s"`, `max_timeout = "600ms"`, `max_timeout = "1m"`).Replace(manifestText))
	var all sync.WaitGroup
	all.Add(4)
	var refused atomic.Int32
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if string(j.Input.Args) != `{}` {
			return sdk.Text("leaf"), nil
		}
		all.Done()
		all.Wait()
		other := map[string]string{"one-t": "two-t", "two-t": "one-t"}[j.Input.Tool]
		for _, err := range nest(ctx, t, j, other, `{"a":"leaf"}`, 1) {
			if sdk.KindOf(err) == sdk.Limit {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		}
		return sdk.Text("ok"), nil
	}
	var group sync.WaitGroup
	for _, tool := range []string{"one-t", "two-t", "one-t", "two-t"} {
		group.Go(func() {
			if _, err := h.do(t, tool, `{}`); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if refused.Load() == 0 {
		t.Error("nobody was refused, though all slots were taken")
	}
}

// TestRevokedWhileQueued: a call that waited for a slot does not run under
// rules that are gone.
func TestRevokedWhileQueued(t *testing.T) {
	h := newHouse(t)
	hold, started := make(chan struct{}), make(chan struct{}, 8)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		started <- struct{}{}
		if string(j.Input.Args) == `{"a":"hold"}` {
			<-hold
		}
		return sdk.Text("ran"), nil
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() { _, _ = h.do(t, "guest.t", `{"a":"hold"}`) })
		<-started
	}
	queued := make(chan error, 1)
	go func() { _, err := h.do(t, "guest.t", `{}`); queued <- err }()
	for g := h.gate(h.Catalog.Of("guest")[0].Skill); g.waiting.Load() == 0; {
		time.Sleep(time.Millisecond)
	}
	h.setPolicy(t, "[skills.guest]\nallow = false\n")
	close(hold)
	if err := <-queued; sdk.KindOf(err) != sdk.Denied {
		t.Errorf("revoked_while_queued: %v", err)
	}
	group.Wait()
}

// TestRevokedParent: what a revoked tool has invoked loses its accesses too.
func TestRevokedParent(t *testing.T) {
	h := newHouse(t)
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		if j.Input.Tool == "t" {
			nest(ctx, t, j, "one-t", `{}`, 1)
			return sdk.Text("ok"), nil
		}
		if err := j.Grant.Check(read(h.scope.Workspace + "/x")); err != nil {
			t.Error(err)
		}
		h.setPolicy(t, "[skills.guest]\nallow = false\n")
		if err := j.Grant.Check(read(h.scope.Workspace + "/x")); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("revoked_parent: %v", err)
		}
		if _, err := j.Ops.Do(ctx, sdk.Frame{Header: json.RawMessage(`{"op":"time"}`)}); err == nil {
			b, _ := j.Ops.Do(ctx, sdk.Frame{Header: json.RawMessage(`{"op":"time"}`)})
			if _, err := sdk.ParseResult(b); sdk.KindOf(err) != sdk.Denied {
				t.Errorf("revoked_parent: an operation still works: %v", err)
			}
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "guest.t", `{}`); err != nil {
		t.Error(err)
	}
}

// TestEnvIsNoDenial: a variable that the operator withholds does not make the
// tool's own failure look like a denial.
func TestEnvIsNoDenial(t *testing.T) {
	h := newHouse(t)
	h.setPolicy(t, "[defaults.capabilities]\nenv = []\n")
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		if len(j.Input.Env) > 0 {
			t.Errorf("given %v", j.Input.Env)
		}
		return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "division by zero"}
	}
	if _, err := h.do(t, "one-t", `{}`); sdk.KindOf(err) != sdk.Guest || strings.Contains(err.Error(), "denied") {
		t.Errorf("%s: %v", sdk.KindOf(err), err)
	}
}

// TestOptionalPathAppears: a path that was allowed with "?" is allowed when it
// comes to exist.
func TestOptionalPathAppears(t *testing.T) {
	h := houseOf(t, strings.Replace(manifestText, `filesystem = ["write:${workspace}"]`, `filesystem = ["read:${workspace}/later?", "read:${workspace}/in"]`, 1))
	allowed := false
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		allowed = j.Grant.Check(read(h.scope.Workspace+"/later/x")) == nil
		return sdk.Text("ok"), nil
	}
	for _, want := range []bool{false, true} {
		if _, err := h.do(t, "one-t", `{}`); err != nil {
			t.Fatal(err)
		}
		if allowed != want {
			t.Errorf("allowed %v, want %v", allowed, want)
		}
		if err := os.MkdirAll(filepath.FromSlash(h.scope.Workspace+"/later"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecretSources: where the value of a secret comes from is not readable,
// whatever is granted.
func TestSecretSources(t *testing.T) {
	h := newHouse(t)
	h.Hidden = func(*policy.Policy) capability.Layer {
		return capability.Layer{Name: "operator", Deny: capability.Set{
			{Kind: capability.Filesystem, Verb: capability.Read, Pattern: h.scope.Workspace + "/token"},
			{Kind: capability.Env, Verb: capability.Read, Pattern: "LANG"},
		}}
	}
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		if err := j.Grant.Check(read(h.scope.Workspace + "/token")); sdk.KindOf(err) != sdk.Denied || len(j.Input.Env) > 0 {
			t.Errorf("secret_source: %v, env %v", err, j.Input.Env)
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "one-t", `{}`); err != nil {
		t.Fatal(err)
	}
}

func TestQuestionURLs(t *testing.T) {
	for u, ok := range map[string]bool{"https://example.com/x": true, "http://localhost:1/": true, "javascript:alert(1)": false, "file:///etc/passwd": false, "https://a@b/": false, "": false} {
		if err := askable(sdk.Question{Kind: sdk.QuestionURL, URL: u}); (err == nil) != ok {
			t.Errorf("%q: %v", u, err)
		}
	}
	if askable(sdk.Question{Kind: "other"}) == nil {
		t.Error("a question of unknown kind")
	}
}
