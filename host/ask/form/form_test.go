package form

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const everything = `{"type":"object","properties":{
	"db":{"type":"string","title":"Database","description":"Which?","oneOf":[{"const":"pg","title":"Postgres — runs already"},{"const":"lite","title":"SQLite"}],"default":"lite"},
	"db_other":{"type":"string","title":"Other","maxLength":20},
	"plain":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},
	"many":{"type":"array","title":"Features","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"},{"const":"z","title":"Z"}]},"default":["z","x"]},
	"loose":{"type":"array","items":{"enum":["l1","l2"]}},
	"sure":{"type":"boolean","default":true},
	"age":{"type":"integer","minimum":1,"maximum":150,"default":30},
	"score":{"type":"number"},
	"mail":{"type":"string","format":"email"},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time"},
	"site":{"type":"string","format":"uri"}
},"required":["db","many"]}`

func parse(t *testing.T, schema string) Form {
	t.Helper()
	f, err := Parse(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse(t *testing.T) {
	f := parse(t, everything)
	var names, kinds []string
	for _, x := range f.Fields {
		names, kinds = append(names, x.Name), append(kinds, string(x.Kind))
	}
	if got := strings.Join(names, " "); got != "db db_other plain many loose sure age score mail day at site" {
		t.Errorf("order of fields: %s", got)
	}
	if got := strings.Join(kinds, " "); got != "choice text choice several several yesno integer number text text text text" {
		t.Errorf("kinds: %s", got)
	}
	db, many := f.Fields[0], f.Fields[3]
	if !db.Required || db.Title != "Database" || db.About != "Which?" || !reflect.DeepEqual(db.Options, []Option{{"pg", "Postgres — runs already"}, {"lite", "SQLite"}}) || !reflect.DeepEqual(db.Initial, []string{"1"}) {
		t.Errorf("%+v", db)
	}
	if !many.Required || !reflect.DeepEqual(many.Initial, []string{"2", "0"}) || many.Bounds.Fewest != 1 || many.Bounds.Maximum != 2 {
		t.Errorf("%+v", many)
	}
	if p := f.Fields[2]; p.Title != "plain" || p.Options[1].Label != "B" {
		t.Errorf("%+v", p)
	}
	if !reflect.DeepEqual(f.Fields[5].Initial, []string{"true"}) || !reflect.DeepEqual(f.Fields[6].Initial, []string{"30"}) {
		t.Errorf("%+v", f.Fields[5:7])
	}
	if f, err := Parse(json.RawMessage(`{"type":"object"}`)); err != nil || len(f.Fields) != 0 {
		t.Errorf("%+v %v", f, err)
	}
}

// What is no flat form is not shown: a page could not say what it asks.
func TestParseRefuses(t *testing.T) {
	many := strings.Repeat(`"x":{"type":"string"},`, MaxFields)
	for name, schema := range map[string]string{
		"nothing":         ``,
		"no_object":       `[]`,
		"properties_list": `{"properties":[]}`,
		"nested":          `{"properties":{"a":{"type":"object"}}}`,
		"any_list":        `{"properties":{"a":{"type":"array"}}}`,
		"no_options":      `{"properties":{"a":{"type":"string","enum":[]}}}`,
		"too_many":        `{"properties":{` + many + `"y":{"type":"string"}}}`,
		"no_type":         `{"properties":{"a":{}}}`,
		"cut":             `{"properties":{"a":{"type":"string"}`,
	} {
		if f, err := Parse(json.RawMessage(schema)); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestRead(t *testing.T) {
	f := parse(t, everything)
	good := func(filled map[string][]string, want string) {
		t.Helper()
		filled2 := map[string][]string{"db": {"0"}, "many": {"0"}}
		for k, v := range filled {
			filled2[k] = v
		}
		got, faults := f.Read(filled2)
		if faults != nil || string(got) != want {
			t.Errorf("%v: got %s, %v, want %s", filled, got, faults, want)
		}
	}
	good(nil, `{"db":"pg","many":["x"]}`)
	good(map[string][]string{"db": {"1"}, "db_other": {"ö\"<"}, "plain": {"1"}, "many": {"2", "1", "2"}, "sure": {"false"}, "age": {" 7 "}, "score": {"-1.5e3"}},
		`{"db":"lite","db_other":"ö\"\u003c","plain":"b","many":["z","y"],"sure":false,"age":7,"score":-1.5e3}`)
	good(map[string][]string{"plain": {""}, "loose": {""}, "sure": {""}, "age": {""}, "mail": {""}}, `{"db":"pg","many":["x"]}`)
	good(map[string][]string{"mail": {"a@b.c"}, "day": {"2026-02-28"}, "at": {"2026-02-28T01:02:03Z"}, "site": {"https://x/"}},
		`{"db":"pg","many":["x"],"mail":"a@b.c","day":"2026-02-28","at":"2026-02-28T01:02:03Z","site":"https://x/"}`)
	good(map[string][]string{"unknown": {"x"}}, `{"db":"pg","many":["x"]}`)

	for name, filled := range map[string]map[string][]string{
		"db":       {"db": {"2"}},
		"many":     {"many": {"0", "1", "2"}},
		"db_other": {"db_other": {strings.Repeat("x", 21)}},
		"plain":    {"plain": {"a"}}, // the value, and not its index
		"loose":    {"loose": {"-1"}},
		"sure":     {"sure": {"yes"}},
		"age":      {"age": {"151"}},
		"score":    {"score": {"NaN"}},
		"mail":     {"mail": {"Me <a@b.c>"}},
		"day":      {"day": {"2026-02-30"}},
		"at":       {"at": {"noon"}},
		"site":     {"site": {"here"}},
	} {
		all := map[string][]string{"db": {"0"}, "many": {"0"}}
		for k, v := range filled {
			all[k] = v
		}
		if got, faults := f.Read(all); got != nil || len(faults) != 1 || faults[0].Field != name {
			t.Errorf("%v: %s %v", filled, got, faults)
		}
	}
	for _, age := range []string{"0", "1.5", "0x10", "1_0", "one", "1e999", "+1"} {
		if got, faults := f.Read(map[string][]string{"db": {"0"}, "many": {"0"}, "age": {age}}); faults == nil {
			t.Errorf("age %q: %s", age, got)
		}
	}
	if _, faults := f.Read(nil); len(faults) != 2 {
		t.Errorf("without what is required: %v", faults)
	}
	if _, faults := f.Read(map[string][]string{"db": {"0", "1"}, "many": {"0"}}); len(faults) != 1 {
		t.Errorf("two choices of one: %v", faults)
	}
}

// Clients of 2025-06-18 and before have neither lists nor oneOf.
func TestOlder(t *testing.T) {
	f := parse(t, `{"properties":{
		"q1":{"type":"array","title":"Pick","description":"some","items":{"anyOf":[{"const":"a","title":"A — first"},{"const":"b","title":"B"}]},"default":["b"]},
		"q1_2":{"type":"string","title":"Taken"},
		"q2":{"type":"string","oneOf":[{"const":"x","title":"X!"}]},
		"n":{"type":"integer","minimum":1},"t":{"type":"string","maxLength":9,"format":"email","default":"no"},"s":{"type":"boolean","default":false}},"required":["q1","q2"]}`)
	o := f.Older()
	want := `{"type":"object","properties":{"q1_1":{"description":"some","title":"Pick: A — first","type":"boolean"},` +
		`"q1_2_":{"default":true,"description":"some","title":"Pick: B","type":"boolean"},"q1_2":{"title":"Taken","type":"string"},` +
		`"q2":{"enum":["x"],"enumNames":["X!"],"title":"q2","type":"string"},"n":{"minimum":1,"title":"n","type":"integer"},` +
		`"t":{"format":"email","maxLength":9,"title":"t","type":"string"},"s":{"default":false,"title":"s","type":"boolean"}},"required":["q2"]}`
	if string(o.Schema) != want {
		t.Errorf("got  %s\nwant %s", o.Schema, want)
	}
	for given, want := range map[string]string{
		`{"q1_1":true,"q1_2_":true,"q1_2":"t","q2":"x"}`: `{"q1":["a","b"],"q1_2":"t","q2":"x"}`,
		`{"q1_1":false,"q1_2_":true}`:                    `{"q1":["b"]}`,
		`{"q1_1":false}`:                                 `{}`,
		`{"q1":["a"],"q1_2_":true}`:                      `{"q1":["a"]}`,
		`{"q1_1":"true"}`:                                `{"q1_1":"true"}`,
		`[1]`:                                            `[1]`,
		`null`:                                           `null`,
	} {
		if got := string(o.Restore(json.RawMessage(given))); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
	if got := (Older{}).Restore(json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` {
		t.Errorf("%s", got)
	}
}

// terminal_escape, bidi_override: no text moves a cursor or hides another.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nö 日本 👩‍🚀":      "a\tb\nö 日本 👩‍🚀",
		"\x1b[2J\x07":         "\ufffd[2J\ufffd",
		"\u009b2J":            "\ufffd2J",
		"\x9b2J":              "\ufffd2J",
		"a\rb":                "a\ufffdb",
		"\u202etxt.exe\u2066": "\ufffdtxt.exe\ufffd",
		"a\u2028b\u200bc":     "a\ufffdb\ufffdc",
		"\U000e0041":          "\ufffd",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := Line("a\n\tb"); got != "a  b" {
		t.Errorf("%q", got)
	}
	f := parse(t, `{"properties":{"a\u001b[1m":{"type":"string","title":"\u001b]0;x\u0007","description":"\u202e","oneOf":[{"const":"\u001bc","title":"\u001bd"}]},"t":{"type":"string","default":"\u001be"}}}`)
	x := f.Fields[0]
	for _, s := range []string{x.Title, x.About, x.Options[0].Label, f.Fields[1].Initial[0]} {
		if strings.ContainsAny(s, "\x1b\x07\u202e") {
			t.Errorf("%q is shown", s)
		}
	}
	if got, _ := f.Read(map[string][]string{x.Name: {"0"}}); string(got) != `{"a\u001b[1m":"\u001bc"}` {
		t.Errorf("the value is the schema's: %s", got)
	}
}

func FuzzForm(f *testing.F) {
	f.Add([]byte(everything), "0", "x")
	f.Add([]byte(`{"properties":{"a":{"type":"array","items":{"enum":["x"]}}}}`), "0", "")
	f.Fuzz(func(t *testing.T, schema []byte, one, two string) {
		form, err := Parse(schema)
		if err != nil {
			return
		}
		filled := map[string][]string{}
		for _, x := range form.Fields {
			filled[x.Name] = []string{one}
			if x.Kind == Several {
				filled[x.Name] = []string{one, two}
			}
			if x.Title != Plain(x.Title) || x.About != Plain(x.About) {
				t.Fatalf("not safe to show: %q", x.Title+x.About)
			}
		}
		content, faults := form.Read(filled)
		if (content == nil) == (faults == nil) || content != nil && !json.Valid(content) {
			t.Fatalf("%s %v", content, faults)
		}
		if o := form.Older(); !json.Valid(o.Schema) {
			t.Fatalf("%s", o.Schema)
		}
	})
}
