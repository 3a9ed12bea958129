package catalog

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Bounds of what is suggested at a time (MCP, server/utilities/completion).
const (
	maxSuggested = 100
	maxValue     = 4 << 10 // bytes
)

// A suggestion knows the values of one variable or argument: a list, or an
// entry that has to be run. nil and the zero suggestion know none.
type suggestion struct {
	values []string
	entry  *Entry
}

func (x *stock) suggestion(o *Offer, c manifest.Completion) *suggestion {
	s := &suggestion{values: c.Values}
	for _, e := range x.entries {
		if c.Tool != "" && !e.Hidden && e.Tool.Name == c.Tool {
			serving := *e
			serving.Offer = o
			s.entry = &serving
		}
	}
	return s
}

// Suggestions is the structured result of a completion.
type Suggestions struct {
	Values []string `json:"values"`
	Total  int      `json:"total"`
	More   bool     `json:"hasMore"`
}

// answer lists the values that begin with typed, in whichever case.
func (s *suggestion) answer(typed string) (json.RawMessage, error) {
	out := Suggestions{Values: []string{}}
	if s != nil {
		typed = strings.ToLower(typed)
		for _, v := range s.values {
			if !strings.HasPrefix(strings.ToLower(v), typed) {
				continue
			}
			if out.Total++; len(out.Values) < maxSuggested {
				out.Values = append(out.Values, v)
			}
		}
	}
	out.More = out.Total > len(out.Values)
	return json.Marshal(out)
}

// ReadSuggestions reads what a tool that was asked for a completion answers: a
// list of texts, or an object with "values" and perhaps "total" and "hasMore".
// It returns them as a completion's structured result, cut to what a client
// takes. Errors have kind Guest.
func ReadSuggestions(structured json.RawMessage) (json.RawMessage, error) {
	in := struct {
		Values []string `json:"values"`
		Total  *int     `json:"total"`
		More   bool     `json:"hasMore"`
	}{}
	err := json.Unmarshal(structured, &in.Values)
	if err != nil {
		in.Values = nil
		err = json.Unmarshal(structured, &in)
	}
	if err != nil || in.Values == nil {
		return nil, &sdk.Error{Kind: sdk.Guest, What: "the tool's suggestions are none", Hint: `want a list of texts, or {"values": […], "total", "hasMore"}`}
	}
	out := Suggestions{Values: in.Values, Total: len(in.Values), More: in.More}
	if in.Total != nil && *in.Total > out.Total {
		out.Total = *in.Total
	}
	if len(out.Values) > maxSuggested {
		out.Values, out.More = out.Values[:maxSuggested], true
	}
	for _, v := range out.Values {
		if len(v) > maxValue || !utf8.ValidString(v) {
			return nil, &sdk.Error{Kind: sdk.Guest, What: "the tool suggests a value that is too long"}
		}
	}
	return json.Marshal(out)
}
