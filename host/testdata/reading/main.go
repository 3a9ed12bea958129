// The guest of TestOffers: tools that serve resources, prompts and completions.
package main

import (
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type address struct {
	URI string `json:"uri"`
	ID  string `json:"id,omitempty"`
}

var _ = guest.Tool("read", "Reads a book", func(c *guest.Call, in address) (sdk.Result, error) {
	switch in.ID {
	case "missing":
		return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, What: "no book " + in.ID}
	case "all":
		return sdk.Result{Content: []sdk.Content{guest.Text("t"), guest.Image([]byte{1, 2}, "image/png"), guest.Audio([]byte{3}, "audio/wav"), guest.Blob("lib://books/b", "application/zip", []byte{4})}}, nil
	case "ask":
		answers, err := c.AskAll(map[string]sdk.Question{
			"who": {Message: "who?", Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"}}}`)},
			"web": {Kind: sdk.QuestionURL, URL: "https://example.com/"},
		})
		if err != nil {
			return sdk.Result{}, err
		}
		return sdk.Text(string(answers["who"].Content) + answers["web"].Action), nil
	}
	return sdk.Text("book " + in.ID + " at " + in.URI), nil
}, guest.Hidden())

type person struct {
	Who string `json:"who"`
}

var _ = guest.Tool("chat", "Talks", func(_ *guest.Call, in person) (sdk.Result, error) {
	return sdk.Result{Content: []sdk.Content{guest.Text("I am " + in.Who), guest.Says("assistant", guest.Image([]byte{9}, "image/png")), guest.Document("lib://books/1", "text/plain", "embedded")}}, nil
}, guest.Hidden())

type typed struct {
	Argument string            `json:"argument"`
	Value    string            `json:"value"`
	Context  map[string]string `json:"context,omitempty"`
}

type suggestions struct {
	Values []string `json:"values"`
}

var _ = guest.Tool("suggest", "Suggests", func(_ *guest.Call, in typed) (suggestions, error) {
	return suggestions{[]string{in.Argument + "=" + in.Value + in.Context["tone"]}}, nil
}, guest.Hidden())

type nothing struct{}

var _ = guest.Tool("touch", "Changes a book", func(c *guest.Call, _ nothing) (string, error) {
	if err := c.Updated("lib://books/7"); err != nil {
		return "", err
	}
	return "touched", c.Announce("resources")
}, guest.Icon{Src: "https://example.com/i.png"}, guest.Meta{"ui": map[string]any{"resourceUri": "ui://reading/view"}})

func main() {}
