package template

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// schema has an argument of each type.
const schema = `{"type":"object","properties":{
	"s":{"type":"string"},
	"i":{"type":"integer"},
	"n":{"type":"number"},
	"b":{"type":"boolean"},
	"e":{"type":"string","enum":["--stat","--oneline",""]},
	"c":{"type":"string","const":"-k"},
	"d":{"type":"integer","default":20},
	"l":{"type":"array","items":{"type":"string"}},
	"le":{"type":"array","items":{"type":"string","enum":["-a","-b"]},"default":["-a"]},
	"o":{"type":"object"},
	"any":{"description":"anything"},
	"u":{"type":["string","null"]},
	"r":{"type":"string"}
},"required":["r"]}`

// command makes a command that uses the arguments of schema that it names.
func command(t *testing.T, stdin string, list ...string) *Command {
	t.Helper()
	c, _, err := Parse(append([]string{"prog"}, list...))
	if err != nil {
		t.Fatal(err)
	}
	if stdin != "" {
		if err := c.ParseStdin(stdin); err != nil {
			t.Fatal(err)
		}
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		t.Fatal(err)
	}
	properties := doc["properties"].(map[string]any)
	used := strings.Join(list, " ") + stdin
	for name := range properties {
		if !strings.Contains(used, "{"+name+"}") && !strings.Contains(used, "{"+name+"...}") {
			delete(properties, name)
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bind(raw); err != nil {
		t.Fatal(err)
	}
	return c
}

var dirs = Dirs{Workspace: "/project", SkillDir: "/skills/x"}

func TestArgv(t *testing.T) {
	for _, tt := range []struct {
		name string
		list []string
		args string
		want string // the words after the program, with "|" between them; or the error after "!"
	}{
		{"nothing", nil, `{}`, ""},
		{"no_arguments", []string{"log"}, ``, "log"},
		{"literal_options", []string{"-C", "--x=-y"}, `{}`, "-C|--x=-y"},
		{"empty_word", []string{"", "x"}, `{}`, "|x"},
		{"braces", []string{"{{s}}", "}}{{", "a{{{s}}}b"}, `{"s":"1"}`, "{s}|}{|a{1}b"},
		{"scalars", []string{"{s}", "{i}", "{n}", "{b}"}, `{"s":"x y","i":3,"n":1.5,"b":true}`, "x y|3|1.5|true"},
		{"inside", []string{"--max-count={i}", "{s}:{s}"}, `{"s":"x","i":3}`, "--max-count=3|x:x"},
		{"absent", []string{"a", "--n={i}", "{s}", "z"}, `{}`, "a|z"},
		{"one_of_two_absent", []string{"{s}{i}"}, `{"s":"x"}`, ""},
		{"required_absent", []string{"{r}"}, `{}`, `!the argument "r" is missing`},
		{"default", []string{"--n={d}"}, `{}`, "--n=20"},
		{"default_given", []string{"--n={d}"}, `{"d":1}`, "--n=1"},
		{"default_list", []string{"{le...}"}, `{}`, "-a"},
		{"spread", []string{"a", "{l...}", "z"}, `{"l":["x y","","$(id)"]}`, "a|x y||$(id)|z"},
		{"spread_empty", []string{"a", "{l...}"}, `{"l":[]}`, "a"},
		{"spread_absent", []string{"a", "{l...}"}, `{}`, "a"},
		{"directories", []string{"-C", "{workspace}/x", "{skill_dir}"}, `{}`, "-C|/project/x|/skills/x"},
		{"placeholder_in_value", []string{"{s}", "{i}"}, `{"s":"{i}","i":1}`, "{i}|1"},
		{"shell_is_text", []string{"{s}"}, `{"s":"; rm -rf / #"}`, "; rm -rf / #"},
		{"newline_is_text", []string{"{s}"}, `{"s":"a\nb"}`, "a\nb"},

		{"option", []string{"{s}"}, `{"s":"--output=/etc/x"}`, `!the argument "s", "--output=/etc/x", would be an option of prog`},
		{"option_short", []string{"{s}"}, `{"s":"-c"}`, `!would be an option`},
		{"option_stdin", []string{"{s}"}, `{"s":"-"}`, `!would be an option`},
		{"option_double", []string{"{s}"}, `{"s":"--"}`, `!would be an option`},
		{"option_number", []string{"{i}"}, `{"i":-5}`, `!would be an option`},
		{"option_spread", []string{"{l...}"}, `{"l":["a","-b"]}`, `!the argument "l", "-b", would be an option`},
		{"option_composed", []string{"{s}{r}"}, `{"s":"","r":"-x"}`, `!the argument "r", "-x", would be an option`},
		{"option_after_enum", []string{"{e}{r}"}, `{"e":"","r":"-x"}`, `!would be an option`},
		{"option_by_halves", []string{"{s}{r}"}, `{"s":"-","r":"x"}`, `!would be an option`},
		{"option_with_tail", []string{"{s}=x"}, `{"s":"--output"}`, `!would be an option`},
		{"option_in_value", []string{"--grep={s}"}, `{"s":"--x"}`, "--grep=--x"},
		{"option_after_text", []string{"./{s}"}, `{"s":"-x"}`, "./-x"},
		{"after_dashes", []string{"--", "{s}", "{l...}"}, `{"s":"-x","l":["--y"]}`, "--|-x|--y"},
		{"before_dashes", []string{"{s}", "--"}, `{"s":"-x"}`, `!would be an option`},
		{"dashes_of_caller", []string{"{l...}"}, `{"l":["--","-x"]}`, `!would be an option`},
		{"dashes_of_enum", []string{"{e}", "{s}"}, `{"e":"--stat","s":"-x"}`, `!would be an option`},
		{"dashes_in_word", []string{"a--", "{s}"}, `{"s":"-x"}`, `!would be an option`},
		{"enum", []string{"{e}", "{le...}"}, `{"e":"--stat","le":["-b","-a"]}`, "--stat|-b|-a"},
		{"enum_other", []string{"{e}"}, `{"e":"--output=x"}`, `!would be an option`},
		{"const", []string{"{c}"}, `{"c":"-k"}`, "-k"},

		{"nul", []string{"{s}"}, `{"s":"a\u0000b"}`, `!the argument "s" has a NUL`},
		{"nul_in_option", []string{"--x={s}"}, `{"s":"\u0000"}`, `!has a NUL`},
		{"nul_in_spread", []string{"--", "{l...}"}, `{"l":["a\u0000"]}`, `!the argument "l" has a NUL`},
		{"long", []string{"{s}"}, `{"s":"` + strings.Repeat("x", 128<<10) + `"}`, `!too long`},
		{"long_together", []string{"{l...}"}, `{"l":["` + strings.Repeat(strings.Repeat("x", 100<<10)+`","`, 11) + `"]}`, `!too long`},
		{"unknown", []string{"{s}"}, `{"t":"x"}`, `!there is no argument "t"`},
		{"workspace_of_caller", []string{"{workspace}"}, `{"workspace":"/etc"}`, `!there is no argument "workspace"`},
		{"not_object", []string{"{s}"}, `["s"]`, `!not a JSON object`},
		{"null", []string{"{s}"}, `{"s":null}`, `!want a value of type string`},
		{"wrong_type", []string{"{s}"}, `{"s":1}`, `!want a value of type string`},
		{"wrong_element", []string{"{l...}"}, `{"l":["a",1]}`, `!the argument "l": want a value of type string`},
		{"no_list", []string{"{l...}"}, `{"l":"a"}`, `!want an array`},
		{"null_list", []string{"{l...}"}, `{"l":null}`, `!want an array`},
		{"text_for_number", []string{"{i}"}, `{"i":"--x"}`, `!want a value of type integer`},
		{"exponent", []string{"{i}"}, `{"i":1e3}`, "1000"},
		{"whole_fraction", []string{"{i}"}, `{"i":2.0}`, "2"},
		{"fraction", []string{"{i}"}, `{"i":1.5}`, `!want a whole number`},
		{"exponent_bomb", []string{"{n}"}, `{"n":1e300}`, `!too large`},
		{"exponent_overflow", []string{"{n}"}, `{"n":1e999999999}`, `!want a value of type number`},
		{"digits", []string{"{i}"}, `{"i":123456789012345678901234567890}`, "123456789012345678901234567890"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := command(t, "", tt.list...).Argv(json.RawMessage(tt.args), dirs)
			if want, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) || sdk.KindOf(err) != sdk.Invalid {
					t.Fatalf("got %q, %v, want the error %q", got, err, want)
				}
				return
			}
			if err != nil || got[0] != "prog" || strings.Join(got[1:], "|") != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestNoDirectory(t *testing.T) {
	for _, list := range [][]string{{"-C", "{workspace}"}, {"{skill_dir}/x"}} {
		if got, err := command(t, "", list...).Argv(nil, Dirs{}); err == nil || sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%q without the directory: %q", list, got)
		}
	}
}

func TestUnbound(t *testing.T) {
	c, _, err := Parse([]string{"prog", "{s}"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Argv(nil, dirs); err == nil {
		t.Errorf("a command that was never checked is filled in: %q", got)
	}
}

func TestStdin(t *testing.T) {
	for _, tt := range []struct {
		stdin, args, want string
		ok                bool
	}{
		{"{s}", `{"s":"-x\u0000\ny"}`, "-x\x00\ny", true},
		{"{s}\n", `{"s":"x"}`, "x\n", true},
		{"{s}", `{}`, "", false},
		{"{s}", `{"s":""}`, "", true},
		{"fixed", `{}`, "fixed", true},
		{"{o}", `{"o":{"a":[1,"é"]}}`, `{"a":[1,"é"]}`, true},
		{"{l}", `{"l":["a"]}`, `["a"]`, true},
		{"{any}", `{"any":"x"}`, `"x"`, true},
		{"{any}", `{"any":[1,{"a":null}]}`, `[1,{"a":null}]`, true},
		{"{u}", `{"u":null}`, `null`, true},
		{"{workspace}", `{}`, "/project", true},
	} {
		got, ok, err := command(t, tt.stdin).Stdin(json.RawMessage(tt.args), dirs)
		if err != nil || got != tt.want || ok != tt.ok {
			t.Errorf("%s %s: got %q, %v, %v", tt.stdin, tt.args, got, ok, err)
		}
	}
	if _, ok, err := command(t, "", "x").Stdin(nil, dirs); ok || err != nil {
		t.Errorf("a command without stdin: %v, %v", ok, err)
	}
}

// Whatever the arguments are, a word is a literal, starts with the author's own
// text, stands after "--", is one of the author's values, or is no option.
func FuzzArgv(f *testing.F) {
	f.Add("log", "--n={i}", "{s}", "{s}{r}", `{"s":"-x","r":"y","i":3}`)
	f.Add("{{", "{e}", "--", "{l...}", `{"l":["-a"],"e":"--stat"}`)
	f.Fuzz(func(t *testing.T, a, b, c, d, args string) {
		list := []string{"prog", a, b, c, d}
		cmd, _, err := Parse(list)
		if err != nil {
			return
		}
		if err := cmd.Bind(json.RawMessage(`{"properties":{"s":{"type":"string"},"i":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}},"e":{"type":"string","enum":["--stat"]},"r":{"type":"string"}}}`)); err != nil {
			// Most rows do not use them all: bind what they use.
			properties := map[string]any{}
			for _, w := range cmd.args {
				for _, n := range w.names() {
					properties[n] = map[string]any{"type": "string"}
					if w.spread != "" {
						properties[n] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
					}
				}
			}
			delete(properties, Workspace)
			delete(properties, SkillDir)
			raw, err := json.Marshal(map[string]any{"properties": properties})
			if err != nil {
				t.Fatal(err)
			}
			if cmd.Bind(raw) != nil {
				return
			}
		}
		got, err := cmd.Argv(json.RawMessage(args), dirs)
		if err != nil {
			return
		}
		// The author's own options: what starts with "-" before any argument.
		own := map[string]bool{}
		for _, w := range cmd.args {
			if text, ok := w.literal(); ok {
				own[text] = true
			} else if len(w.parts) > 0 && w.parts[0].name == "" {
				own[w.parts[0].text] = true
			}
		}
		for _, word := range got[1:] {
			if word == "--" && own["--"] {
				break
			}
			if strings.ContainsRune(word, 0) {
				t.Fatalf("%q: a NUL in %q", list, got)
			}
			if !strings.HasPrefix(word, "-") || slices.Contains([]string{"--stat"}, word) {
				continue
			}
			found := false
			for text := range own {
				found = found || text != "" && strings.HasPrefix(word, text)
			}
			if !found {
				t.Fatalf("%q: an option out of an argument: %q", list, got)
			}
		}
	})
}
