package schema

import (
	"reflect"
	"testing"
)

// A string that holds JSON says so, and what else it is called.
func TestMedia(t *testing.T) {
	type in struct {
		Q string `json:"q" media:"application/json" alias:"questions,list" doc:"d"`
		T string `json:"t" media:"text/html"`
	}
	got, err := Of(reflect.TypeFor[in](), true)
	want := `{"type":"object","properties":{"q":{"type":"string","contentMediaType":"application/json","x-alias":["questions","list"],"description":"d"},` +
		`"t":{"type":"string","contentMediaType":"text/html"}},"required":["q","t"],"additionalProperties":false}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for name, v := range map[string]any{
		"a number": struct {
			N int `media:"application/json"`
		}{},
		"an alias of a plain string": struct {
			S string `alias:"x"`
		}{},
		"an alias of HTML": struct {
			S string `media:"text/html" alias:"x"`
		}{},
	} {
		if got, err := Of(reflect.TypeOf(v), true); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}
