package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// message is what the form begins with.
func message(qs []question) string {
	if len(qs) == 1 {
		return qs[0].Text
	}
	return fmt.Sprintf("Please answer these %d questions.", len(qs))
}

// name is the property of question i, and other that for another answer.
func name(i int) string  { return fmt.Sprintf("q%d", i+1) }
func other(i int) string { return name(i) + "_other" }

// titled is an option as forms have it (Model Context Protocol 2025-11-25).
type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// title is what the user sees of an option.
func (o option) title() string {
	if o.About == "" {
		return o.Label
	}
	return o.Label + " — " + o.About
}

// schema is the form. None of it is required: the user may skip a question, or
// give another answer to it.
func schema(qs []question) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, q := range qs {
		p := map[string]any{"title": q.Header}
		if len(qs) > 1 {
			p["description"] = q.Text
		}
		var options []titled
		for _, o := range q.Options {
			options = append(options, titled{o.Label, o.title()})
		}
		switch q.Kind {
		case multi:
			p["type"], p["items"] = "array", map[string]any{"anyOf": options}
		case text:
			p["type"], p["maxLength"] = "string", maxText
			if q.Example != "" {
				p["description"] = strings.TrimSpace(fmt.Sprintf("%v\nsuch as: %s", orEmpty(p["description"]), q.Example))
			}
		default:
			p["type"], p["oneOf"] = "string", options
		}
		if i > 0 {
			b.WriteByte(',')
		}
		add(&b, name(i), p)
		if q.Kind != text {
			b.WriteByte(',')
			about := "Other"
			if len(qs) > 1 {
				about = "Other (" + q.Header + ")"
			}
			add(&b, other(i), map[string]any{"type": "string", "title": about, "maxLength": maxText,
				"description": "Another answer, in your own words"})
		}
	}
	b.WriteString("}}")
	return json.RawMessage(b.String())
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func add(b *strings.Builder, name string, p map[string]any) {
	v, _ := json.Marshal(p) // texts and numbers: it cannot fail
	fmt.Fprintf(b, "%q:%s", name, v)
}
