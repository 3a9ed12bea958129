package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Tools that need whoever is at the other end. The same code serves clients
// that are asked in the middle of a call and clients that call again.
var (
	_ = guest.Tool("test_elicitation", "Asks the user with a message of the caller's", elicit)
	_ = guest.Tool("test_elicitation_sep1034_defaults", "Asks the user with default values", echo(form("Test defaults for primitives", `{"type":"object","properties":{
		"name":{"type":"string","description":"User name","default":"John Doe"},
		"age":{"type":"integer","description":"User age","default":30},
		"score":{"type":"number","description":"User score","default":95.5},
		"status":{"type":"string","description":"User status","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","description":"Verification status","default":true}}}`)))
	_ = guest.Tool("test_elicitation_sep1330_enums", "Asks the user with choices of every form", echo(form("Test enum schemas", `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)))
	_ = guest.Tool("test_sampling", "Asks the client's model", sample)

	_ = guest.Tool("test_input_required_result_elicitation", "Asks for a name and greets", greetAsked)
	_ = guest.Tool("test_input_required_result_sampling", "Asks the client's model for a capital", capital)
	_ = guest.Tool("test_input_required_result_list_roots", "Asks the client for its roots", listRoots)
	_ = guest.Tool("test_input_required_result_request_state", "Asks for a confirmation", confirm)
	_ = guest.Tool("test_input_required_result_tampered_state", "Asks for a confirmation", confirm)
	_ = guest.Tool("test_input_required_result_multiple_inputs", "Asks the user, the model and the client together", askEverybody)
	_ = guest.Tool("test_input_required_result_multi_round", "Asks twice, one after the other", askTwice)
	_ = guest.Tool("test_input_required_result_capabilities", "Asks whoever the client said can be asked", askAble)
	_ = guest.Tool("test_missing_capability", "Needs a client with a model", needModel)
)

func form(message, schema string) sdk.Question {
	return sdk.Question{Kind: sdk.QuestionForm, Message: message, Schema: json.RawMessage(schema)}
}

// field asks for one text.
func field(message, name string) sdk.Question {
	return form(message, fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}},"required":[%[1]q]}`, name))
}

var (
	yourName = field("What is your name?", "name")
	roots    = sdk.Question{Kind: sdk.QuestionRoots}
)

// ask is a question to the client's model.
func ask(text string, tokens int) sdk.Question {
	params, err := json.Marshal(map[string]any{
		"messages":  []any{map[string]any{"role": "user", "content": map[string]string{"type": "text", "text": text}}},
		"maxTokens": tokens,
	})
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return sdk.Question{Kind: sdk.QuestionSampling, Params: params}
}

// given is the content of an accepted answer.
type given struct {
	Name  string `json:"name"`
	Color string `json:"color"`
	OK    bool   `json:"ok"`

	Content struct{ Text string } `json:"content"` // of the model
	Roots   []struct{ URI string }
}

// errDeclined is the end of a tool whose question was not answered.
var errDeclined = &sdk.Error{Kind: sdk.Guest, What: "the question was not answered"}

func read(a sdk.Answer) (g given, err error) {
	if a.Action != "accept" {
		return g, errDeclined
	}
	return g, json.Unmarshal(a.Content, &g)
}

// want asks one question and reads its answer.
func want(c *guest.Call, id string, q sdk.Question) (given, error) {
	a, err := c.Ask(id, q)
	if err != nil {
		return given{}, err
	}
	return read(a)
}

func elicit(c *guest.Call, in struct {
	Message string `json:"message" doc:"what the user is told"`
}) (string, error) {
	a, err := c.Ask("user", form(in.Message, `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`))
	return fmt.Sprintf("User response: action=%s, content=%s", a.Action, a.Content), err
}

// echo asks q and says what came back.
func echo(q sdk.Question) func(*guest.Call, nothing) (string, error) {
	return func(c *guest.Call, _ nothing) (string, error) {
		a, err := c.Ask("user", q)
		return fmt.Sprintf("Elicitation completed: action=%s, content=%s", a.Action, a.Content), err
	}
}

func sample(c *guest.Call, in struct {
	Prompt string `json:"prompt" doc:"what the model is asked"`
}) (string, error) {
	g, err := want(c, "model", ask(in.Prompt, 100))
	return "LLM response: " + g.Content.Text, err
}

func greetAsked(c *guest.Call, _ nothing) (string, error) {
	g, err := want(c, "user_name", yourName)
	return "Hello, " + g.Name + "!", err
}

func capital(c *guest.Call, _ nothing) (string, error) {
	g, err := want(c, "capital_question", ask("What is the capital of France?", 100))
	return "Sampling response: " + g.Content.Text, err
}

func listRoots(c *guest.Call, _ nothing) (string, error) {
	g, err := want(c, "client_roots", roots)
	var uris []string
	for _, r := range g.Roots {
		uris = append(uris, r.URI)
	}
	return fmt.Sprintf("Client exposed %d root(s): %s", len(uris), strings.Join(uris, ", ")), err
}

func confirm(c *guest.Call, _ nothing) (string, error) {
	g, err := want(c, "confirm", form("Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`))
	return fmt.Sprintf("state-ok: confirmed %t", g.OK), err
}

func askEverybody(c *guest.Call, _ nothing) (string, error) {
	answers, err := c.AskAll(map[string]sdk.Question{
		"user_name": yourName, "greeting": ask("Generate a greeting", 50), "client_roots": roots,
	})
	if err != nil {
		return "", err
	}
	var g [3]given
	for i, id := range []string{"greeting", "user_name", "client_roots"} {
		if g[i], err = read(answers[id]); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s %s: %d root(s) visible", g[0].Content.Text, g[1].Name, len(g[2].Roots)), nil
}

func askTwice(c *guest.Call, _ nothing) (string, error) {
	who, err := want(c, "step1", field("Step 1: What is your name?", "name"))
	if err != nil {
		return "", err
	}
	what, err := want(c, "step2", field("Step 2: What is your favorite color?", "color"))
	return fmt.Sprintf("Multi-round complete: %s likes %s", who.Name, what.Color), err
}

func askAble(c *guest.Call, _ nothing) (string, error) {
	questions := map[string]sdk.Question{}
	if c.Client().Form {
		questions["user_name"] = yourName
	}
	if c.Client().Sampling {
		questions["greeting"] = ask("Generate a short greeting", 50)
	}
	if c.Client().Roots {
		questions["client_roots"] = roots
	}
	answers, err := c.AskAll(questions)
	return fmt.Sprintf("%d answers", len(answers)), err
}

// needModel asks without looking: that a client without a model cannot be asked
// is for the host to say.
func needModel(c *guest.Call, _ nothing) (string, error) {
	if c.Client().Sampling {
		return "the client has a model", nil
	}
	_, err := c.Ask("model", ask("Are you there?", 1))
	return "", err
}
