// Caller is a guest that calls another tool.
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

func main() {}
