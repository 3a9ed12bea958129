package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/sdk"
)

var update = flag.Bool("update", false, "write the pages of the tools, docs/tools")

// seed are the thirteen tools with their parameters, as the document says that
// this project fulfils: a "*" marks what is required. "query" of TaskManager is
// required there by an oversight (it is described as a search query), and here
// it is another name of "text".
var seed = []struct {
	name, params string
	more         string // where its page sends the reader on
}{
	{"Bash", "command:string* timeout:integer", "shell.md"},
	{"ReadImage", "file_path:string*", ""},
	{"ReadDocs", "url:string* format:string wait_ms:integer", "readdocs.md"},
	{"WebSearch", "query:string*", "websearch.md"},
	{"TaskManager", "action:string* query:string task_id:integer step_id:integer text:string", ""},
	{"PlanMode", "action:string* goal:string plan_file:string", "planmode.md"},
	{"AskUserQuestion", "questions_json:string*", "askuserquestion.md"},
	{"InvokeSkill", "skill_name:string* arguments:string", "skills.md"},
	{"BackgroundBash", "command:string*", "shell.md"},
	{"ReadBgOutput", "task_id:integer*", "shell.md"},
	{"ListBgTasks", "", "shell.md"},
	{"KillBgTask", "task_id:integer*", "shell.md"},
	{"SetCallback", "action:string* message:string delay_seconds:integer repeat_count:integer callback_id:integer", "setcallback.md"},
}

// property is one property of a schema, in the order of the schema.
type property struct {
	name     string
	required bool
	schema   struct {
		Type        any               `json:"type"`
		Enum        []any             `json:"enum"`
		Default     any               `json:"default"`
		Description string            `json:"description"`
		Minimum     *json.Number      `json:"minimum"`
		Maximum     *json.Number      `json:"maximum"`
		Items       json.RawMessage   `json:"items"`
		AnyOf       []json.RawMessage `json:"anyOf"`
	}
}

func properties(t testing.TB, schema json.RawMessage) (list []property) {
	t.Helper()
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if s.Properties == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		p := property{name: name.(string)}
		if err := d.Decode(&p.schema); err != nil {
			t.Fatal(err)
		}
		p.required = slices.Contains(s.Required, p.name)
		list = append(list, p)
	}
	return list
}

func (p *property) kind() string {
	switch k := p.schema.Type.(type) {
	case string:
		return k
	case []any:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(k), "[]"), " ", " or ")
	}
	return "any"
}

// row is p in a table.
func (p *property) row(input bool) string {
	kind, about := p.kind(), strings.ReplaceAll(p.schema.Description, "|", "\\|")
	if len(p.schema.Enum) > 0 {
		var values []string
		for _, v := range p.schema.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		kind = strings.Join(values, ", ")
	}
	var limits []string
	if p.schema.Minimum != nil {
		limits = append(limits, "at least "+p.schema.Minimum.String())
	}
	if p.schema.Maximum != nil {
		limits = append(limits, "at most "+p.schema.Maximum.String())
	}
	if p.schema.Default != nil {
		limits = append(limits, fmt.Sprintf("default `%v`", p.schema.Default))
	}
	if len(limits) > 0 {
		about = strings.TrimSpace(about + " (" + strings.Join(limits, ", ") + ")")
	}
	mark := ""
	if input && p.required {
		mark = " *"
	}
	return fmt.Sprintf("| `%s`%s | %s | %s |\n", p.name, mark, kind, about)
}

// shippedTools opens a host as it is shipped and returns its tools by name.
func shippedTools(t testing.TB) (*host.Host, map[string]*catalog.Entry) {
	t.Helper()
	home := t.TempDir()
	c, err := config.Load(config.Flags{Workspace: t.TempDir()}, func(name string) (string, bool) { return home, name == "SKILL_HOME" })
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(c, host.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	tools := map[string]*catalog.Entry{}
	for _, e := range h.Catalog.Entries() {
		if e.Skill.Home.Builtin {
			tools[e.Name] = e
		}
	}
	return h, tools
}

// TestSeedTools: the tools that are served as shipped are the thirteen, with the
// parameters of the seed; what is added is never required. Each says what it
// answers, how it behaves, and what it is good for.
func TestSeedTools(t *testing.T) {
	_, tools := shippedTools(t)
	for _, want := range seed {
		e := tools[want.name]
		if e == nil {
			t.Errorf("there is no tool %s", want.name)
			continue
		}
		params := map[string]string{}
		for _, p := range strings.Fields(want.params) {
			name, kind, _ := strings.Cut(p, ":")
			params[name] = kind
		}
		for _, p := range properties(t, e.Tool.Input) {
			kind := p.kind()
			if p.required {
				kind += "*"
			}
			if p.name == "task_id" && kind == "any*" { // an integer, and a text that holds one, as some clients send it
				kind = "integer*"
			}
			if seeded, ok := params[p.name]; ok && kind != seeded || !ok && p.required {
				t.Errorf("%s: parameter %s is %s, in the seed %q", want.name, p.name, kind, seeded)
			}
			delete(params, p.name)
		}
		if len(params) > 0 {
			t.Errorf("%s lacks parameters %v", want.name, params)
		}
		if e.Tool.Output == nil || e.Tool.Annotations == nil || e.Tool.Title == "" || len(e.Tool.Examples) < 5 {
			t.Errorf("%s: output schema %v, annotations %v, title %q, %d examples", want.name, e.Tool.Output != nil, e.Tool.Annotations, e.Tool.Title, len(e.Tool.Examples))
		}
		delete(tools, want.name)
	}
	for name := range tools {
		t.Errorf("a tool more: %s", name)
	}
}

const pagesDir = "../../docs/tools"

// transcriptMark begins the part of a page that is written from a real call.
const transcriptMark = "\n## A call\n"

// TestToolPages: each tool has a page that says what its manifest says, and
// shows a call. TestThirteen writes the calls.
func TestToolPages(t *testing.T) {
	h, tools := shippedTools(t)
	index := "# The tools\n\nThe thirteen tools that are part of the host. These pages are written from their manifests and from real calls\n(`go test ./cmd/skill -run 'TestThirteen|TestToolPages' -update`).\n\n| tool | |\n|---|---|\n"
	for _, want := range seed {
		e := tools[want.name]
		if e == nil {
			t.Fatalf("there is no tool %s", want.name)
		}
		page := toolPage(t, h, e, want.more)
		index += fmt.Sprintf("| [%s](%s.md) | %s |\n", e.Name, e.Name, firstSentence(e.Tool.Description))
		file := filepath.Join(pagesDir, e.Name+".md")
		data, err := os.ReadFile(file)
		if err != nil && !*update {
			t.Error(err)
			continue
		}
		_, transcript, shown := strings.Cut(string(data), transcriptMark)
		if !shown && !*update {
			t.Errorf("%s shows no call", file)
		}
		if got := page + transcriptMark + transcript; got != string(data) {
			if !*update {
				t.Errorf("%s is not what the manifest says: run this test with -update", file)
			} else if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(pagesDir, "README.md")
	data, err := os.ReadFile(file)
	if *update {
		err = os.WriteFile(file, []byte(index), 0o644)
	} else if err == nil && string(data) != index {
		t.Errorf("%s is not what the manifests say: run this test with -update", file)
	}
	if err != nil {
		t.Error(err)
	}
}

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return strings.Join(strings.Fields(s), " ")
}

func toolPage(t testing.TB, h *host.Host, e *catalog.Entry, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", e.Name, strings.Join(strings.Fields(e.Tool.Description), " "))
	if more != "" {
		fmt.Fprintf(&b, "\nMore: [%s](../%s).\n", more, more)
	}
	if in := properties(t, e.Tool.Input); len(in) > 0 {
		b.WriteString("\n## Parameters\n\n| | | |\n|---|---|---|\n")
		for _, p := range in {
			b.WriteString(p.row(true))
		}
		b.WriteString("\n`*` is required.\n")
	}
	b.WriteString("\n## Structured result\n\n| | | |\n|---|---|---|\n")
	for _, p := range properties(t, e.Tool.Output) {
		b.WriteString(p.row(false))
	}
	fmt.Fprintf(&b, "\n## What it may do\n\n%s.\n", behaviour(e.Tool.Annotations))
	writeNeeds(t, &b, h, e)
	l := e.Tool.Limits
	fmt.Fprintf(&b, "\nLimits of a call: %v, %d MiB of memory, %d KiB of output, %d calls at once.\n", l.Timeout, l.Memory>>20, l.Output>>10, l.Concurrency)
	b.WriteString("\n## Asked for by\n\n")
	for _, x := range e.Tool.Examples {
		b.WriteString("- " + x + "\n")
	}
	return b.String()
}

func behaviour(a *sdk.Annotations) string {
	say := func(v *bool, yes, no string) string {
		if v != nil && *v {
			return yes
		}
		return no
	}
	if a.ReadOnly != nil && *a.ReadOnly {
		return "It changes nothing" + say(a.OpenWorld, ", and talks to the world outside", "")
	}
	return say(a.Destructive, "It may change and destroy things", "It changes only what it keeps itself") +
		say(a.Idempotent, ", the same when called again", "") + say(a.OpenWorld, ", and talks to the world outside", "")
}

// writeNeeds writes what the skill asks for, and what it is held to as shipped.
func writeNeeds(t testing.TB, b *strings.Builder, h *host.Host, e *catalog.Entry) {
	t.Helper()
	layers, err := h.Dispatcher.Layers(e, h.Scope())
	if err != nil {
		t.Fatal(err)
	}
	asks := e.Skill.Needs.Allow
	if len(asks) == 0 {
		b.WriteString("\nIt asks for no capability.\n")
		return
	}
	fmt.Fprintf(b, "\nThe skill `%s` asks for:\n\n", e.Skill.Name)
	for _, c := range asks {
		fmt.Fprintf(b, "- `%s`: `%s`\n", c.Kind, c.Pattern)
	}
	for _, l := range layers {
		if l.Pos.File != "the shipped policy" || len(l.Speaks) == 0 {
			continue
		}
		b.WriteString("\nAs shipped, it is held to")
		for _, topic := range l.Speaks {
			var kept []string
			for _, c := range l.Allow {
				if c.Kind == topic.Kind && c.Verb == topic.Verb {
					kept = append(kept, "`"+strings.ReplaceAll(c.Pattern, h.Scope().Workspace, "${workspace}")+"`")
				}
			}
			if len(kept) == 0 {
				kept = []string{"nothing"}
			}
			fmt.Fprintf(b, " %s for `%s.%s`;", strings.Join(kept, ", "), topic.Kind, topic.Verb)
		}
		s := strings.TrimSuffix(b.String(), ";")
		b.Reset()
		b.WriteString(s + ".\n")
	}
}

// An exchange is a call of a tool and its answer, as a page shows it.
type exchange struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Text      string          `json:"text"`
}

// writeTranscript puts exchanges onto the page of a tool.
func writeTranscript(t testing.TB, tool string, list []exchange, clean func(string) string) {
	t.Helper()
	var b strings.Builder
	for _, x := range list {
		text := clean(x.Text)
		if lines := strings.Split(strings.TrimRight(text, "\n"), "\n"); len(lines) > 24 {
			text = strings.Join(lines[:20], "\n") + fmt.Sprintf("\n[… %d lines more]", len(lines)-20)
		}
		if utf8.RuneCountInString(text) > 4000 {
			text = string([]rune(text)[:4000]) + " […]"
		}
		fmt.Fprintf(&b, "\n```\n→ %s %s\n%s\n```\n", x.Name, clean(string(x.Arguments)), strings.ReplaceAll(strings.TrimRight(text, "\n"), "```", "'''"))
	}
	file := filepath.Join(pagesDir, tool+".md")
	if err := os.MkdirAll(pagesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(data), transcriptMark)
	if err := os.WriteFile(file, []byte(head+transcriptMark+b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
