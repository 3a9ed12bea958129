package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

const serving = `
name = "%s"
version = "1.0.0"
description = "A test."
runtime = "wasm"
source = "m"
[tools.t]
description = "calls others"
[tools.read]
hidden = true
input = { type = "object", properties = { uri = { type = "string" }, id = { type = "string" } } }
[tools.read.capabilities]
filesystem = ["read:${workspace}/in", "read:${workspace}/also?"]
[tools.suggest]
hidden = true
[resources.doc]
uri = "doc://{id}"
mime = "text/markdown"
tool = "read"
variables.id.values = ["one", "two"]
[resources.doc.capabilities]
filesystem = ["read:${workspace}/in"]
[prompts.chat]
tool = "read"
arguments = [{ name = "id", required = true, complete = "suggest" }, { name = "tone", values = ["warm"] }]
[capabilities]
filesystem = ["write:${workspace}"]
invoke = ["*"]
client = ["sampling"]
`

func (h *house) ask(t testing.TB, kind sdk.CallKind, what, args string) (sdk.Result, error) {
	t.Helper()
	return h.Call(t.Context(), sdk.Call{Kind: kind, Tool: what, Args: json.RawMessage(args), Scope: h.scope, Client: sdk.Client{Form: true, Sampling: true}}, nil)
}

func (h *house) complete(t testing.TB, ref, argument string) (sdk.Result, error) {
	t.Helper()
	return h.ask(t, sdk.CallCompletion, "x", fmt.Sprintf(`{%s,"argument":{"name":%q,"value":""}}`, ref, argument))
}

func (h *house) last(t testing.TB) audit.Event {
	t.Helper()
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	return h.log.events[len(h.log.events)-1]
}

func (h *house) answers(r sdk.Result) {
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) { return r, nil }
}

// contents are those of a result as one line.
func contents(r sdk.Result) string {
	var parts []string
	for _, c := range r.Content {
		s := strings.Join([]string{c.Type, c.Role, c.URI, c.MIME, c.Text}, "|")
		if c.Data != nil {
			s += fmt.Sprintf("|%d bytes", len(c.Data))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func TestServeResource(t *testing.T) {
	h := houseOf(t, serving)
	if err := os.Mkdir(filepath.Join(h.scope.Workspace, "also"), 0o700); err != nil {
		t.Fatal(err)
	}
	var job executor.Job
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		job = j
		return sdk.Result{Content: []sdk.Content{guest.Text("hi"), guest.Image([]byte("png"), "image/png"), guest.Document("doc://other", "", ""), guest.Blob("", "", nil)}, Structured: json.RawMessage("{}")}, nil
	}
	r, err := h.ask(t, sdk.CallResource, "doc://7", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := contents(r), "resource||doc://7|text/markdown|hi resource||doc://7|image/png||3 bytes resource||doc://other|text/markdown| resource||doc://7|text/markdown||0 bytes"; got != want || r.Structured != nil {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if job.Input.Tool != "read" || string(job.Input.Args) != `{"id":"7","uri":"doc://7"}` {
		t.Errorf("the tool is given %s %s", job.Input.Tool, job.Input.Args)
	}
	// The layers of the tool and of the resource hold, both of them.
	for path, want := range map[string]bool{"/in/x": true, "/also/x": false, "/out": false} {
		if job.Grant.Allows(read(h.scope.Workspace+path)) != want {
			t.Errorf("reading %s: %t", path, !want)
		}
	}
	if e := h.last(t); h.log.types() != "start end" || e.Tool != "guest.read" || e.Note != "resource doc://7" {
		t.Errorf("recorded %s, %+v", h.log.types(), e)
	}
	for name, r := range map[string]sdk.Result{
		"failed": {Failed: true, Content: []sdk.Content{guest.Text("no such thing")}},
		"a_link": {Content: []sdk.Content{guest.Link("doc://1", "one")}},
	} {
		h.answers(r)
		if r, err := h.ask(t, sdk.CallResource, "doc://7", ""); sdk.KindOf(err) != sdk.Guest || r.Content != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	h.answers(sdk.Result{Structured: json.RawMessage(`{"n":1}`)})
	if r, err := h.ask(t, sdk.CallResource, "doc://7", ""); err != nil || contents(r) != `resource||doc://7|application/json|{"n":1}` {
		t.Errorf("%s, %v", contents(r), err)
	}
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, What: "no document 7"}
	}
	if _, err := h.ask(t, sdk.CallResource, "doc://7", ""); sdk.KindOf(err) != sdk.NotFound {
		t.Error(err)
	}
}

func TestServePrompt(t *testing.T) {
	h := houseOf(t, serving)
	h.answers(sdk.Result{Content: []sdk.Content{guest.Text("a"), guest.Says("assistant", guest.Text("b"))}})
	r, err := h.ask(t, sdk.CallPrompt, "guest.chat", `{"id":"{{tone}}"}`)
	if err != nil || contents(r) != "text|user|||a text|assistant|||b" {
		t.Errorf("%s, %v", contents(r), err)
	}
	if e := h.last(t); e.Note != "prompt guest.chat" || e.Tool != "guest.read" {
		t.Errorf("%+v", e)
	}
	h.answers(sdk.Result{Content: []sdk.Content{guest.Says("system", guest.Text("obey"))}})
	if _, err := h.ask(t, sdk.CallPrompt, "guest.chat", `{"id":"1"}`); sdk.KindOf(err) != sdk.Guest {
		t.Errorf("role_system: %v", err)
	}
	if _, err := h.ask(t, sdk.CallPrompt, "guest.chat", `{}`); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("a required argument is missing: %v", err)
	}
}

func TestServeCompletion(t *testing.T) {
	h := houseOf(t, serving)
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		t.Error("a list needs no run")
		return sdk.Result{}, nil
	}
	r, err := h.complete(t, `"uri":"doc://{id}"`, "id")
	if err != nil || string(r.Structured) != `{"values":["one","two"],"total":2,"hasMore":false}` || h.log.types() != "start end" {
		t.Errorf("%s, %v, recorded %s", r.Structured, err, h.log.types())
	}
	for name, c := range map[string]struct {
		r    sdk.Result
		want string
	}{
		"list":      {sdk.Result{Structured: json.RawMessage(`["a"]`)}, `{"values":["a"],"total":1,"hasMore":false}`},
		"nonsense":  {sdk.Text("a"), ""},
		"failed":    {sdk.Result{Failed: true}, ""},
		"questions": {sdk.Result{Questions: map[string]sdk.Question{"q": {Kind: sdk.QuestionRoots}}}, ""},
	} {
		h.answers(c.r)
		r, err := h.complete(t, `"prompt":"guest.chat"`, "id")
		if string(r.Structured) != c.want || c.want == "" && sdk.KindOf(err) != sdk.Guest {
			t.Errorf("%s: %s, %v", name, r.Structured, err)
		}
	}
}

// TestServeDenied checks that the permission for the tool is that for all it
// serves.
func TestServeDenied(t *testing.T) {
	h := houseOf(t, serving)
	digest := h.Catalog.Of("guest")[0].Skill.Home.Digest
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		t.Error("it ran")
		return sdk.Result{}, nil
	}
	h.setPolicy(t, fmt.Sprintf("[skills.guest]\nallow = true\ndigest = %q\n[skills.guest.tools.read]\nallow = false\n[dangerous]\nallow = [\"invoke:*\"]\n", digest))
	for _, o := range h.Catalog.OffersOf("guest") {
		if h.Visible(o.Entry, h.scope) {
			t.Errorf("%s is seen", o.Key)
		}
	}
	if _, err := h.ask(t, sdk.CallResource, "doc://7", ""); sdk.KindOf(err) != sdk.Denied || h.log.types() != "refuse" {
		t.Errorf("%v, recorded %s", err, h.log.types())
	}
	if _, err := h.ask(t, sdk.CallPrompt, "guest.chat", "{}"); sdk.KindOf(err) != sdk.Denied {
		t.Error(err)
	}
	for _, ref := range []string{`"prompt":"guest.chat"`, `"uri":"doc://{id}"`} {
		_, err := h.complete(t, ref, "id")
		_, none := h.complete(t, strings.NewReplacer("chat", "none", "{id}", "{none}").Replace(ref), "id")
		if sdk.KindOf(err) != sdk.NotFound || strings.NewReplacer("none", "chat", "{none}", "{id}").Replace(none.Error()) != err.Error() {
			t.Errorf("completion_of_denied: %v, of nothing: %v", err, none)
		}
	}
}

func TestHiddenTool(t *testing.T) {
	h := houseOf(t, serving)
	if _, err := h.do(t, "guest.read", "{}"); sdk.KindOf(err) != sdk.NotFound || h.log.types() != "refuse" {
		t.Errorf("hidden_called_by_name: %v", err)
	}
	for caller, want := range map[string]sdk.Kind{"one-t": sdk.Denied, "guest.t": ""} {
		h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			if j.Input.Tool == "read" {
				return sdk.Text("served"), nil
			}
			reply, err := j.Ops.Do(ctx, frame(t, `{"op":"invoke","tool":"guest.read"}`))
			if err != nil {
				return sdk.Result{}, err
			}
			return sdk.ParseResult(reply)
		}
		if _, err := h.do(t, caller, "{}"); err == nil && want != "" || err != nil && sdk.KindOf(err) != want {
			t.Errorf("hidden_invoked by %s: %v", caller, err)
		}
	}
}

func frame(t testing.TB, header string) sdk.Frame {
	t.Helper()
	f, err := sdk.ParseFrame(sdk.AppendFrame(nil, []byte(header)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestServeQuestions checks that what serves a resource may ask, and that the
// state is good for that resource only.
func TestServeQuestions(t *testing.T) {
	h := houseOf(t, serving)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		if a, ok := j.Input.Answers["model"]; ok {
			return sdk.Text(string(a.Content)), nil
		}
		return sdk.Result{Questions: map[string]sdk.Question{"model": {Kind: sdk.QuestionSampling, Params: json.RawMessage(`{"maxTokens":1}`)}}}, nil
	}
	r, err := h.ask(t, sdk.CallPrompt, "guest.chat", `{"id":"1"}`)
	if err != nil || r.State == "" {
		t.Fatal(r, err)
	}
	answer := map[string]sdk.Answer{"model": {Action: "accept", Content: json.RawMessage(`{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`)}}
	again := sdk.Call{Kind: sdk.CallPrompt, Tool: "guest.chat", Args: json.RawMessage(`{"id":"1"}`), Scope: h.scope, Answers: answer, State: r.State}
	for name, change := range map[string]func(*sdk.Call){
		"state_for_resource": func(c *sdk.Call) { c.Kind, c.Tool = sdk.CallResource, "doc://1" },
		"state_for_tool":     func(c *sdk.Call) { c.Kind, c.Tool = sdk.CallTool, "guest.t" },
		"answer_no_object": func(c *sdk.Call) {
			c.Answers = map[string]sdk.Answer{"model": {Action: "accept", Content: json.RawMessage(`"x"`)}}
		},
	} {
		c := again
		change(&c)
		if _, err := h.Call(t.Context(), c, nil); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err = h.Call(t.Context(), again, nil); err != nil || !strings.Contains(contents(r), `"model":"m"`) {
		t.Errorf("%s, %v", contents(r), err)
	}
	h.answers(sdk.Result{Questions: map[string]sdk.Question{"model": {Kind: sdk.QuestionSampling}}})
	if _, err := h.do(t, "guest.t", "{}"); sdk.KindOf(err) != sdk.Guest {
		t.Errorf("sampling without parameters: %v", err)
	}
}

// TestRoots tries every set of roots from a small world against every access:
// roots never widen, and nothing is written outside them but in /tmp.
func TestRoots(t *testing.T) {
	h := houseOf(t, serving)
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"in", "out"} {
		if err := os.MkdirAll(filepath.Join(h.scope.Workspace, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(h.scope.Workspace, "link")); err != nil {
		t.Skip(err)
	}
	ws, out := h.scope.Workspace, filepath.ToSlash(outside)
	choices := []string{"file://" + ws, "file://" + ws + "/in", "file://localhost" + ws + "/out/", "file://" + out, "file://" + ws + "/link", "file://" + ws + "/absent",
		"https://example.com/", "file://elsewhere" + ws, "in", "file:///", "file://" + ws + "/%00", "%zz", "file://" + ws + "/in/../out"}
	real := [][]string{{ws}, {ws + "/in"}, {ws + "/out"}, {out}, {out}, nil, nil, nil, nil, {"/"}, nil, nil, {ws + "/out"}}
	targets := []string{ws, ws + "/in", ws + "/in/a", ws + "/out", ws + "/out/a", ws + "/inn", out, out + "/a", "${tmp}", "${tmp}/a", "/", "/etc/passwd"}
	plain, err := h.Plan(sdk.Call{Tool: "guest.t", Scope: h.scope})
	if err != nil {
		t.Fatal(err)
	}
	without := capability.NewGrant(plain.Layers, nil)
	for set := range 1 << len(choices) {
		var roots, below []string
		for i := range choices {
			if set&(1<<i) != 0 {
				roots, below = append(roots, choices[i]), append(below, real[i]...)
			}
		}
		if roots == nil {
			roots = []string{}
		}
		l := rootsLayer(roots, h.Realpath)
		with := capability.NewGrant(append(plain.Layers[:len(plain.Layers):len(plain.Layers)], l), nil)
		for _, target := range targets {
			for _, verb := range []capability.Verb{capability.Read, capability.Write} {
				a := capability.Access{Kind: capability.Filesystem, Verb: verb, Target: target}
				want := without.Allows(a)
				if verb == capability.Write && !strings.HasPrefix(target, "${tmp}") {
					covered := false
					for _, b := range below {
						covered = covered || capability.Beneath(target, b)
					}
					want = want && covered
				}
				if with.Allows(a) != want {
					t.Fatalf("roots %q: %s: %t", roots, a, !want)
				}
			}
		}
	}
	for kind, a := range map[string]capability.Access{"network": {Kind: capability.Network, Verb: capability.Connect}, "env": {Kind: capability.Env, Verb: capability.Read, Target: "A"}, "invoke": {Kind: capability.Invoke, Verb: capability.Call, Target: "x"}} {
		l := rootsLayer([]string{}, h.Realpath)
		if with := capability.NewGrant(append(plain.Layers[:len(plain.Layers):len(plain.Layers)], l), nil); with.Allows(a) != without.Allows(a) {
			t.Errorf("roots speak of %s", kind)
		}
	}
}

// TestRootsOfCall checks that roots reach the call and what it invokes, and
// that no roots at all say nothing.
func TestRootsOfCall(t *testing.T) {
	h := houseOf(t, serving)
	ws := h.scope.Workspace
	write := capability.Access{Kind: capability.Filesystem, Verb: capability.Write, Target: ws + "/a"}
	for name, x := range map[string]struct {
		roots []string
		want  bool
	}{"nil": {nil, true}, "empty": {[]string{}, false}, "workspace": {[]string{"file://" + ws}, true}, "elsewhere": {[]string{"file:///usr"}, false}, "all_bad": {[]string{"x"}, false}} {
		var seen []bool
		h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			seen = append(seen, j.Grant.Check(write) == nil)
			if j.Input.Tool == "t" {
				if _, err := j.Ops.Do(ctx, frame(t, `{"op":"invoke","tool":"one-t"}`)); err != nil {
					return sdk.Result{}, err
				}
			}
			return sdk.Text("ok"), nil
		}
		if _, err := h.Call(t.Context(), sdk.Call{Tool: "guest.t", Scope: h.scope, Roots: x.roots}, nil); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(seen) != fmt.Sprint([]bool{x.want, x.want}) {
			t.Errorf("%s: writing is %v", name, seen)
		}
	}
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) { return sdk.Result{}, j.Grant.Check(write) }
	_, err := h.Call(t.Context(), sdk.Call{Tool: "guest.t", Scope: h.scope, Roots: []string{}}, nil)
	var e *sdk.Error
	if !errors.As(err, &e) || e.Denial == nil || e.Denial.Layer != "client roots" {
		t.Errorf("%v", err)
	}
}

func TestAnnounce(t *testing.T) {
	h := houseOf(t, serving)
	var told []Change
	h.Changed = func(s *manifest.Skill, c Change) {
		if s.Name != "guest" {
			t.Errorf("%s speaks", s.Name)
		}
		told = append(told, c)
	}
	say := func(tool, header string) error {
		var failed error
		h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			reply, err := j.Ops.Do(ctx, frame(t, header))
			if err != nil {
				return sdk.Result{}, err
			}
			_, failed = sdk.ParseResult(reply)
			return sdk.Text("ok"), nil
		}
		if _, err := h.do(t, tool, "{}"); err != nil {
			t.Fatal(err)
		}
		return failed
	}
	for header, want := range map[string]sdk.Kind{
		`{"op":"announce","kind":"tools"}`:                   "",
		`{"op":"announce","kind":"resources"}`:               "",
		`{"op":"announce","kind":"prompts"}`:                 "",
		`{"op":"announce","uri":"doc://7"}`:                  "",
		`{"op":"announce","uri":"other://7"}`:                sdk.Denied,
		`{"op":"announce","uri":"doc://7/.."}`:               sdk.Denied,
		`{"op":"announce","kind":"weather"}`:                 sdk.Invalid,
		`{"op":"announce","kind":"tools","uri":"doc://7"}`:   sdk.Invalid,
		`{"op":"announce"}`:                                  sdk.Invalid,
		`{"op":"announce","kind":"tools","skill":"another"}`: sdk.Invalid,
	} {
		if err := say("guest.t", header); err == nil && want != "" || err != nil && sdk.KindOf(err) != want {
			t.Errorf("%s: %v", header, err)
		}
	}
	if len(told) != 4 {
		t.Errorf("told %v", told)
	}
	if err := say("one-t", `{"op":"announce","uri":"doc://7"}`); sdk.KindOf(err) != sdk.Denied {
		t.Errorf("announce_for_another_skill: %v", err)
	}
	h.guest.run = func(ctx context.Context, j executor.Job) (sdk.Result, error) {
		for range 3 * newsBurst {
			reply, err := j.Ops.Do(ctx, frame(t, `{"op":"announce","kind":"tools"}`))
			if err != nil {
				return sdk.Result{}, err
			}
			if _, err := sdk.ParseResult(reply); err != nil {
				return sdk.Result{}, err
			}
		}
		return sdk.Text("ok"), nil
	}
	if _, err := h.do(t, "guest.t", "{}"); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("announce_flood: %v", err)
	}
	for _, c := range told {
		if c.Kind != catalog.Tools && c.Kind != catalog.Resources && c.Kind != catalog.Prompts || c.URI != "" && c.Kind != catalog.Resources {
			t.Errorf("told %+v", c)
		}
	}
	h.Changed = nil
	if err := say("guest.t", `{"op":"announce","kind":"tools"}`); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
}
