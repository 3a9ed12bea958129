package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// asking is a manifest that has, or does not have, the client's model and roots.
const asking = `
name = "%%s"
version = "1.0.0"
description = "A test."
runtime = "wasm"
source = "m"
[tools.t]
description = "asks what the test wants"
[tools.less]
description = "may ask less"
[tools.less.capabilities]
client = []
[prompts.chat]
tool = "t"
[resources.doc]
uri = "doc://one"
tool = "t"
[capabilities]
invoke = ["*"]
client = [%s]
`

// houseAsking is a house whose skills have the entries of client, such as
// `"sampling"`.
func houseAsking(t testing.TB, client string) *house { return houseOf(t, fmt.Sprintf(asking, client)) }

// rule gives the skill "guest" more rules.
func (h *house) rule(t testing.TB, more string) {
	t.Helper()
	h.setPolicy(t, fmt.Sprintf("[dangerous]\nallow = [\"invoke:*\"]\n[skills.guest]\nallow = true\ndigest = %q\n", h.Catalog.Of("guest")[0].Skill.Home.Digest)+more)
}

var (
	model   = sdk.Question{Kind: sdk.QuestionSampling, Params: json.RawMessage(`{"maxTokens":1}`)}
	folders = sdk.Question{Kind: sdk.QuestionRoots}
	page    = sdk.Question{Kind: sdk.QuestionURL, URL: "https://example.com/"}
)

// Every set of questions, asked by every kind of call under every way to speak of
// the client: what is for the user passes always, what is for the client only if
// manifest, operator and call all have it. What is refused is recorded as an
// access, and neither the questions nor a state leave the corridor.
func TestAskWorld(t *testing.T) {
	all := []sdk.Question{colour, page, model, folders}
	may := map[string][2]bool{ // sampling, roots
		``: {false, false}, `"sampling"`: {true, false}, `"roots"`: {false, true}, `"sampling", "roots"`: {true, true},
	}
	operator := map[string][2]bool{
		"": {true, true}, "[skills.guest.capabilities]\nclient = []": {false, false}, "[skills.guest.tools.t.capabilities]\nclient = [\"roots\"]": {false, true},
		"[callers.\"*\".capabilities]\nclient = [\"sampling\"]": {true, false}, "[defaults.deny]\nclient = [\"sampling\"]": {false, true}, "[skills.guest.capabilities]\nenv = []": {true, true},
	}
	narrow := map[string][2]bool{"": {true, true}, `{"client":[]}`: {false, false}, `{"client":["roots"]}`: {false, true}, `{"env":[]}`: {true, true}}
	calls := map[sdk.CallKind]string{sdk.CallTool: "guest.t", sdk.CallPrompt: "guest.chat", sdk.CallResource: "doc://one"}
	count, passed := 0, 0
	for list, m := range may {
		h := houseAsking(t, list)
		for rules, o := range operator {
			h.rule(t, rules)
			for narrowing, n := range narrow {
				for mask := 1; mask < 1<<len(all); mask++ {
					questions := map[string]sdk.Question{}
					for i, q := range all {
						if mask&(1<<i) != 0 {
							questions[string(q.Kind)] = q
						}
					}
					want := (mask&4 == 0 || m[0] && o[0] && n[0]) && (mask&8 == 0 || m[1] && o[1] && n[1])
					h.answers(sdk.Result{Questions: questions})
					for kind, what := range calls {
						h.log.events = nil
						r, err := h.Call(t.Context(), sdk.Call{Kind: kind, Tool: what, Scope: h.scope, Narrow: json.RawMessage(narrowing)}, nil)
						about := fmt.Sprintf("client = [%s], %q, call %s, %s %s, %d", list, rules, narrowing, kind, what, mask)
						if count++; want {
							passed++
							if err != nil || len(r.Questions) != len(questions) || r.State == "" {
								t.Fatalf("%s: %+v, %v", about, r, err)
							}
							continue
						}
						checkUnasked(t, h, about, r, err)
					}
				}
			}
		}
	}
	if passed == 0 || passed == count {
		t.Fatalf("%d of %d", passed, count)
	}
}

// checkUnasked wants a refusal that names a line, and its record.
func checkUnasked(t *testing.T, h *house, about string, r sdk.Result, err error) {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || e.Kind != sdk.Denied || e.Denial == nil || e.Denial.Capability != "client.ask" || len(r.Questions) != 0 || r.State != "" {
		t.Fatalf("%s: %+v, %v", about, r, err)
	}
	if n := strings.Count(err.Error(), "client.ask"); n != 1 {
		t.Fatalf("%s: told %d times: %v", about, n, err)
	}
	last := h.log.events[len(h.log.events)-1]
	if last.Type != audit.TypeEnd || last.Kind != sdk.Denied {
		t.Fatalf("%s: recorded %+v", about, last)
	}
	for _, a := range h.log.events {
		if a.Type == audit.TypeAccess && a.Decision == "deny" && a.Access == "client.ask" && a.Target == e.Denial.Resource {
			return
		}
	}
	t.Fatalf("%s: the access is not on record: %s", about, h.log.types())
}

// The refusal is the line to write, in the file and table where it is missing.
func TestAskNamesTheLine(t *testing.T) {
	for name, c := range map[string]struct{ manifest, rules, want string }{
		"ask_undeclared":     {``, "", `client.ask sampling (refused by manifest guest/skill.toml:18; to allow it, add to [capabilities]: client = ["sampling"])`},
		"ask_declared_other": {`"roots"`, "", `client.ask sampling (refused by manifest guest/skill.toml:18; to allow it, write in [capabilities]: client = ["roots", "sampling"])`},
		"ask_not_listed":     {`"sampling"`, "[skills.guest.capabilities]\nclient = []", `client.ask sampling (refused by operator policy.toml:6; to allow it, write in [skills.guest.capabilities]: client = ["sampling"])`},
		"ask_forbidden":      {`"sampling"`, "[defaults.deny]\nclient = [\"sampling\"]", `client.ask sampling (refused by operator policy.toml:7: denied by "sampling")`},
	} {
		h := houseAsking(t, c.manifest)
		h.rule(t, c.rules)
		h.answers(sdk.Result{Questions: map[string]sdk.Question{"m": model}})
		if _, err := h.do(t, "guest.t", "{}"); err == nil || err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", name, err, c.want)
		}
	}
	h := houseAsking(t, `"sampling"`)
	h.answers(sdk.Result{Questions: map[string]sdk.Question{"m": model}})
	if _, err := h.do(t, "guest.less", "{}"); err == nil || !strings.Contains(err.Error(), "[tools.less.capabilities]") {
		t.Errorf("ask_by_narrowed_tool: %v", err)
	}
}

// A tool that may not ask the client's model gets at it by no other tool: not by
// one that it invokes, not by asking what that one asked.
func TestAskThroughAnother(t *testing.T) {
	h := houseAsking(t, `"sampling"`)
	h.rule(t, "[skills.guest.tools.less]\nallow = true")
	var heard sdk.Result
	ask := func(_ context.Context, j executor.Job) (sdk.Result, error) {
		return sdk.Result{Questions: map[string]sdk.Question{"m": model}}, nil
	}
	invoke := func(reask bool) func(context.Context, executor.Job) (sdk.Result, error) {
		return func(ctx context.Context, j executor.Job) (sdk.Result, error) {
			if j.Input.Tool == "one-t" {
				return ask(ctx, j)
			}
			reply, err := j.Ops.Do(ctx, frame(t, `{"op":"invoke","tool":"one-t"}`))
			if err != nil {
				return sdk.Result{}, err
			}
			heard, err = sdk.ParseResult(reply)
			if err == nil && reask {
				return sdk.Result{Questions: map[string]sdk.Question{"m": model}}, nil
			}
			return sdk.Text("unasked"), err
		}
	}
	h.guest.run = invoke(false)
	if _, err := h.do(t, "guest.less", "{}"); sdk.KindOf(err) != sdk.Denied || len(heard.Questions) != 0 {
		t.Errorf("ask_by_invoked_tool: %v, heard %+v", err, heard)
	}
	if _, err := h.do(t, "guest.t", "{}"); err != nil || len(heard.Questions) != 1 {
		t.Errorf("who may ask is given the question of the tool that it invokes: %v, heard %+v", err, heard)
	}
	h.guest.run = invoke(true)
	if r, err := h.do(t, "InvokeSkill", `{"skill_name":"guest","tool":"less"}`); sdk.KindOf(err) != sdk.Denied || len(r.Questions) != 0 {
		t.Errorf("ask_by_address: %+v, %v", r, err)
	}
}

// An answer of the client's model reaches no guest that may not ask it any more,
// and the state is not spent by the attempt.
func TestAnswerAfterRevocation(t *testing.T) {
	h := houseAsking(t, `"sampling"`)
	h.rule(t, "")
	ran := 0
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		ran++
		if a, ok := j.Input.Answers["m"]; ok {
			return sdk.Text(string(a.Content)), nil
		}
		return sdk.Result{Questions: map[string]sdk.Question{"m": model, "u": colour}}, nil
	}
	r, err := h.do(t, "guest.t", "{}")
	if err != nil || r.State == "" {
		t.Fatal(r, err)
	}
	again := sdk.Call{Tool: "guest.t", Scope: h.scope, State: r.State, Args: json.RawMessage("{}"),
		Answers: map[string]sdk.Answer{"m": {Action: "accept", Content: json.RawMessage(`{"said":1}`)}, "u": accept("red")}}
	h.rule(t, "[defaults.deny]\nclient = [\"sampling\"]")
	var e *sdk.Error
	if _, err := h.Call(t.Context(), again, nil); !errors.As(err, &e) || e.Kind != sdk.Denied || e.Denial == nil || e.Denial.Resource != "sampling" || ran != 1 {
		t.Errorf("answer_after_revocation: %v, ran %d times", err, ran)
	}
	h.rule(t, "")
	if r, err := h.Call(t.Context(), again, nil); err != nil || r.Content[0].Text != `{"said":1}` {
		t.Errorf("allowed again: %+v, %v", r, err)
	}
}

// A guest is told of the abilities of the client that it may use, and a guest
// that may not use them asks the operator's log nothing by not trying.
func TestAbilities(t *testing.T) {
	for list, want := range map[string]sdk.Client{
		``: {Name: "c", Form: true, URL: true}, `"sampling"`: {Name: "c", Form: true, URL: true, Sampling: true},
		`"roots"`: {Name: "c", Form: true, URL: true, Roots: true}, `"sampling", "roots"`: {Name: "c", Form: true, URL: true, Sampling: true, Roots: true},
	} {
		h := houseAsking(t, list)
		var told sdk.Client
		h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
			told = j.Input.Client
			return sdk.Text("ok"), nil
		}
		call := sdk.Call{Tool: "guest.t", Scope: h.scope, Client: sdk.Client{Name: "c", Form: true, URL: true, Sampling: true, Roots: true}}
		if _, err := h.Call(t.Context(), call, nil); err != nil || told != want || h.log.types() != "start end" {
			t.Errorf("[%s]: told %+v, %v, recorded %s", list, told, err, h.log.types())
		}
		call.Client = sdk.Client{Form: true}
		if _, err := h.Call(t.Context(), call, nil); err != nil || told != call.Client {
			t.Errorf("[%s]: an ability that the client does not have: %+v, %v", list, told, err)
		}
	}
}
