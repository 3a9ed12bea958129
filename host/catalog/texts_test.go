package catalog

import (
	"encoding/json"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
)

// A string that holds JSON may be given as the JSON itself, and under the names
// that its schema tells. What is wrong with arguments stays wrong.
func TestTexts(t *testing.T) {
	input := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string","contentMediaType":"application/json","x-alias":["questions","n","other"]},
		"n":{"type":"integer"},"plain":{"type":"string"},"o":{"type":"object"}},"required":["q"],"additionalProperties":false}`)
	e := &Entry{texts: textsOf(input), Tool: &manifest.Tool{Tool: sdk.Tool{Input: input}}}
	if len(e.texts) != 1 || len(e.texts[0].also) != 2 {
		t.Fatalf("%+v", e.texts)
	}
	var err error
	if e.Input, err = schema.Compile(input); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{ // "" is refused
		`{"q":"[1]"}`: `{"q":"[1]"}`,
		`{"q":[1]}`:   `{"q":"[1]"}`,
		" { \"q\" : [ {\"a\": \"\\\"ö\"} ]\n, \"n\" : 1 } ": " { \"q\" : \"[ {\\\"a\\\": \\\"\\\\\\\"ö\\\"} ]\"\n, \"n\" : 1 } ",
		`{"q":{}}`:                          `{"q":"{}"}`,
		`{"questions":[1],"plain":"x"}`:     `{"q":"[1]","plain":"x"}`,
		`{"questions":"[1]"}`:               `{"q":"[1]"}`,
		`{"n":1,"o":{"q":[1]},"q":[[2]]}`:   `{"n":1,"o":{"q":[1]},"q":"[[2]]"}`,
		`{"questions":[1],"q":"[2]"}`:       "", // two at once
		`{"q":[1],"q":[2]}`:                 "", // duplicate keys stay what they are
		`{"questions":[1],"questions":[2]}`: "",
		`{"questions":[1],"other":[2]}`:     "",
		`{"q":7}`:                           "",
		`{"q":null}`:                        "",
		`{"n":[1],"q":""}`:                  "", // the name of another argument
		`{"plain":[1],"q":""}`:              "",
		`{"Questions":[1]}`:                 "",
		`{"q":[1}`:                          "",
		`{"q":[1]`:                          "",
		`[{"q":[1]}]`:                       "",
		`{"q":[1]} {}`:                      "",
		`{}`:                                "",
		``:                                  "",
	} {
		got := e.withTexts(json.RawMessage(in))
		err := e.Input.Check(got)
		if (want == "") != (err != nil) || err == nil && string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, schema := range []string{`{"properties":{"q":{"type":"string"}}}`, `{"properties":{"q":{"contentMediaType":"application/json"}}}`,
		`{"properties":{"q":{"type":"string","contentMediaType":"text/plain"}}}`, `{"contentMediaType":"application/json"}`, `[`} {
		if x := textsOf(json.RawMessage(schema)); x != nil {
			t.Errorf("%s: %+v", schema, x)
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add([]byte(`{"q":[1],"questions":{}}`))
	f.Add([]byte(`{"questions":[1]}`))
	e := &Entry{texts: []text{{"q", []string{"questions"}}}}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := e.withTexts(in)
		if json.Valid(in) != json.Valid(got) {
			t.Fatalf("%q became %q", in, got)
		}
		if string(e.withTexts(got)) != string(got) {
			t.Fatalf("%q became %q, and then something else", in, got)
		}
	})
}
