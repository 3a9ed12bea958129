package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

// TestPushRefuses goes through what is no layer.
func TestPushRefuses(t *testing.T) {
	long := strings.Repeat("x", maxLayer)
	many := `{"filesystem":["read:/a"` + strings.Repeat(`,"read:/a"`, maxPaths) + `]}`
	for name, tt := range map[string]struct {
		push Push
		kind sdk.Kind
	}{
		"no_name":             {Push{Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"name_with_line":      {Push{Name: "a\nb", Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"name_with_quote":     {Push{Name: `a"`, Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"long_name":           {Push{Name: strings.Repeat("n", maxName+1), Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"long_why":            {Push{Name: "a", Why: strings.Repeat("w", maxWhy+1), Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"why_of_two_lines":    {Push{Name: "a", Why: "a\nb", Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"why_moves_cursor":    {Push{Name: "a", Why: "a\x1b[2Jb", Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"why_not_utf8":        {Push{Name: "a", Why: "a\xffb", Lists: json.RawMessage(`{}`)}, sdk.Invalid},
		"nothing":             {Push{Name: "a"}, sdk.Invalid},
		"array":               {Push{Name: "a", Lists: json.RawMessage(`[]`)}, sdk.Invalid},
		"not_json":            {Push{Name: "a", Lists: json.RawMessage(`{`)}, sdk.Invalid},
		"unknown_kind":        {Push{Name: "a", Lists: json.RawMessage(`{"files":[]}`)}, sdk.Invalid},
		"unknown_topic":       {Push{Name: "a", Lists: json.RawMessage(`{"network.connect":[]}`)}, sdk.Invalid},
		"kind_twice":          {Push{Name: "a", Lists: json.RawMessage(`{"network":[],"network":["*"]}`)}, sdk.Invalid},
		"writing_twice":       {Push{Name: "a", Lists: json.RawMessage(`{"filesystem":[],"filesystem.write":["write:/"]}`)}, sdk.Invalid},
		"read_in_writing":     {Push{Name: "a", Lists: json.RawMessage(`{"filesystem.write":["read:/"]}`)}, sdk.Invalid},
		"bad_entry":           {Push{Name: "a", Lists: json.RawMessage(`{"filesystem":["write:relative"]}`)}, sdk.Invalid},
		"deny":                {Push{Name: "a", Lists: json.RawMessage(`{"deny":{"network":["*"]}}`)}, sdk.Invalid},
		"builtin_array":       {Push{Name: "a", Lists: json.RawMessage(`{"builtin":["websearch"]}`)}, sdk.Invalid},
		"builtin_kind":        {Push{Name: "a", Lists: json.RawMessage(`{"builtin":{"w":{"x":null}}}`)}, sdk.Invalid},
		"builtin_twice":       {Push{Name: "a", Lists: json.RawMessage(`{"builtin":{"w":{"network":[],"network":null}}}`)}, sdk.Invalid},
		"builtin_nested":      {Push{Name: "a", Lists: json.RawMessage(`{"builtin":{"w":{"builtin":{}}}}`)}, sdk.Invalid},
		"huge":                {Push{Name: "a", Lists: json.RawMessage(`{"exec":["` + long + `"]}`)}, sdk.Limit},
		"many_paths":          {Push{Name: "a", Lists: json.RawMessage(many)}, sdk.Limit},
		"many_paths_builtins": {Push{Name: "a", Lists: json.RawMessage(`{"builtin":{"w":` + many + `}}`)}, sdk.Limit},
	} {
		w := newWorld(t, "s1")
		tt.push.Owner, tt.push.Skill = "one", "one"
		if err := w.Push(t.Context(), w.scope, tt.push); sdk.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want %s", name, err, tt.kind)
		}
		if s, err := w.Of(w.scope); s != nil || err != nil {
			t.Errorf("%s: a layer lies there: %v, %v", name, s, err)
		}
	}
	w := newWorld(t, "")
	if err := w.push(t, "one", "a", `{}`); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("no_session: %v", err)
	}
	w = newWorld(t, "s1")
	if err := w.push(t, "", "a", `{}`); sdk.KindOf(err) != sdk.Internal {
		t.Errorf("no_owner: %v", err)
	}
}

// TestSkillDir: an entry for the folder of the skill is that of the called one.
func TestSkillDir(t *testing.T) {
	w := newWorld(t, "s1")
	if err := w.push(t, "one", "x", `{"filesystem":["read:${skill_dir}","read:${home}"]}`); err != nil {
		t.Fatal(err)
	}
	g := everything(t, w.Layers, w.scope, Target{SkillDir: w.scope.Workspace + "/sub"})
	for p, pass := range map[string]bool{w.scope.Workspace + "/sub/f": true, w.scope.Workspace + "/f": false, w.top + "/other/f": true} {
		if g.Allows(touch(capability.Read, p)) != pass {
			t.Errorf("%s: not %v", p, pass)
		}
	}
	if everything(t, w.Layers, w.scope, Target{}).Allows(touch(capability.Read, w.scope.Workspace+"/sub/f")) {
		t.Error("the folder of another skill")
	}
}

func TestNarrowing(t *testing.T) {
	for raw, want := range map[string]string{
		`{}`:             "",
		`{"network":[]}`: "network.connect",
		`{"network":null,"filesystem":["read:/data"]}`:          "network.connect filesystem.read filesystem.write | read:/data",
		`{"filesystem.write":["write:/data"],"exec":["git"]}`:   "exec.run filesystem.write | git write:/data",
		`{"filesystem":[],"filesystem":["write:/srv"]}`:         "!", // the last of two lists must not undo the first
		`{"filesystem":[],"filesystem.write":["write:/srv"]}`:   "!",
		`{"filesystem":null,"filesystem.write":["write:/srv"]}`: "!",
		`{"filesystem.write":["read:/srv"]}`:                    "!",
		`{"filesystem.read":["read:/srv"]}`:                     "!",
		`{"builtin":{}}`:                                        "!",
		`{"x":[]}`:                                              "!",
		`[]`:                                                    "!",
		`null`:                                                  "!",
	} {
		l, err := Narrowing(json.RawMessage(raw))
		var got []string
		for _, topic := range l.Speaks {
			got = append(got, string(topic.Kind)+"."+string(topic.Verb))
		}
		if len(l.Allow) > 0 {
			got = append(got, "|")
		}
		for _, c := range l.Allow {
			got = append(got, c.Entry())
		}
		if want == "!" {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Errorf("%s: read as %v, %v", raw, got, err)
			}
		} else if err != nil || strings.Join(got, " ") != want || l.Pushed {
			t.Errorf("%s: read as %v, %v", raw, got, err)
		}
	}
}

// FuzzPush: whatever a layer says, it does not panic, and it can only narrow.
func FuzzPush(f *testing.F) {
	for _, seed := range []string{readOnly, `{}`, `{"builtin":{"x":{"filesystem":null}}}`, `{"filesystem":["write:/"],"network":["*"]}`} {
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, lists, builtin string) {
		l := NewLayers(LayerOptions{Store: memory.Open(), Realpath: func(p string) (string, error) { return p, nil }})
		scope := sdk.Scope{Caller: "c", Workspace: "/w", Session: "s"}
		if l.Push(t.Context(), scope, Push{Owner: "a", Skill: "a", Name: "first", Lists: json.RawMessage(`{"network":[],"filesystem.write":["write:/w/plan"]}`)}) != nil {
			t.Fatal("the first layer")
		}
		err := l.Push(t.Context(), scope, Push{Owner: "b", Skill: "b", Name: "second", Lists: json.RawMessage(lists)})
		if err != nil && sdk.KindOf(err) != sdk.Invalid && sdk.KindOf(err) != sdk.Limit {
			t.Fatal(err)
		}
		g := everything(t, l, scope, Target{Builtin: builtin, SkillDir: "/d"})
		if g.Allows(web) || g.Allows(touch(capability.Write, "/w/x")) {
			t.Fatalf("%q widens", lists)
		}
	})
}
