package jsonvalue

import (
	"encoding/json"
	"testing"
)

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{``, ``, true},
		{``, `null`, true},
		{`{}`, ` { } `, true},
		{`{"a":1,"b":[true,null,"x"]}`, `{"b":[true,null,"x"],"a":1}`, true},
		{`{"minimum":1}`, `{"minimum":1.0}`, true},
		{`{"minimum":100}`, `{"minimum":1e2}`, true},
		{`{"a":"\u0041"}`, `{"a":"A"}`, true},
		{`{"minimum":1}`, `{"minimum":2}`, false},
		{`{"minimum":1}`, `{"minimum":"1"}`, false},
		{`{"minimum":1e999}`, `{"minimum":2e999}`, false},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`["a","b"]`, `["b","a"]`, false},
		{`["a"]`, `["a","a"]`, false},
		{`{}`, `[]`, false},
		{`{}`, ``, false},
		{`{}`, `{`, false},
		{`true`, `1`, false},
	} {
		if got := Equal(json.RawMessage(c.a), json.RawMessage(c.b)); got != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, got)
		}
		if got := Equal(json.RawMessage(c.b), json.RawMessage(c.a)); got != c.same {
			t.Errorf("%s and %s: same is %v", c.b, c.a, got)
		}
	}
}
