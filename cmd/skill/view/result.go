package view

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// Result writes a result as a person wants to see it: texts as they are, other
// content by what it is.
func Result(w io.Writer, r sdk.Result) {
	for _, c := range r.Content {
		switch {
		case c.Type == sdk.TypeText || c.Type == sdk.TypeResource && c.Text != "":
			fmt.Fprintln(w, strings.TrimRight(c.Text, "\n"))
		case c.Type == sdk.TypeResourceLink:
			row(w, "[%s %s]", c.URI, c.MIME)
		default:
			row(w, "[%s %s, %d bytes; --save DIR keeps it]", c.Type, c.MIME, len(c.Data))
		}
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 {
		fmt.Fprintln(w, string(r.Structured))
	}
	for _, id := range slices.Sorted(maps.Keys(r.Questions)) {
		row(w, "the tool asks (%s): %s", id, r.Questions[id].Message)
		row(w, "%s", r.Questions[id].Schema)
	}
}

// ResultJSON is the JSON form of a result, with data as base64.
func ResultJSON(r sdk.Result) any {
	type content struct {
		sdk.Content
		Data []byte `json:"data,omitempty"`
	}
	out := struct {
		Content    []content               `json:"content"`
		Structured json.RawMessage         `json:"structuredContent,omitempty"`
		Failed     bool                    `json:"isError"`
		Questions  map[string]sdk.Question `json:"questions,omitempty"`
		State      string                  `json:"state,omitempty"`
	}{Content: []content{}, Structured: r.Structured, Failed: r.Failed, Questions: r.Questions, State: r.State}
	for _, c := range r.Content {
		out.Content = append(out.Content, content{c, c.Data})
	}
	return out
}

// Event writes what a tool says while it runs.
func Event(w io.Writer, e sdk.Event) {
	switch {
	case e.Kind == sdk.EventLog:
		row(w, "%s: %s", e.Level, e.Message)
	case e.Kind == sdk.EventProgress && e.Total > 0:
		row(w, "%.0f/%.0f %s", e.Progress, e.Total, e.Message)
	case e.Kind == sdk.EventProgress:
		row(w, "%.0f %s", e.Progress, e.Message)
	case e.Kind == sdk.EventPartial:
		fmt.Fprint(w, e.Content.Text)
	}
}
