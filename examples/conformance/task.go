package main

import (
	"fmt"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Tools whose calls become tasks, as far as the manifest says so.
var (
	_ = guest.Tool("greet", "Greets, and is never a task", func(_ *guest.Call, in struct {
		Name string `json:"name,omitempty" doc:"who to greet"`
	}) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}, guest.Annotations{ReadOnly: true, Idempotent: true})
	_ = guest.Tool("slow_compute", "Takes as long as it is told to", slowCompute)
	_ = guest.Tool("failing_job", "Takes a while and fails", func(c *guest.Call, _ nothing) (sdk.Result, error) {
		sleep(c, 300*time.Millisecond)
		return sdk.Result{Failed: true, Content: []sdk.Content{guest.Text("the job failed")}}, nil
	})
	// It wants what its client does not have, which is no failure of the tool
	// but an error of the protocol.
	_ = guest.Tool("protocol_error_job", "Needs a client with roots", func(c *guest.Call, _ nothing) (string, error) {
		_, err := want(c, "roots", roots)
		return "the client has roots", err
	})
	_ = guest.Tool("confirm_delete", "Asks before it would delete a file", confirmDelete)
	_ = guest.Tool("multi_input", "Asks two questions together", multiInput)
	_ = guest.Tool("test_tool_with_task", "Asks for a name, and then takes its time", askThenWork)
)

func slowCompute(c *guest.Call, in struct {
	Seconds float64 `json:"seconds" doc:"how long" min:"0" max:"60"`
	Label   string  `json:"label,omitempty" doc:"what for"`
}) (string, error) {
	if !sleep(c, time.Duration(in.Seconds*float64(time.Second))) {
		return "", c.Context().Err()
	}
	return fmt.Sprintf("computed for %g s: %s", in.Seconds, in.Label), nil
}

func confirmDelete(c *guest.Call, in struct {
	Filename string `json:"filename" doc:"the file; nothing is deleted"`
}) (string, error) {
	a, err := c.Ask("confirm", form("Delete "+in.Filename+"?", `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`))
	return fmt.Sprintf("%s: %s", a.Action, in.Filename), err
}

func multiInput(c *guest.Call, _ nothing) (string, error) {
	answers, err := c.AskAll(map[string]sdk.Question{"first": field("The first name?", "name"), "second": field("The second name?", "name")})
	return fmt.Sprintf("%d answers", len(answers)), err
}

func askThenWork(c *guest.Call, _ nothing) (string, error) {
	g, err := want(c, "user_name", yourName)
	if err != nil {
		return "", err
	}
	sleep(c, 200*time.Millisecond)
	return "Done for " + g.Name, nil
}
