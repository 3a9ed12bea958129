package manifest

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

var update = flag.Bool("update", false, "write the errors into testdata/bad.txtar")

// TestBad reads every manifest of testdata/bad.txtar: a file NAME.toml and the
// error that it gives, NAME.error.
func TestBad(t *testing.T) {
	const name = "testdata/bad.txtar"
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	out := &txtar.Archive{Comment: a.Comment}
	n := 0
	for _, f := range a.Files {
		base, ok := strings.CutSuffix(f.Name, ".toml")
		if !ok {
			continue
		}
		n++
		// A line @NUL@ and the like stands for what a text file cannot hold.
		data := strings.NewReplacer("@NUL@", "\x00", "@BIDI@", "\u202e", "@TAG@", "\U000E0041", "@LONG@", strings.Repeat("x", 20000)).Replace(string(f.Data))
		if !strings.HasPrefix(data, "name = ") && !strings.HasPrefix(base, "whole_") {
			data = head + data
		}
		_, err := Read("skill.toml", []byte(data))
		got := "no error\n"
		if err != nil {
			got = strings.Replace(err.Error(), strings.Repeat("x", 20000), "@LONG@", 1) + "\n"
			if sdk.KindOf(err) != sdk.Invalid {
				t.Errorf("%s: kind %v", base, sdk.KindOf(err))
			}
		}
		out.Files = append(out.Files, f, txtar.File{Name: base + ".error", Data: []byte(got)})
		if !*update && got != want[base+".error"] {
			t.Errorf("%s\ngot  %swant %s", base, got, want[base+".error"])
		}
		if err == nil {
			t.Errorf("%s: no error", base)
		} else if !strings.HasPrefix(got, "skill.toml:") && !strings.HasPrefix(base, "whole_") {
			t.Errorf("%s: no line in %s", base, got)
		}
	}
	if n < 60 {
		t.Errorf("only %d manifests", n)
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// head makes a fragment a manifest, on one line so that line 2 is its first.
const head = "name = \"hello\"\nversion = \"1.0.0\"\ndescription = \"Says hello.\"\nruntime = \"wasm\"\nsource = \"hello.wasm\"\n"

func TestGood(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.toml")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file, data); err != nil {
			t.Error(err)
		}
	}
}

func TestRead(t *testing.T) {
	data, err := os.ReadFile("testdata/good/full.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read("skill.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	if s.About != (About{"hello", "1.2.0-beta.1", "Hello", "Greets people in many languages.", "Apache-2.0", "https://example.com/hello"}) {
		t.Errorf("about: %+v", s.About)
	}
	if s.Runtime != "wasm" || s.ABI != "skill/1" || s.Source != "bin/hello.wasm" || s.Sandbox != (Sandbox{Isolation: "fresh"}) {
		t.Errorf("module: %+v", s)
	}
	limits := Limits{128 << 20, 30 * time.Second, 20 * time.Minute, 8 << 20, 8, Rate{60, time.Minute}, 4, 1 << 20}
	if s.Limits != limits {
		t.Errorf("limits: %+v", s.Limits)
	}
	if string(s.Settings) != `{"properties":{"region":{"default":"eu","enum":["eu","us"]}},"type":"object"}` {
		t.Errorf("settings: %s", s.Settings)
	}
	if len(s.Tools) != 2 || s.Tools[0].Name != "greet" || s.Tools[1].Name != "greet.all" {
		t.Fatalf("tools: %+v", s.Tools)
	}
	greet := s.Tools[0]
	if greet.Pos != (capability.Pos{File: "skill.toml", Line: 12}) || string(greet.Input) != `{"additionalProperties":false,"properties":{"name":{"minLength":1,"type":"string"}},"required":["name"],"type":"object"}` ||
		string(greet.Output) != `{"type":"object","properties":{"text":{"type":"string"}}}` || !*greet.Annotations.ReadOnly || *greet.Annotations.Destructive ||
		len(greet.Examples) != 2 || !reflect.DeepEqual(greet.Icons, []sdk.Icon{{Src: "https://example.com/i.png", MIME: "image/png", Sizes: []string{"48x48"}}}) ||
		string(greet.Meta) != `{"example.com/rank":3,"tags":["a","b"]}` {
		t.Errorf("greet: %+v", greet)
	}
	limits.Timeout, limits.Memory = 5*time.Second, 64<<20
	if greet.Limits != limits {
		t.Errorf("greet's limits: %+v", greet.Limits)
	}
	if n := greet.Narrow; n.Closed || n.Name != "manifest" || n.Table != "[tools.greet.capabilities]" || n.Pos.Line != 24 ||
		!reflect.DeepEqual(n.Speaks, []capability.Topic{{Kind: "network", Verb: "connect"}, {Kind: "filesystem", Verb: "read"}, {Kind: "filesystem", Verb: "write"}, {Kind: "env", Verb: "read"}, {Kind: "client", Verb: "ask"}, {Kind: "secrets", Verb: "use"}}) ||
		len(n.Allow) != 5 || n.Allow[0].Pos.Line != 25 {
		t.Errorf("greet's capabilities: %+v", n)
	}
	if s.Tools[1].Input != nil || s.Tools[1].Narrow != nil {
		t.Errorf("greet.all: %+v", s.Tools[1])
	}
	if !s.Needs.Closed || s.Needs.Name != "manifest" || s.Needs.Table != "[capabilities]" || s.Needs.Pos != (capability.Pos{File: "skill.toml", Line: 57}) || len(s.Needs.Speaks) != 0 {
		t.Errorf("needs: %+v", s.Needs)
	}
	var entries []string
	for _, c := range s.Needs.Allow {
		entries = append(entries, string(c.Kind)+" "+c.Entry()+" "+c.Pos.String())
	}
	if want := []string{"network *.example.com skill.toml:58", "network tcp://db.internal:5432 skill.toml:58", "filesystem read:/data skill.toml:60", "filesystem write:${workspace}/out? skill.toml:61",
		"filesystem write:${tmp} skill.toml:62", "env LANG skill.toml:64", "env TZ skill.toml:64", "invoke ReadImage skill.toml:65", "invoke other.* skill.toml:65", "client sampling skill.toml:66", "client roots skill.toml:66", "secrets GREETINGS_TOKEN skill.toml:68"}; !slices.Equal(entries, want) {
		t.Errorf("needs:\n%s", strings.Join(entries, "\n"))
	}
	if !reflect.DeepEqual(s.Secrets, []Secret{{"GREETINGS_TOKEN", []string{"api.example.com"}, "Authorization", "", "Bearer {}", capability.Pos{File: "skill.toml", Line: 68}}}) {
		t.Errorf("secrets: %+v", s.Secrets)
	}
	if len(s.Resources) != 2 || s.Resources[0].File != "data/greetings.txt" || s.Resources[1].Narrow == nil || s.Resources[1].Tool != "greet" || s.Resources[1].Template == nil {
		t.Errorf("resources: %+v", s.Resources)
	}
	if len(s.Prompts) != 1 || !reflect.DeepEqual(s.Prompts[0].Arguments, []Argument{{Name: "who", Description: "whom to welcome", Required: true}, {Name: "tone"}}) {
		t.Errorf("prompts: %+v", s.Prompts)
	}
}

func TestOffers(t *testing.T) {
	data, err := os.ReadFile("testdata/good/offers.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read("skill.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Tools[0].Hidden || !s.Tools[1].Hidden || s.Tools[2].Hidden || string(s.Tools[0].Meta) != `{"ui":{"resourceUri":"ui://library/view"}}` {
		t.Errorf("tools: %+v", s.Tools)
	}
	greetings, one := s.Resources[0], s.Resources[1]
	if l := greetings.Look; greetings.Template != nil || !slices.Equal(l.Audience, []string{"user", "assistant"}) || *l.Priority != 0.5 || l.Modified != "2026-11-22T10:00:00Z" ||
		!reflect.DeepEqual(l.Icons, []sdk.Icon{{Src: "https://example.com/i.svg", Theme: "dark"}}) || string(l.Meta) != `{"ui":{"prefersBorder":true}}` {
		t.Errorf("greetings: %+v", greetings)
	}
	if !slices.Equal(one.Template.Names, []string{"language", "tone"}) || one.Narrow == nil ||
		!reflect.DeepEqual(one.Variables, map[string]Completion{"language": {Values: []string{"en", "fi"}}, "tone": {Tool: "suggest"}}) {
		t.Errorf("one: %+v", one)
	}
	letter, welcome := s.Prompts[0], s.Prompts[1]
	if letter.Tool != "write" || letter.File != "" || letter.Icons == nil || letter.Arguments[0].Complete.Tool != "suggest" {
		t.Errorf("letter: %+v", letter)
	}
	if welcome.File == "" || welcome.Tool != "" || !slices.Equal(welcome.Arguments[1].Complete.Values, []string{"warm", "cold"}) {
		t.Errorf("welcome: %+v", welcome)
	}
}

func TestReadDefaults(t *testing.T) {
	s, err := Read("skill.toml", []byte(head+"[tools.a]"))
	if err != nil {
		t.Fatal(err)
	}
	if s.ABI != "skill/1" || s.Limits != DefaultLimits || s.Tools[0].Limits != DefaultLimits || s.Sandbox != (Sandbox{Isolation: "call"}) ||
		string(s.Tools[0].Input) != `{"type":"object"}` || s.Tools[0].Output != nil || s.Tools[0].Annotations != nil {
		t.Errorf("%+v", s)
	}
	if !s.Needs.Closed || len(s.Needs.Allow) != 0 {
		t.Errorf("needs: %+v", s.Needs)
	}
	// A long timeout raises the maximum that was not said, a short maximum
	// lowers the timeout.
	for text, want := range map[string][2]time.Duration{
		`timeout = "50m"`:    {50 * time.Minute, 50 * time.Minute},
		`max_timeout = "2s"`: {2 * time.Second, 2 * time.Second},
		`timeout = "1ms"`:    {time.Millisecond, 10 * time.Minute},
	} {
		s, err := Read("skill.toml", []byte(head+"[tools.a]\n[limits]\n"+text))
		if err != nil || s.Limits.Timeout != want[0] || s.Limits.MaxTimeout != want[1] {
			t.Errorf("%s: %+v, %v", text, s.Limits, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/good/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(head + "[tools.a]\ninput = '{'"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read("skill.toml", data)
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatal(err)
			}
			return
		}
		// Whatever is accepted keeps what the rest of the host relies on.
		if !words.IsSkillName(s.Name) || !s.Needs.Closed || s.Runtime == "wasm" && words.BadFile(s.Source) != "" {
			t.Fatalf("%+v", s)
		}
		for _, tool := range s.Tools {
			if !words.IsToolName(tool.Name) || tool.Input != nil && !json.Valid(tool.Input) || tool.Limits.Timeout > tool.Limits.MaxTimeout || tool.Limits.Memory > maxMemory {
				t.Fatalf("%+v", tool)
			}
			if tool.Narrow != nil && tool.Narrow.Closed {
				t.Fatalf("%+v", tool.Narrow)
			}
		}
	})
}
