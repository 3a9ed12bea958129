package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// offering is a skill with a tool that reads, one that suggests, and more.
func offering(t testing.TB, name, more string) *manifest.Skill {
	t.Helper()
	text := fmt.Sprintf(`name = %q
version = "1.0.0"
description = "The skill %s."
runtime = "wasm"
source = "m"
[tools.read]
hidden = true
input = { type = "object", properties = { uri = { type = "string" }, id = { type = "string" } }, additionalProperties = false }
[tools.suggest]
hidden = true
[tools.open]
`, name, name) + more
	return open(t, map[string]string{"skill.toml": text, "a.txt": "hello", "p.md": "Dear {{who}}"})
}

func filled(t testing.TB, skills ...*manifest.Skill) *Catalog {
	t.Helper()
	c := New(".")
	if _, errs := c.Replace(skills); errs != nil {
		t.Fatal(errs)
	}
	return c
}

func keys(c *Catalog, kind Kind) string {
	var list []string
	for _, o := range c.Offers(kind) {
		list = append(list, o.Key)
	}
	return strings.Join(list, " ")
}

func resolved(c *Catalog, call sdk.Call, v Viewer) string {
	r, err := c.Resolve(&call, v)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return string(sdk.KindOf(err))
	}
	if r.Answer != nil {
		return "answer " + string(r.Answer.Structured)
	}
	return r.Entry.Name + " " + string(r.Args)
}

func TestResourceResolved(t *testing.T) {
	c := filled(t,
		offering(t, "bee", "[resources.all]\nuri = \"x://{+id}\"\ntool = \"read\"\n[resources.deep]\nuri = \"x://docs/{id}\"\ntool = \"open\"\n[resources.file]\nuri = \"x://file\"\nfile = \"a.txt\"\n"),
		offering(t, "ant", "[resources.all]\nuri = \"x://{+id}\"\ntool = \"read\"\n[resources.one]\nuri = \"x://docs/1\"\ntool = \"read\"\n[resources.thing]\nuri = \"y://{thing}\"\ntool = \"read\"\n"))
	only := func(skill string) Viewer { return Viewer{May: func(e *Entry) bool { return e.Skill.Name == skill }} }
	for _, x := range []struct {
		name, uri string
		v         Viewer
		want      string
	}{
		{"exact_before_template", "x://docs/1", Viewer{}, `ant.read {"uri":"x://docs/1"}`},
		{"longer_prefix_first", "x://docs/2", Viewer{}, `bee.open {"id":"2","uri":"x://docs/2"}`},
		{"then_skill_name", "x://other/2", Viewer{}, `ant.read {"id":"other/2","uri":"x://other/2"}`},
		{"denied_does_not_shadow", "x://docs/1", only("bee"), `bee.open {"id":"1","uri":"x://docs/1"}`},
		{"denied_template_does_not_shadow", "x://other/2", only("bee"), `bee.read {"id":"other/2","uri":"x://other/2"}`},
		{"denied_is_found_last", "x://docs/1", only("nobody"), `ant.read {"uri":"x://docs/1"}`},
		{"variable_that_the_tool_does_not_name", "y://1", Viewer{}, `ant.read {"uri":"y://1"}`},
		{"file", "x://file", Viewer{}, `bee.resources.file {}`},
		{"dots", "x://docs/../file", Viewer{}, "invalid"},
		{"dots_encoded", "x://docs/%2e%2e/file", Viewer{}, "invalid"},
		{"no_scheme", "docs/1", Viewer{}, "invalid"},
		{"nobody", "z://1", Viewer{}, "not_found"},
		{"too_long", "x://" + strings.Repeat("a", 3000), Viewer{}, "invalid"},
	} {
		if got := resolved(c, sdk.Call{Kind: sdk.CallResource, Tool: x.uri}, x.v); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	if got := keys(c, Resources); got != "x://docs/1 x://file" {
		t.Errorf("resources %s", got)
	}
	if got := keys(c, Templates); got != "x://docs/{id} x://{+id} x://{+id} y://{thing}" {
		t.Errorf("templates %s", got)
	}
	for uri, want := range map[string]bool{"x://docs/1": true, "x://anything": true, "x://file": false, "y://1": true, "z://1": false, "x://../1": false} {
		if c.Serves("ant", uri) != want && uri != "x://file" {
			t.Errorf("ant serves %s: %t", uri, !want)
		}
	}
	if c.Serves("bee", "y://1") || c.Serves("none", "x://1") {
		t.Error("a skill serves what is another's")
	}
}

func TestPromptResolved(t *testing.T) {
	c := filled(t, offering(t, "bee", `[prompts.letter]
file = "p.md"
arguments = [{ name = "who", required = true }, { name = "tone" }]
[prompts.chat]
tool = "read"
arguments = [{ name = "id" }, { name = "other" }]
[prompts.any]
tool = "open"
arguments = [{ name = "a" }]
`), open(t, map[string]string{"SKILL.md": "---\nname: text\ndescription: A text.\n---\nRead."}))
	for _, x := range []struct{ name, args, want string }{
		{"bee.letter", `{"who":"Ann"}`, `bee.prompts.letter {"who":"Ann"}`},
		{"bee_letter", `{"who":"{{tone}}"}`, `bee.prompts.letter {"who":"{{tone}}"}`},
		{"bee/letter", `{}`, "invalid"},
		{"bee.letter", ``, "invalid"},
		{"bee.letter", `{"who":1}`, "invalid"},
		{"bee.letter", `{"who":"Ann","what":"x"}`, "invalid"},
		{"bee.letter", `{"who":"Ann","who":"Eve"}`, "invalid"},
		{"bee.letter", `[]`, "invalid"},
		{"bee.chat", `{"id":"1","other":"2"}`, `bee.read {"id":"1"}`},
		{"bee.any", `{"a":"1"}`, `bee.open {"a":"1"}`},
		{"letter", `{}`, "not_found"},
		{"text", `{"arguments":"a b"}`, `text {"arguments":"a b"}`},
		{"text", ``, `text {}`},
		{"bee.read", `{}`, "not_found"},
	} {
		if got := resolved(c, sdk.Call{Kind: sdk.CallPrompt, Tool: x.name, Args: json.RawMessage(x.args)}, Viewer{}); got != x.want {
			t.Errorf("%s %s: %s, want %s", x.name, x.args, got, x.want)
		}
	}
	if got := keys(c, Prompts); got != "bee.any bee.chat bee.letter text" {
		t.Errorf("prompts %s", got)
	}
}

// TestPromptNames checks who may have which name.
func TestPromptNames(t *testing.T) {
	text := open(t, map[string]string{"SKILL.md": "---\nname: bee\ndescription: A text.\n---\nRead."})
	own := open(t, map[string]string{"skill.toml": string(skillText("own", "t")) + "[prompts.own]\ntool = \"t\"\n", "SKILL.md": "---\nname: own\ndescription: A text.\n---\nRead."})
	first := builtin(open(t, map[string]string{"skill.toml": string(skillText("shipped", "t")) + "[prompts.bee]\ntool = \"t\"\n"}))
	c := filled(t, first, text, own)
	if got := keys(c, Prompts); got != "bee own.own" {
		t.Errorf("prompts %s", got)
	}
	if r, err := c.Resolve(&sdk.Call{Kind: sdk.CallPrompt, Tool: "bee"}, Viewer{}); err != nil || r.Entry.Skill.Name != "shipped" {
		t.Errorf("prompt_shadows_builtin: %+v, %v", r, err)
	}
	twice := open(t, map[string]string{"skill.toml": string(skillText("a", "t")) + "[prompts.x]\ntool = \"t\"\n[prompts._x]\ntool = \"t\"\n"})
	if _, errs := c.Replace([]*manifest.Skill{twice}); len(errs) != 1 {
		t.Errorf("a__x means two prompts: %v", errs)
	}
}

// TestHidden checks that a hidden tool serves its own skill only.
func TestHidden(t *testing.T) {
	bee, ant := offering(t, "bee", ""), offering(t, "ant", "")
	invoke := builtin(open(t, map[string]string{"skill.toml": string(skillText("invoke-skill", "InvokeSkill"))}))
	c := filled(t, invoke, bee, ant)
	if got := listed(c); got != "InvokeSkill ant.open bee.open" {
		t.Errorf("listed %s", got)
	}
	for _, x := range []struct {
		name string
		call sdk.Call
		by   *manifest.Skill
		want string
	}{
		{"by_client", sdk.Call{Tool: "bee.read"}, nil, "not_found"},
		{"by_client_spelled", sdk.Call{Tool: "bee/read"}, nil, "not_found"},
		{"by_client_address", sdk.Call{Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"bee","tool":"read"}`)}, nil, "not_found"},
		{"by_client_address_dotted", sdk.Call{Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"bee.read"}`)}, nil, "not_found"},
		{"the_only_tool_that_is_seen", sdk.Call{Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"bee"}`)}, nil, "bee.open {}"},
		{"by_another_skill", sdk.Call{Tool: "bee.read", Args: json.RawMessage(`{}`)}, ant, "denied"},
		{"by_its_own_skill", sdk.Call{Tool: "bee.read", Args: json.RawMessage(`{}`)}, bee, "bee.read {}"},
	} {
		if got := resolved(c, x.call, Viewer{Skill: x.by}); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	_, err := c.Resolve(&sdk.Call{Tool: "bee.rea"}, Viewer{})
	_, hidden := c.Resolve(&sdk.Call{Tool: "bee.read"}, Viewer{})
	if strings.Contains(err.Error(), "bee.read") || strings.Contains(hidden.Error(), "read serves") {
		t.Errorf("hidden_tool_suggested: %v, %v", err, hidden)
	}
}

func TestCompletion(t *testing.T) {
	var many []string
	for i := range 150 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprintf("v%03d", i)))
	}
	c := filled(t, offering(t, "bee", `[prompts.p]
tool = "open"
arguments = [{ name = "fruit", values = ["Apple", "apricot", "Banana"] }, { name = "asked", complete = "suggest" }, { name = "free" }, { name = "many", values = [`+strings.Join(many, ",")+`] }]
[resources.r]
uri = "x://{a}/{b}"
tool = "read"
variables.a.values = ["1", "12"]
variables.b.complete = "read"
[resources.plain]
uri = "x://plain"
file = "a.txt"
`))
	ask := func(ref, argument, value string) sdk.Call {
		return sdk.Call{Kind: sdk.CallCompletion, Args: json.RawMessage(fmt.Sprintf(`{%s,"argument":{"name":%q,"value":%q},"context":{"free":"1"}}`, ref, argument, value))}
	}
	denied := Viewer{May: func(*Entry) bool { return false }}
	noSuggest := Viewer{May: func(e *Entry) bool { return e.Tool.Name != "suggest" }}
	for _, x := range []struct {
		name string
		call sdk.Call
		v    Viewer
		want string
	}{
		{"prefix", ask(`"prompt":"bee.p"`, "fruit", "aP"), Viewer{}, `answer {"values":["Apple","apricot"],"total":2,"hasMore":false}`},
		{"spelled", ask(`"prompt":"bee_p"`, "fruit", "b"), Viewer{}, `answer {"values":["Banana"],"total":1,"hasMore":false}`},
		{"none", ask(`"prompt":"bee.p"`, "free", "x"), Viewer{}, `answer {"values":[],"total":0,"hasMore":false}`},
		{"by_a_tool", ask(`"prompt":"bee.p"`, "asked", "x"), Viewer{}, `bee.suggest {"argument":"asked","context":{"free":"1"},"value":"x"}`},
		{"by_a_tool_that_is_denied", ask(`"prompt":"bee.p"`, "asked", "x"), noSuggest, `answer {"values":[],"total":0,"hasMore":false}`},
		{"by_a_tool_that_names_nothing_of_it", ask(`"uri":"x://{a}/{b}"`, "b", ""), Viewer{}, `bee.read {}`},
		{"template", ask(`"uri":"x://{a}/{b}"`, "a", ""), Viewer{}, `answer {"values":["1","12"],"total":2,"hasMore":false}`},
		{"resource", ask(`"uri":"x://plain"`, "a", ""), Viewer{}, `answer {"values":[],"total":0,"hasMore":false}`},
		{"unknown_argument", ask(`"prompt":"bee.p"`, "nut", ""), Viewer{}, "invalid"},
		{"unknown_variable", ask(`"uri":"x://{a}/{b}"`, "c", ""), Viewer{}, "invalid"},
		{"unknown_prompt", ask(`"prompt":"bee.q"`, "fruit", ""), Viewer{}, "not_found"},
		{"unknown_template", ask(`"uri":"x://{a}"`, "a", ""), Viewer{}, "not_found"},
		{"denied_prompt", ask(`"prompt":"bee.p"`, "fruit", ""), denied, "not_found"},
		{"denied_template", ask(`"uri":"x://{a}/{b}"`, "a", ""), denied, "not_found"},
		{"both", ask(`"prompt":"bee.p","uri":"x://plain"`, "a", ""), Viewer{}, "invalid"},
		{"nothing", sdk.Call{Kind: sdk.CallCompletion}, Viewer{}, "invalid"},
		{"kind", sdk.Call{Kind: "tool"}, Viewer{}, "invalid"},
	} {
		if got := resolved(c, x.call, x.v); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	call := ask(`"prompt":"bee.p"`, "many", "")
	r, err := c.Resolve(&call, Viewer{})
	var got Suggestions
	if err != nil || json.Unmarshal(r.Answer.Structured, &got) != nil || len(got.Values) != 100 || got.Total != 150 || !got.More {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadSuggestions(t *testing.T) {
	long := `["` + strings.Repeat("x", maxValue+1) + `"]`
	many := `["a"` + strings.Repeat(`,"a"`, 120) + `]`
	for in, want := range map[string]string{
		`["a","b"]`:                      `{"values":["a","b"],"total":2,"hasMore":false}`,
		`[]`:                             `{"values":[],"total":0,"hasMore":false}`,
		`{"values":["a"],"total":7}`:     `{"values":["a"],"total":7,"hasMore":false}`,
		`{"values":["a"],"total":-7}`:    `{"values":["a"],"total":1,"hasMore":false}`,
		`{"values":[],"hasMore":true}`:   `{"values":[],"total":0,"hasMore":true}`,
		`{}`:                             "",
		`{"values":"a"}`:                 "",
		`[1]`:                            "",
		`null`:                           "",
		``:                               "",
		long:                             "",
		`{"values":` + many + `}`:        `hasMore":true`,
		`{"values":["a"],"other":["b"]}`: `{"values":["a"],"total":1,"hasMore":false}`,
	} {
		got, err := ReadSuggestions(json.RawMessage(in))
		if want == "" && sdk.KindOf(err) != sdk.Guest || want != "" && (err != nil || !strings.Contains(string(got), want)) {
			t.Errorf("%.40s: %s, %v", in, got, err)
		}
	}
}

func TestOfferJSON(t *testing.T) {
	c := filled(t, offering(t, "bee", `[resources.file]
title = "A file"
description = "d"
uri = "x://file"
mime = "text/plain"
file = "a.txt"
meta = { k = 1 }
icons = [{ src = "https://example.com/i.png", theme = "light" }]
annotations = { audience = ["user"], priority = 0.0, last_modified = "2026-11-22" }
[resources.all]
uri = "x://{+id}"
tool = "read"
[prompts.p]
title = "P"
tool = "open"
arguments = [{ name = "a", title = "A", description = "d", required = true }, { name = "b" }]
`))
	for kind, want := range map[Kind]string{
		Resources: `{"uri":"x://file","name":"file","title":"A file","description":"d","mimeType":"text/plain","size":5,"annotations":{"audience":["user"],"priority":0,"lastModified":"2026-11-22"},"icons":[{"src":"https://example.com/i.png","theme":"light"}],"_meta":{"k":1}}`,
		Templates: `{"uriTemplate":"x://{+id}","name":"all"}`,
		Prompts:   `{"name":"bee.p","title":"P","arguments":[{"name":"a","title":"A","description":"d","required":true},{"name":"b"}]}`,
	} {
		if got := string(c.Offers(kind)[0].JSON); got != want {
			t.Errorf("%s\n got %s\nwant %s", kind, got, want)
		}
	}
}

// TestOffersOnly checks that a skill may have nothing but files to serve, and
// that offers go when their skill goes.
func TestOffersOnly(t *testing.T) {
	files := fstest.MapFS{"m": {}, "a.txt": {Data: []byte("x")}, "skill.toml": {Data: append(skillText("bee"), "[resources.r]\nuri = \"x://r\"\nfile = \"a.txt\"\n"...)}}
	s, err := manifest.Open(files, "")
	if err != nil {
		t.Fatal(err)
	}
	invoke := builtin(open(t, map[string]string{"skill.toml": string(skillText("invoke-skill", "InvokeSkill"))}))
	c := filled(t, invoke, s)
	if got, err := c.Skill("bee"); err != nil || got != s || keys(c, Resources) != "x://r" {
		t.Errorf("%v, %v", got, err)
	}
	if got := resolved(c, sdk.Call{Tool: "execute", Args: json.RawMessage(`{"skill_name":"bee"}`)}, Viewer{}); got != "not_found" {
		t.Error(got)
	}
	if _, errs := c.Replace(nil); errs != nil || len(c.Offers(Resources)) != 0 || resolved(c, sdk.Call{Kind: sdk.CallResource, Tool: "x://r"}, Viewer{}) != "not_found" {
		t.Error("a resource outlives its skill")
	}
}

// The text of a skill that clients can load is listed among the resources, and
// read as every file of the skill is.
func TestInstructionsAreAResource(t *testing.T) {
	c := New(".")
	s := open(t, map[string]string{"SKILL.md": "---\nname: notes\ndescription: How to take notes.\n---\nBody", "more/a.txt": "a"})
	if _, errs := c.Replace([]*manifest.Skill{s}); errs != nil {
		t.Fatal(errs)
	}
	offers := c.Offers(Resources)
	if len(offers) != 1 || string(offers[0].JSON) != `{"uri":"skill://notes/SKILL.md","name":"notes","description":"How to take notes.","mimeType":"text/markdown","size":56}` {
		t.Fatalf("%s", offers[0].JSON)
	}
	for _, uri := range []string{"skill://notes/SKILL.md", "skill://notes/more/a.txt"} {
		r, err := c.Resolve(&sdk.Call{Kind: sdk.CallResource, Tool: uri}, Viewer{})
		if err != nil || !strings.Contains(string(r.Args), `{"file":`) {
			t.Errorf("%s: %s, %v", uri, r.Args, err)
		}
	}
}
