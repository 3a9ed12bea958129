package message

import (
	"encoding/json"
	"strconv"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// appendResource appends the contents of a resource; uri is what it has unless
// it names another one.
func appendResource(dst []byte, c *sdk.Content, uri string) []byte {
	l := wire.NewList(append(dst, '{'))
	l.Text("uri", orElse(c.URI, uri))
	l.Optional("mimeType", c.MIME)
	if c.Data != nil {
		l.Base64("blob", c.Data)
	} else {
		l.Text("text", c.Text)
	}
	return append(l.B, '}')
}

// AppendContents appends the member "contents" of a resources/read: each piece
// of the result, as text or as a blob.
func AppendContents(l *wire.List, r *sdk.Result, uri string) {
	l.Key("contents")
	l.B = append(l.B, '[')
	content := r.Content
	if len(content) == 0 && len(r.Structured) > 0 {
		content = []sdk.Content{{Text: string(wire.Compact(r.Structured)), MIME: "application/json"}}
	}
	for i := range content {
		if i > 0 {
			l.B = append(l.B, ',')
		}
		l.B = appendResource(l.B, &content[i], uri)
	}
	l.B = append(l.B, ']')
}

// AppendMessages appends the members of a prompts/get: each piece of the result
// is a message. Its metadata may have a description.
func AppendMessages(l *wire.List, r *sdk.Result) {
	var about struct {
		Description string `json:"description"`
	}
	if len(r.Meta) > 0 && json.Unmarshal(r.Meta, &about) == nil {
		l.Optional("description", about.Description)
	}
	l.Key("messages")
	l.B = append(l.B, '[')
	for i := range r.Content {
		if i > 0 {
			l.B = append(l.B, ',')
		}
		role := "user"
		if r.Content[i].Role == "assistant" {
			role = "assistant"
		}
		in := wire.NewList(append(l.B, '{'))
		in.Text("role", role)
		in.Key("content")
		l.B = append(appendContent(in.B, &r.Content[i]), '}')
	}
	l.B = append(l.B, ']')
}

// maxCompletions is how many values the protocol allows.
const maxCompletions = 100

// AppendCompletion appends the member "completion": the result's structured
// content is an array of strings, or {"values", "total", "hasMore"}.
func AppendCompletion(l *wire.List, r *sdk.Result) {
	var c struct {
		Values  []string `json:"values"`
		Total   *int64   `json:"total"`
		HasMore *bool    `json:"hasMore"`
	}
	if json.Unmarshal(r.Structured, &c.Values) != nil {
		if json.Unmarshal(r.Structured, &c) != nil {
			c.Values, c.Total, c.HasMore = nil, nil, nil
		}
	}
	if total := int64(len(c.Values)); total > maxCompletions {
		more := true
		c.Values, c.HasMore = c.Values[:maxCompletions], &more
		if c.Total == nil {
			c.Total = &total
		}
	}
	l.Key("completion")
	in := wire.NewList(append(l.B, '{'))
	in.Key("values")
	in.B = append(in.B, '[')
	for i, v := range c.Values {
		if i > 0 {
			in.B = append(in.B, ',')
		}
		in.B = wire.AppendString(in.B, v)
	}
	in.B = append(in.B, ']')
	if c.Total != nil {
		in.Key("total")
		in.B = strconv.AppendInt(in.B, *c.Total, 10)
	}
	if c.HasMore != nil {
		in.Key("hasMore")
		in.B = strconv.AppendBool(in.B, *c.HasMore)
	}
	l.B = append(in.B, '}')
}
