package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

func skillText(name string, tools ...string) []byte {
	b := fmt.Appendf(nil, "name = %q\nversion = \"1.0.0\"\ndescription = \"The skill %s.\"\nruntime = \"wasm\"\nsource = \"m\"\n", name, name)
	for _, t := range tools {
		b = fmt.Appendf(b, "[tools.%q]\ndescription = \"tool %s\"\n", t, t)
	}
	return b
}

func open(t testing.TB, files map[string]string) *manifest.Skill {
	t.Helper()
	fs := fstest.MapFS{"m": {}}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	s, err := manifest.Open(fs, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func skill(t testing.TB, name string, tools ...string) *manifest.Skill {
	return open(t, map[string]string{"skill.toml": string(skillText(name, tools...))})
}

func builtin(s *manifest.Skill) *manifest.Skill { s.Home.Builtin = true; return s }

func listed(c *Catalog) string {
	var names []string
	for _, e := range c.Entries() {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for sep, want := range map[string]string{
		".":  "Echo a.one a.two.three b." + long,
		"_":  "Echo a_one a_two_three b_" + long[:53] + "_",
		"__": "Echo a__one a__two_three b__" + long[:52] + "_",
	} {
		c := New(sep)
		_, errs := c.Replace([]*manifest.Skill{builtin(skill(t, "echo", "Echo")), skill(t, "b", long), skill(t, "a", "two.three", "one")})
		if errs != nil {
			t.Fatal(errs)
		}
		if got := listed(c); !strings.HasPrefix(got, want) {
			t.Errorf("separator %q: %s, want %s…", sep, got, want)
		}
		for _, n := range strings.Fields(listed(c)) {
			if sep != "." && len(n) > maxName {
				t.Errorf("%q has %d characters", n, len(n))
			}
			if _, err := c.Lookup(n); err != nil {
				t.Error(err)
			}
		}
		for _, spelling := range []string{"a.one", "a_one", "a__one", "a/one", "b." + long} {
			if _, err := c.Lookup(spelling); err != nil {
				t.Errorf("separator %q: %v", sep, err)
			}
		}
	}
}

// TestBareNames: the tools of a skill that the operator names keep their own
// names, but not somebody else's.
func TestBareNames(t *testing.T) {
	c := New(".", "a", "thief")
	_, errs := c.Replace([]*manifest.Skill{builtin(skill(t, "echo", "Echo")), skill(t, "a", "one"), skill(t, "b", "two"), skill(t, "thief", "Echo"), skill(t, "x", "a.one")})
	if got := listed(c); got != "Echo b.two one x.a.one" || len(errs) != 1 || !strings.Contains(errs[0].Error(), `"Echo"`) {
		t.Errorf("listed %q, %v", got, errs)
	}
	for _, spelling := range []string{"one", "a.one", "a__one"} {
		if e, err := c.Lookup(spelling); err != nil || e.Canonical() != "a.one" {
			t.Errorf("%s: %v", spelling, err)
		}
	}
}

// TestShadowing checks that an installed skill cannot take the name of a
// built-in tool or of another skill.
func TestShadowing(t *testing.T) {
	c := New(".")
	first := builtin(skill(t, "echo", "Echo"))
	_, errs := c.Replace([]*manifest.Skill{first, skill(t, "echo", "Echo"), skill(t, "other", "x"), skill(t, "other", "y")})
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), "exists twice") {
		t.Errorf("%v", errs)
	}
	e, err := c.Lookup("Echo")
	if err != nil || e.Skill != first {
		t.Errorf("Echo is now of %s, %v", e.Skill.Home.File, err)
	}
	if got := listed(c); got != "Echo other.x" {
		t.Errorf("listed %q", got)
	}
	// Two tools of one skill that one spelling could mean.
	if _, errs := c.Replace([]*manifest.Skill{skill(t, "a", "x", "_x")}); len(errs) != 1 {
		t.Errorf("a__x means two tools: %v", errs)
	}
	// The address of other hosts is nobody's name.
	if _, errs := c.Replace([]*manifest.Skill{skill(t, "skill-engine", "execute")}); errs != nil {
		t.Error(errs)
	}
	if r, err := c.Resolve(&sdk.Call{Tool: "skill-engine/execute", Args: json.RawMessage(`{}`)}, Viewer{}); err == nil {
		t.Errorf("address_shadowed: %s", r.Entry.Name)
	}
	// Two built-ins with one tool name: the second one is left out whole.
	if _, errs := c.Replace([]*manifest.Skill{first, builtin(skill(t, "two", "Echo", "Fine"))}); len(errs) != 1 || listed(c) != "Echo" {
		t.Errorf("%v, listed %q", errs, listed(c))
	}
}

func TestResolve(t *testing.T) {
	c := New(".")
	invoke, err := manifest.Open(os.DirFS("../../manifests/invoke-skill"), "")
	if err != nil {
		t.Fatal(err)
	}
	both := open(t, map[string]string{"skill.toml": string(skillText("both", "run")), "SKILL.md": "---\nname: both\ndescription: Both.\n---\nDo $1."})
	text := open(t, map[string]string{"SKILL.md": "---\nname: text\ndescription: A text.\n---\nRead."})
	if _, errs := c.Replace([]*manifest.Skill{builtin(invoke), builtin(skill(t, "echo", "Echo")), skill(t, "one", "only"), skill(t, "many", "a", "b"), both, text}); errs != nil {
		t.Fatal(errs)
	}
	digest := both.Home.Digest
	for _, x := range []struct{ tool, args, want string }{
		{"Echo", `{"a":1}`, `Echo {"a":1}`},
		{"one.only", `{}`, `one.only {}`},
		{"InvokeSkill", `{"skill_name":"one"}`, `one.only {}`},
		{"InvokeSkill", `{"skill_name":"one","arguments":"{\"x\":2}"}`, `one.only {"x":2}`},
		{"InvokeSkill", `{"skill_name":"one","arguments":"plain"}`, `one.only {"input":"plain"}`},
		{"InvokeSkill", `{"skill_name":"one","parameters":{"x":1}}`, `one.only {"x":1}`},
		{"InvokeSkill", `{"skill_name":"Echo","parameters":{"x":1}}`, `Echo {"x":1}`},
		{"InvokeSkill", `{"skill_name":"both"}`, `both {"arguments":""}`},
		{"InvokeSkill", `{"skill_name":"both","arguments":"x {y}"}`, `both {"arguments":"x {y}"}`},
		{"InvokeSkill", `{"skill_name":"both","tool":"run","origin":"` + digest + `"}`, `both.run {}`},
		{"InvokeSkill", `{"skill_name":"text"}`, `text {"arguments":""}`},
		{"skill-engine/execute", `{"skill_name":"many","tool_name":"b","parameters":{}}`, `many.b {}`},
		{"skill-engine.execute", `{"skill_name":"many.b"}`, `many.b {}`},
		{"InvokeSkill", `{"skill_name":"many"}`, `invalid: give "tool": one of a, b`},
		{"InvokeSkill", `{"skill_name":"many","tool":"c"}`, `not_found: its tools: a, b`},
		{"InvokeSkill", `{"skill_name":"mny"}`, `not_found: did you mean many`},
		{"InvokeSkill", `{"skill_name":"both","origin":"sha256:00"}`, `not_found: its digest is`},
		{"InvokeSkill", `{"skill_name":"one","parameters":{},"arguments":"x"}`, `invalid: "parameters" is enough`},
		{"InvokeSkill", `{"skill":"one"}`, `invalid:`},
		{"text", `{}`, `not_found:`}, // a text is reached by its address only
		{"one.onyl", `{}`, `not_found: did you mean one.only`},
		{"only", `{}`, `not_found: did you mean one.only`},
		{"many", `{}`, `not_found: did you mean many.a or many.b`},
		{"text", `{}`, `not_found: did you mean InvokeSkill with skill_name "text"`},
		{"x\x00\n" + strings.Repeat("y", 200), `{}`, `not_found:`},
	} {
		r, err := c.Resolve(&sdk.Call{Tool: x.tool, Args: json.RawMessage(x.args)}, Viewer{})
		if err == nil {
			err = r.fault
		}
		got := ""
		if err != nil {
			got = fmt.Sprintf("%s: %v", sdk.KindOf(err), err)
			kind, says, _ := strings.Cut(x.want, ": ")
			if strings.HasPrefix(got, kind) && strings.Contains(got, says) {
				continue
			}
		} else {
			got = r.Entry.Name + " " + string(r.Args)
		}
		if got != x.want {
			t.Errorf("%s %s: %s, want %s", x.tool, x.args, got, x.want)
		}
	}
	if strings.Contains(fmt.Sprint(c.Lookup("x\x00\n")), "\x00") {
		t.Error("a name's control characters are echoed")
	}
	e := c.Of("both")[1]
	if e.Skill.Runtime != "instructions" || len(e.Skill.Needs.Allow) != 1 {
		t.Errorf("the text of a skill with a module is run as %s with %v", e.Skill.Runtime, e.Skill.Needs.Allow)
	}
}

// invoke_oracle: what an address says wrongly is told to those only who may call
// what it names, and tools that they may not call are not told at all.
func TestAddressTellsNothing(t *testing.T) {
	c := filled(t, skill(t, "many", "one", "two", "three"), builtin(open(t, map[string]string{"skill.toml": `
name = "invoke-skill"
version = "1.0.0"
description = "x"
runtime = "wasm"
source = "m"
[tools.InvokeSkill]
description = "x"
`})))
	may := func(names ...string) Viewer {
		return Viewer{May: func(e *Entry) bool { return slices.Contains(names, e.Tool.Name) }}
	}
	for name, v := range map[string]struct {
		args  string
		by    Viewer
		entry string
		fault string
	}{
		"all":            {`{"skill_name":"many"}`, Viewer{}, "*", "one of one, three, two"},
		"some":           {`{"skill_name":"many"}`, may("three", "two"), "*", "one of three, two"},
		"one":            {`{"skill_name":"many"}`, may("two"), "two", ""},
		"none":           {`{"skill_name":"many"}`, may(), "*", ""},
		"hidden_tool":    {`{"skill_name":"many","tool":"one"}`, may("two"), "one", ""},
		"both_arguments": {`{"skill_name":"many","tool":"one","parameters":{},"arguments":"x"}`, may(), "one", "both"},
	} {
		r, err := c.Resolve(&sdk.Call{Kind: sdk.CallTool, Tool: InvokeSkill, Args: json.RawMessage(v.args)}, v.by)
		if err != nil {
			t.Errorf("%s: %v before anybody asked the policy", name, err)
			continue
		}
		if v.entry != "*" && r.Entry.Tool.Name != v.entry {
			t.Errorf("%s: %s", name, r.Entry.Tool.Name)
		}
		if err := r.Check(); (err != nil) != (v.fault != "") || err != nil && !strings.Contains(err.Error(), v.fault) {
			t.Errorf("%s: %v, want %q", name, err, v.fault)
		}
	}
}

func TestReplaceKeepsEntries(t *testing.T) {
	c := New(".")
	a, b := skill(t, "a", "x"), skill(t, "b", "y")
	if changed, _ := c.Replace([]*manifest.Skill{a, b}); !changed {
		t.Error("the change was not reported")
	}
	before, err := c.Lookup("a.x")
	if err != nil {
		t.Fatal(err)
	}
	if changed, _ := c.Replace([]*manifest.Skill{a, b}); changed {
		t.Error("a change was reported, but nothing has changed")
	}
	if after, err := c.Lookup("a.x"); err != nil || after != before {
		t.Errorf("the entry was made anew, %v", err)
	}
	c.Replace([]*manifest.Skill{b})
	if _, err := c.Lookup("a.x"); sdk.KindOf(err) != sdk.NotFound {
		t.Errorf("a removed tool gives %v", err)
	}
}

func TestScan(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good/skill.toml": string(skillText("good", "x")), "good/m": "", "bad/skill.toml": "nam = 1", "empty/readme": "",
		"text/SKILL.md": "---\nname: text\ndescription: d\n---\nx", "file": "not a folder",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	skills, errs := Scan([]string{filepath.Join(dir, "absent"), dir}, nil)
	if len(skills) != 2 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "did you mean") {
		t.Fatalf("%d skills, errors %v", len(skills), errs)
	}
	again, _ := Scan([]string{dir}, skills)
	if again[0] != skills[0] {
		t.Error("an unchanged skill was not reused")
	}
	if err := os.WriteFile(filepath.Join(dir, "good/m"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _ = Scan([]string{dir}, skills); again[0] == skills[0] || again[0].Home.Digest == skills[0].Home.Digest {
		t.Error("a changed skill was reused")
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() {
		Watch(ctx, []string{dir}, func() { seen <- struct{}{} })
		close(done)
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-seen:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not noticed", what)
		}
	}
	time.Sleep(50 * time.Millisecond) // the watch is being set up; poll would find the change too, later
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	await("a new folder")
	if err := os.WriteFile(filepath.Join(dir, "new", "skill.toml"), skillText("new", "x"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("a new manifest")
	if err := os.MkdirAll(filepath.Join(dir, "new", "schemas"), 0o700); err != nil {
		t.Fatal(err)
	}
	await("a nested folder")
	if err := os.WriteFile(filepath.Join(dir, "new", "schemas", "x.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("a nested file")
	cancel()
	<-done
}

func TestDescribe(t *testing.T) {
	c := New(".")
	invoke, err := manifest.Open(os.DirFS("../../manifests/invoke-skill"), "")
	if err != nil {
		t.Fatal(err)
	}
	c.Replace([]*manifest.Skill{builtin(invoke), skill(t, "seen", "x"), skill(t, "hidden", "y")})
	e, err := c.Lookup("InvokeSkill")
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Describe(e, func(s *manifest.Skill) bool { return s.Name != "hidden" })
	if err != nil || !strings.Contains(string(b), "- seen: The skill seen.") || strings.Contains(string(b), "hidden") {
		t.Errorf("%s, %v", b, err)
	}
}

// A skill whose settings cannot be described is left out, as one whose
// arguments cannot, and the others are not.
func TestSettingsSchema(t *testing.T) {
	c := New(".")
	bad := open(t, map[string]string{"skill.toml": "settings = '{\"type\":\"array\"}'\n" + string(skillText("bad", "x"))})
	_, errs := c.Replace([]*manifest.Skill{bad, skill(t, "good", "x")})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "settings: ") || listed(c) != "good.x" {
		t.Errorf("%v, and there is %q", errs, listed(c))
	}
}
