package wasm

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// describing returns a module that answers everything with d.
func describing(t *testing.T, d any) []byte {
	t.Helper()
	structured, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := sdk.AppendResult(nil, sdk.Result{Structured: structured})
	if err != nil {
		t.Fatal(err)
	}
	g := tiny(call_(fnEmit, sdk.EmitResult, atReply, int32(len(frame))))
	g.data = []segment{{atReply, frame}}
	return g.bytes()
}

// A module and its manifest agree, or the skill does not load.
func TestAgree(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	tool := func(name string, in, out json.RawMessage) sdk.Tool {
		return sdk.Tool{Name: name, Input: in, Output: out}
	}
	wide := json.RawMessage(`{ "properties": {}, "type": "object" }`)
	for name, c := range map[string]struct {
		manifest []sdk.Tool
		module   any
		says     string // "" if they agree
	}{
		"same":           {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{Tools: []sdk.Tool{tool("a", object, nil)}}, ""},
		"other_order":    {[]sdk.Tool{tool("a", object, nil), tool("b", object, nil)}, sdk.Description{Tools: []sdk.Tool{tool("b", object, nil), tool("a", object, nil)}}, ""},
		"other_spelling": {[]sdk.Tool{tool("a", json.RawMessage(`{"type":"object","properties":{}}`), nil)}, sdk.Description{Tools: []sdk.Tool{tool("a", wide, nil)}}, ""},
		"title_only":     {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{Tools: []sdk.Tool{{Name: "a", Title: "A", Input: object}}}, ""},
		"tool_missing":   {[]sdk.Tool{tool("a", object, nil), tool("b", object, nil)}, sdk.Description{Tools: []sdk.Tool{tool("a", object, nil)}}, `"b" is not in the module`},
		"tool_more":      {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{Tools: []sdk.Tool{tool("a", object, nil), tool("b", object, nil)}}, `"b" is not in the manifest`},
		"input":          {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{Tools: []sdk.Tool{tool("a", wide, nil)}}, `input schema of "a"`},
		"output":         {[]sdk.Tool{tool("a", object, object)}, sdk.Description{Tools: []sdk.Tool{tool("a", object, nil)}}, `output schema of "a"`},
		"hidden_in_code": {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{Tools: []sdk.Tool{{Name: "a", Input: object, Hidden: true}}}, `"a" is hidden in the module only`},
		"hidden_by_hand": {[]sdk.Tool{{Name: "a", Input: object, Hidden: true}}, sdk.Description{Tools: []sdk.Tool{tool("a", object, nil)}}, ""},
		"no_tools":       {[]sdk.Tool{tool("a", object, nil)}, sdk.Description{}, `"a" is not in the module`},
		"no_description": {[]sdk.Tool{tool("a", object, nil)}, []int{1}, "description"},
	} {
		t.Run(name, func(t *testing.T) {
			s := skillOf(abiSkill, describing(t, c.module))
			s.Tools = nil
			for _, tool := range c.manifest {
				s.Tools = append(s.Tools, manifest.Tool{Tool: tool})
			}
			p, err := newExecutor(t).Load(t.Context(), s)
			if err == nil {
				defer p.Close()
			}
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, want an error of kind invalid that says %q", err, c.says)
			}
		})
	}
}

// A describe that does not end ends with the load that asked for it.
func TestDescribeStops(t *testing.T) {
	g := tiny(join([]byte{opLoop, void, opBr, 0, opEnd, opUnreachable}))
	x := newExecutor(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Load(gone, skillOf(abiSkill, g.bytes())); sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v, want an error of kind canceled", err)
	}
	late, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := x.Load(late, skillOf(abiSkill, g.bytes())); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("got %v, want an error of kind limit", err)
	}
}
