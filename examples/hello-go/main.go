// Hello is a skill with one tool: the smallest thing worth copying.
package main

import (
	"strings"

	"github.com/skillhost/skill/sdk/guest"
)

type greeting struct {
	Name string `json:"name" doc:"who to greet" minlen:"1" maxlen:"100"`
	Loud bool   `json:"loud,omitempty" doc:"in capitals"`
}

type greeted struct {
	Greeting string `json:"greeting"`
}

func (g greeted) String() string { return g.Greeting }

var _ = guest.Tool("greet", "Greet somebody by name", greet, guest.Title("Greet"),
	guest.Annotations{ReadOnly: true, Idempotent: true})

func greet(c *guest.Call, in greeting) (greeted, error) {
	s := "hello, " + in.Name
	if in.Loud {
		s = strings.ToUpper(s)
	}
	c.Log("debug", "greeting "+in.Name)
	return greeted{s}, nil
}

func main() {}
