package tomlfile

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/skillhost/skill/sdk"
)

type about struct {
	Name    string `toml:"name"`
	Version string `toml:"version"`
}

type sample struct {
	about
	Tools        map[string]tool `toml:"tools"`
	Capabilities *caps           `toml:"capabilities"`
	Timeout      time.Duration   `toml:"timeout"`
	Count        int8            `toml:"count"`
	Port         uint16          `toml:"port"`
	Share        float64         `toml:"share"`
	On           *bool           `toml:"on"`
	Since        time.Time       `toml:"since"`
	Any          any             `toml:"any"`
	Size         size            `toml:"size"`
	Plain        string
	hidden       string
}

type tool struct {
	Description string `toml:"description"`
	Input       any    `toml:"input"`
}

type caps struct {
	Network []string `toml:"network"`
	Secrets []struct {
		Name  string   `toml:"name"`
		Hosts []string `toml:"hosts"`
	} `toml:"secrets"`
}

type size int

func (s *size) UnmarshalText(b []byte) error {
	if string(b) != "big" {
		return errors.New("want big")
	}
	*s = 7
	return nil
}

const good = `# comment
name = "x" # another
version = '1.0'
timeout = "1m30s"
count = -3
port = 65535
share = 2
on = true
since = 1979-05-27 07:32:00Z
size = "big"
plain = "p"

[tools."greet.it"]
description = """
two
lines"""
input = { type = "object", properties = { "a b" = { type = "string" } } }

[capabilities]
network = [
  "a.example", # first

  "b.example", "c.example",
]
[[capabilities.secrets]]
name = "A"
[[capabilities.secrets]]
name = "B"
hosts = [
  "h1",
  "h2"]
`

func TestDecode(t *testing.T) {
	var s sample
	d, err := Decode("f.toml", []byte(good), &s)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "x" || s.Version != "1.0" || s.Timeout != 90*time.Second || s.Count != -3 || s.Port != 65535 ||
		s.Share != 2 || s.On == nil || !*s.On || s.Since.Year() != 1979 || s.Size != 7 || s.Plain != "p" || s.hidden != "" {
		t.Errorf("scalars: %+v", s)
	}
	if s.Tools["greet.it"].Description != "two\nlines" || len(s.Capabilities.Network) != 3 ||
		len(s.Capabilities.Secrets) != 2 || s.Capabilities.Secrets[1].Hosts[1] != "h2" {
		t.Errorf("tables: %+v", s)
	}
	for path, line := range map[string]int{
		"name": 2, "version": 3, "tools": 13, "tools/greet.it": 13, "tools/greet.it/description": 14,
		"tools/greet.it/input": 17, "tools/greet.it/input/properties/a b/type": 17, "tools/greet.it/absent/x": 13,
		"capabilities": 19, "capabilities/network": 20, "capabilities/network/0": 21, "capabilities/network/2": 23,
		"capabilities/network/9": 20, "capabilities/network/-1": 20, "capabilities/network/x": 20,
		"capabilities/secrets": 25, "capabilities/secrets/0": 25, "capabilities/secrets/1": 27,
		"capabilities/secrets/1/name": 28, "capabilities/secrets/1/hosts/0": 30, "capabilities/secrets/1/hosts/1": 31,
		"absent": 0,
	} {
		if got := d.Pos(strings.Split(path, "/")...); got.Line != line || got.File != "f.toml" {
			t.Errorf("Pos(%s) = %v, want line %d", path, got, line)
		}
	}
	if got := d.Pos(); got.Line != 0 {
		t.Errorf("Pos() = %v", got)
	}
}

func TestSpans(t *testing.T) {
	text := "any.a = 1\n[tools.x] # c\ndescription = \"\"\"\na\nb\"\"\"\n# c\ninput.a = [1,\n2]\n[tools.x.input.b]\nc = {d = 1}\n[capabilities]\n[[capabilities.secrets]]\nname = \"A\"\n[[capabilities.secrets]]\n"
	d, err := Decode("f", []byte(text), new(sample))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]Span{
		"any": {{1, 1}}, "tools/x/description": {{3, 5}}, "tools/x/input": {{7, 8}, {9, 9}, {10, 10}}, "tools/x": {{2, 2}, {3, 5}, {7, 8}, {9, 9}, {10, 10}},
		"capabilities": {{11, 11}, {12, 12}, {13, 13}, {14, 14}}, "none": nil,
	} {
		if got := d.Spans(strings.Split(path, "/")...); !reflect.DeepEqual(got, want) {
			t.Errorf("Spans(%s) = %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]int{"tools/x": 2, "tools/x/input": 0, "tools/x/input/b": 9, "tools": 0, "none": 0} {
		if got := d.Header(strings.Split(path, "/")...); got != want {
			t.Errorf("Header(%s) = %d, want %d", path, got, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown_key", "name = \"x\"\nverson = \"1\"", `f.toml:2: unknown key "verson" at the top level (did you mean "version"? known here: any, capabilities, count, name, on, plain, port, share, since, size, timeout, tools, version)`},
		{"unknown_key_far", "zzzzzzzzz = 1", `f.toml:1: unknown key "zzzzzzzzz" at the top level (known here: any, capabilities, count, name, on, plain, port, share, since, size, timeout, tools, version)`},
		{"unknown_key_case", "Name = \"x\"", `f.toml:1: unknown key "Name" at the top level (did you mean "name"? known here: any, capabilities, count, name, on, plain, port, share, since, size, timeout, tools, version)`},
		{"unknown_key_unexported", "hidden = \"x\"", `f.toml:1: unknown key "hidden" at the top level (known here: any, capabilities, count, name, on, plain, port, share, since, size, timeout, tools, version)`},
		{"unknown_key_in_table", "[capabilities]\n\nnetwrok = []", `f.toml:3: unknown key "netwrok" in [capabilities] (did you mean "network"? known here: network, secrets)`},
		{"unknown_table", "[tools.a.capabilites]\nx = 1", `f.toml:1: unknown key "capabilites" in [tools.a] (known here: description, input)`},
		{"unknown_key_in_array_of_tables", "[[capabilities.secrets]]\nname = \"A\"\n[[capabilities.secrets]]\nhost = []", `f.toml:4: unknown key "host" in [[capabilities.secrets]] (did you mean "hosts"? known here: hosts, name)`},
		{"first_of_two", "b = 1\na = 1", `f.toml:1: unknown key "b" at the top level (known here: any, capabilities, count, name, on, plain, port, share, since, size, timeout, tools, version)`},
		{"duplicate_key", "name = \"x\"\nname = \"y\"", `f.toml:2: duplicate key "name": it is already defined on line 1`},
		{"duplicate_key_quoted", "name = \"x\"\n\"n\\u0061me\" = \"y\"", `f.toml:2: duplicate key "name": it is already defined on line 1`},
		{"duplicate_table", "[capabilities]\n[capabilities]", `f.toml:2: duplicate key "capabilities": it is already defined on line 1`},
		{"duplicate_inline_in_array", "any = [\n{a = 1, a = 2}]", `f.toml:2: duplicate key "a": it is already defined on line 2`},
		{"inline_extended", "any = {a = 1}\nany.b = 2", `f.toml:2: "any" on line 1 is a complete value: nothing can be added to it`},
		{"inline_extended_by_table", "any = {a = {b = 1}}\n[any.a.c]", `f.toml:2: "any" on line 1 is a complete value: nothing can be added to it`},
		{"value_is_no_table", "name = \"x\"\n[name.y]", `f.toml:2: "name" on line 1 is a complete value: nothing can be added to it`},
		{"wrong_type_string", "name = 1", `f.toml:1: name: want a string, found an integer`},
		{"wrong_type_table", "tools = 1.5", `f.toml:1: tools: want a table, found a float`},
		{"wrong_type_struct", "capabilities = [1]", `f.toml:1: capabilities: want a table, found an array`},
		{"wrong_type_element", "[capabilities]\nnetwork = [\"a\",\n3]", `f.toml:3: capabilities.network.1: want a string, found an integer`},
		{"wrong_type_array", "[capabilities]\nnetwork = \"a\"", `f.toml:2: capabilities.network: want an array, found a string`},
		{"wrong_type_bool", "on = \"yes\"", `f.toml:1: on: want true or false, found a string`},
		{"wrong_type_int", "count = 1.0", `f.toml:1: count: want an integer, found a float`},
		{"wrong_type_float", "share = true", `f.toml:1: share: want a number, found a boolean`},
		{"wrong_type_time", "since = {}", `f.toml:1: since: want a date and time, found a table`},
		{"wrong_type_text", "size = 1979-05-27", `f.toml:1: size: want a string, found a date or time`},
		{"out_of_range", "count = 128", `f.toml:1: count: 128 is out of range`},
		{"negative_unsigned", "port = -1", `f.toml:1: port: -1 is out of range`},
		{"duration_unit", "timeout = \"30\"", `f.toml:1: timeout: bad duration "30" (write for example "30s", "500ms" or "10m")`},
		{"duration_number", "timeout = 30", `f.toml:1: timeout: want a duration such as "30s", found an integer`},
		{"text", "size = \"small\"", `f.toml:1: size: want big`},
		{"no_value", "name =", `f.toml:1: want a value, found the end of the file`},
		{"no_value_eol", "name =\nx = 1", `f.toml:1: want a value, found the end of the line`},
		{"no_equals", "name", `f.toml:1: want "=" after the key "name", found the end of the file`},
		{"no_key", "\n= 3", `f.toml:2: want a key, found '='`},
		{"open_string", "name = \"x\n", `f.toml:1: a string does not end on its line`},
		{"open_long_string", "\nname = \"\"\"x\n\n", `f.toml:2: the string that starts with """ does not end`},
		{"open_array", "any = [1,\n2", `f.toml:2: want "," or "]" in the array that starts on line 1, found the end of the file`},
		{"open_inline", "any = {a = 1", `f.toml:1: want "," or "}" in the table that starts on line 1, found the end of the file`},
		{"open_header", "[tools", `f.toml:1: want "]" after a table's name, found the end of the file`},
		{"open_double_header", "[[tools]", `f.toml:1: want "]]" after a table's name, found ']'`},
		{"two_on_a_line", `name = "x" version = "y"`, `f.toml:1: want the end of the line, found 'v'`},
		{"bad_value", "\nname = yes", `f.toml:2: expected value but found "yes" instead`},
		{"bad_escape_in_key", `"\q" = 1`, `f.toml:1: bad escape in the key "\\q"`},
		{"not_utf8", "\n\nname = \"\xff\"", `f.toml:3: the file is not UTF-8 (save it as UTF-8)`},
		{"nul", "name = \"\x00\"", `f.toml:1: TOML files cannot contain control characters: '0x00'`},
		{"control", "name = \"x\"\nversion = \"\x01\"", `f.toml:2: TOML files cannot contain control characters: '0x01'`},
		{"too_big", strings.Repeat("#", MaxSize+1), `f.toml: the file has 1048577 bytes (at most 1048576 are read)`},
		{"deep_array", "any = " + strings.Repeat("[", 500000), `f.toml:1: values are nested more than 64 deep`},
		{"deep_inline", "any = " + strings.Repeat("{a=", 300000), `f.toml:1: values are nested more than 64 deep`},
		{"deep_dotted", strings.Repeat("a.", 400000) + "a = 1", `f.toml:1: keys are nested more than 64 deep`},
		{"deep_header", "[" + strings.Repeat("a.", 400000) + "a]", `f.toml:1: keys are nested more than 64 deep`},
		{"deep_mixed", "[" + strings.Repeat("a.", 60) + "a]\n" + strings.Repeat("b.", 60) + "b = 1", `f.toml:2: values are nested more than 64 deep`},
		{"long_key", strings.Repeat("a", 2000) + " = 1", `f.toml:1: a key is longer than 1024 bytes`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Decode("f.toml", []byte(tc.text), new(sample))
			if err == nil {
				t.Fatal("no error")
			}
			if sdk.KindOf(err) != sdk.Invalid {
				t.Errorf("kind %v", sdk.KindOf(err))
			}
			if err.Error() != tc.want {
				t.Errorf("\ngot  %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestDecodeIntoNoPointer(t *testing.T) {
	for _, v := range []any{nil, sample{}, (*sample)(nil)} {
		if _, err := Decode("f", nil, v); sdk.KindOf(err) != sdk.Internal {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// FuzzScan: the scanner never panics, refuses nothing that the decoder
// accepts (but for bounds and duplicates, where the decoder has holes), and
// sees the same keys.
func FuzzScan(f *testing.F) {
	f.Add(good)
	for _, s := range []string{
		"a.b.c = 1\n[d.e]\nf = 2\n[d]\ng = 3", "a = [[1, 2], [], [{x = 1}]]", "[[a]]\n[[a.b]]\n[a.b.c]\n[[a]]\n[a.b]",
		`"" = 1`, "'a.b' = '''x'''''", "a = \"\"\"\\\"\"\"\"\"", "a = \"\"\"\\\n  b\"\"\"", "a = {b.c = 1, b.d = 2}", "\uFEFFa = 1",
		"a = 07:32:00 # c\r\nb = -inf", "\"\\U0001F600\\x41\\e\" = 1", "[ a . b ]", "a = [\n1,# c\n\n2,\n]", "a = {\nb = 1,\n}", "[a]\nb.c=1\n[a.b]",
		"a = []\n[[a]]", "a = [{}]\n[[a]]", "[a]\n[[a]]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<16 || firstInvalid(s) >= 0 {
			return
		}
		root, err := scan(s)
		var se *scanError
		if errors.As(err, &se) && (se.dup || strings.Contains(se.what, "nested") || strings.Contains(se.what, "longer than")) {
			return
		}
		var tree map[string]any
		if _, derr := toml.Decode(s, &tree); derr != nil {
			return
		}
		if err != nil {
			t.Fatalf("the decoder accepts what the scanner refuses: %v", err)
		}
		if path, ok := agree(tree, root, nil); !ok {
			t.Fatalf("the decoder and the scanner differ at %q", path)
		}
	})
}

// FuzzDecode: hostile text never panics, and every failure has a kind.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("any = [1, {a = 2}]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Decode("f", b, new(sample)); err != nil && sdk.KindOf(err) != sdk.Invalid {
			t.Fatal(err)
		}
	})
}
