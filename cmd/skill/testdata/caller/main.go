// Caller is a guest that calls another tool, or asks whoever called it.
package main

import (
	"encoding/json"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

var _ = guest.Tool("call", "Call another tool", func(c *guest.Call, in call) (sdk.Result, error) { return c.Invoke(in.Tool, in.Args) })

type question struct {
	Kind sdk.QuestionKind `json:"kind"`
}

var _ = guest.Tool("ask", "Ask the client", func(c *guest.Call, in question) (string, error) {
	q := sdk.Question{Kind: in.Kind}
	if in.Kind == sdk.QuestionSampling {
		q.Params = json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":1}`)
	}
	a, err := c.Ask("q", q)
	return "heard " + a.Action + " " + string(a.Content), err
})

func main() {}
