package native

import (
	"errors"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// explained returns what Explain adds to a result with text, line by line.
func explained(p Plan, text string) []string {
	r, err := Explain(p, sdk.Result{Failed: true, Content: []sdk.Content{{Type: sdk.TypeText, Text: text}}}, nil)
	if err != nil || len(r.Content) < 2 {
		return nil
	}
	return strings.Split(r.Content[1].Text, "\n")
}

func explainPlan(t *testing.T) Plan {
	h := newHouse(t, sandbox.Strict)
	s := skill(t, "read:/data", "write:/ws", "write:${tmp}", "exec:git")
	operator := capability.Layer{Name: "operator", Pos: capability.Pos{File: "policy.toml", Line: 3}, Table: "[skills.tool.capabilities] of policy.toml",
		Speaks: []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Write}}, Allow: set(t, "write:/ws/out", "write:${tmp}"), Deny: set(t, "read:/data/x")}
	j := job(s, operator)
	j.Dirs = executor.Dirs{Workspace: "/ws"}
	return h.plan(t, s, j)
}

func TestExplain(t *testing.T) {
	p := explainPlan(t)
	for _, c := range []struct {
		text  string
		words []string // nil: nothing is added
	}{
		{"cat: /home/u/x: Permission denied", []string{
			"read: /data, /ws", "write: /ws/out, /tmp (its own)", "programs: git", "network: none", "denied in any case: read:/data/x",
			"filesystem.read /home/u/x (refused by manifest tool/skill.toml:7; to allow it, write in [capabilities]: filesystem = [",
			"all of these lists must allow it: [capabilities] of tool/skill.toml:7, [skills.tool.capabilities] of policy.toml"}},
		{"touch: cannot touch '/ws/new': Read-only file system", []string{`filesystem.write /ws/new (refused by operator policy.toml:3`}},
		{"touch: cannot touch '/workspace/new': Read-only file system", []string{`filesystem.write /ws/new (refused by operator`}},
		{"open /data/x: operation not permitted", []string{`denied by "read:/data/x"`}},
		{"bash: /usr/bin/curl: Permission denied", []string{`exec.run /usr/bin/curl (refused by manifest`}},
		{"curl: (6) Could not resolve host: example.com", []string{"network: none"}},
		{"curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server", []string{"network: none"}},
		{"Error: EACCES: permission denied, open '/opt/x'", []string{"filesystem.read /opt/x"}},
		{"ls: cannot access '/opt/x': No such file or directory", []string{"filesystem.read /opt/x"}},
		{"ls: cannot access '/data/none': No such file or directory", nil},
		{"ls: cannot access 'none': No such file or directory", nil},
		{"expected 3 arguments", nil},
		{"FAIL: TestX", nil},
	} {
		lines := explained(p, c.text)
		all := strings.Join(lines, "\n")
		if c.words == nil && lines != nil || c.words != nil && lines == nil || len(lines) > maxLines {
			t.Errorf("%q: %q", c.text, all)
		}
		for _, w := range c.words {
			if !strings.Contains(all, w) {
				t.Errorf("%q: no %q in\n%s", c.text, w, all)
			}
		}
	}
	many := strings.Join(explained(p, "/x1: Permission denied\n/x2: Permission denied\n/x3: Permission denied"), "\n")
	if !strings.Contains(many, "/x2") || strings.Contains(many, "/x3") {
		t.Errorf("three refusals: %s", many)
	}
	ok := sdk.Text("x: Permission denied")
	if r, _ := Explain(p, ok, nil); len(r.Content) != 1 {
		t.Error("a result that did not fail is explained")
	}
}

func TestExplainErrors(t *testing.T) {
	p := explainPlan(t)
	cause := errors.New("open /home/u/x: permission denied")
	guest := &sdk.Error{Kind: sdk.Guest, What: "the program ended", Err: cause, Hint: "look"}
	_, err := Explain(p, sdk.Result{}, guest)
	if !has(err, sdk.Guest, "(look; this tool is confined", "read: /data, /ws", "filesystem.read /home/u/x") || !errors.Is(err, cause) || guest.Hint != "look" {
		t.Errorf("%v", err)
	}
	limit := &sdk.Error{Kind: sdk.Limit, What: "too slow"}
	if _, err := Explain(p, sdk.Result{}, limit); err != error(limit) {
		t.Errorf("%v", err)
	}
}

// A guest decides what its text says: it must neither cost much nor make the
// host say more than a few lines.
func TestExplainFlood(t *testing.T) {
	p := explainPlan(t)
	lines := explained(p, strings.Repeat("/x/y: Permission denied\n", 1<<18)+"\x1b[2J/\x1b[31mevil: Permission denied")
	if len(lines) == 0 || len(lines) > maxLines || strings.Contains(strings.Join(lines, ""), "\x1b") {
		t.Errorf("%q", lines)
	}
}

func FuzzExplain(f *testing.F) {
	f.Add("cat: /etc/shadow: Permission denied")
	f.Add("/\x00: EACCES")
	f.Fuzz(func(t *testing.T, text string) {
		h := New(Options{Report: func() sandbox.Report { return sandbox.Report{Level: sandbox.Strict} }})
		s := skill(t, "read:/data", "exec:git")
		h.root = func() bool { return false }
		p, err := h.Plan(s, job(s))
		if err != nil {
			t.Fatal(err)
		}
		if lines := explained(p, text); len(lines) > maxLines {
			t.Errorf("%d lines", len(lines))
		}
	})
}

// TestExplainPushed: who is refused under a layer that a skill has laid is told
// so, whatever path was refused.
func TestExplainPushed(t *testing.T) {
	h := newHouse(t, sandbox.Strict)
	s := skill(t, "read:/", "write:/ws", "exec:*", "network:example.com")
	s.Sandbox.Home = "private"
	j := job(s, planMode(t, "/ws"))
	j.Dirs = executor.Dirs{Workspace: "/ws"}
	for _, text := range []string{"touch: cannot touch 'x': Read-only file system", "curl: (6) Could not resolve host: example.com"} {
		all := strings.Join(explained(h.plan(t, s, j), text), "\n")
		for _, want := range []string{`layer "plan mode" of plan-mode narrows this session, and says "plan 7; PlanMode exit ends it"`, "$HOME can be read and not written", "network: none"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q does not say %q", text, all, want)
			}
		}
	}
	if all := strings.Join(explained(explainPlan(t), "cat: /home/u/x: Permission denied"), "\n"); strings.Contains(all, "$HOME") || strings.Contains(all, "narrows") {
		t.Errorf("without a layer: %q", all)
	}
}
