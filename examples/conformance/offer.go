package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Tools that serve the resources and prompts of the manifest, and no client.
var (
	_ = guest.Tool("read_template", "Serves test://template/{id}/data", func(_ *guest.Call, in struct {
		ID string `json:"id"`
	}) (sdk.Result, error) {
		b, err := json.Marshal(map[string]any{"id": in.ID, "templateTest": true, "data": "Data for ID: " + in.ID})
		return sdk.Text(string(b)), err
	}, guest.Hidden())
	_ = guest.Tool("read_watched", "Serves test://watched-resource", func(c *guest.Call, _ nothing) (string, error) {
		n, _, err := touched(c)
		return fmt.Sprintf("Watched resource content, touched %d times", n), err
	}, guest.Hidden())
	_ = guest.Tool("prompt_resource", "Writes test_prompt_with_embedded_resource", func(_ *guest.Call, in struct {
		URI string `json:"resourceUri"`
	}) (sdk.Result, error) {
		return sdk.Result{Content: []sdk.Content{
			guest.Document(in.URI, "text/plain", "Embedded resource content for testing."),
			guest.Text("Please process the embedded resource above."),
		}}, nil
	}, guest.Hidden())
	_ = guest.Tool("prompt_image", "Writes test_prompt_with_image", func(*guest.Call, nothing) (sdk.Result, error) {
		return sdk.Result{Content: []sdk.Content{guest.Image(pixel, "image/png"), guest.Text("Please analyze the image above.")}}, nil
	}, guest.Hidden())
	_ = guest.Tool("prompt_asks", "Asks, and then writes test_input_required_result_prompt", func(c *guest.Call, _ nothing) (string, error) {
		a, err := c.Ask("user_context", field("What context should the prompt use?", "context"))
		return fmt.Sprintf("Use this context: %s", a.Content), err
	}, guest.Hidden())

	_ = guest.Tool("test_touch_watched_resource", "Changes test://watched-resource", touch)
)

// counter is where the changes of test://watched-resource are counted.
const counter = "touched"

// touched returns the count and its version, 0 and 0 before there is one.
func touched(c *guest.Call) (n int, version int64, err error) {
	v, version, err := c.KV.Get(counter)
	if err != nil || version == 0 {
		return 0, 0, err
	}
	n, err = strconv.Atoi(string(v))
	return n, version, err
}

func touch(c *guest.Call, _ nothing) (string, error) {
	n, version, err := touched(c)
	if err != nil {
		return "", err
	}
	if _, err := c.KV.Put(counter, []byte(strconv.Itoa(n+1)), version); err != nil {
		return "", err
	}
	return "touched", c.Updated("test://watched-resource")
}
