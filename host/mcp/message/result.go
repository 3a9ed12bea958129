package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// appendContent appends one piece of a result.
func appendContent(dst []byte, c *sdk.Content) []byte {
	l := wire.NewList(append(dst, '{'))
	switch c.Type {
	case sdk.TypeText, "":
		l.Text("type", sdk.TypeText)
		l.Text("text", c.Text)
	case sdk.TypeImage, sdk.TypeAudio:
		l.Text("type", c.Type)
		l.Text("mimeType", c.MIME)
		l.Base64("data", c.Data)
	case sdk.TypeResource:
		l.Text("type", c.Type)
		l.Key("resource")
		l.B = appendResource(l.B, c, c.URI)
	case sdk.TypeResourceLink:
		l.Text("type", c.Type)
		l.Text("uri", c.URI)
		l.Text("name", orElse(c.Name, c.URI))
		l.Optional("title", c.Title)
		l.Optional("description", c.Description)
		l.Optional("mimeType", c.MIME)
		if c.Size > 0 {
			l.Key("size")
			l.B = strconv.AppendInt(l.B, c.Size, 10)
		}
	default:
		l.Text("type", sdk.TypeText)
		l.Text("text", fmt.Sprintf("[content of unknown type %q]", c.Type))
	}
	annotate(&l, c)
	return append(l.B, '}')
}

// annotate appends the member "annotations", if there are any.
func annotate(l *wire.List, c *sdk.Content) {
	if len(c.Audience) == 0 && c.Priority == nil && c.Modified == "" {
		return
	}
	l.Key("annotations")
	in := wire.NewList(append(l.B, '{'))
	if len(c.Audience) > 0 {
		in.Key("audience")
		in.B = append(in.B, '[')
		for i, a := range c.Audience {
			if i > 0 {
				in.B = append(in.B, ',')
			}
			in.B = wire.AppendString(in.B, a)
		}
		in.B = append(in.B, ']')
	}
	if p := c.Priority; p != nil && *p >= 0 && *p <= 1 {
		in.Key("priority")
		in.B = strconv.AppendFloat(in.B, *p, 'g', -1, 64)
	}
	in.Optional("lastModified", c.Modified)
	l.B = append(in.B, '}')
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// An Era says what a result must carry besides its contents.
type Era struct {
	Modern bool            // since the revision ModernEra
	Server json.RawMessage // this server's Implementation
	Also   []sdk.Content   // what the host says behind the tool's own content
	Jobs   []string        // the tasks that are the background jobs which the call has started, in that order
}

// Open begins a result of the given type and ends in its metadata; guest is
// metadata that the tool gave, or nil.
func (e Era) Open(dst []byte, resultType string, guest json.RawMessage) wire.List {
	l := wire.NewList(append(dst, `"result":{`...))
	if e.Modern {
		l.Text("resultType", resultType)
	}
	entries := guestMeta(guest)
	if !e.Modern && len(entries) == 0 {
		return l
	}
	l.Key("_meta")
	in := wire.NewList(append(l.B, '{'))
	if e.Modern {
		in.Raw(MetaServer, e.Server)
		e.related(&in)
	}
	for i := 0; i < len(entries); i += 2 {
		in.Comma()
		in.B = append(append(append(in.B, entries[i]...), ':'), entries[i+1]...)
	}
	l.B = append(in.B, '}')
	return l
}

// related names the jobs. The protocol has a place for one, which is the last;
// where there are more, all are named beside it.
func (e Era) related(in *wire.List) {
	if len(e.Jobs) == 0 {
		return
	}
	in.Key(metaRelated)
	in.B = appendTaskID(in.B, e.Jobs[len(e.Jobs)-1])
	if len(e.Jobs) == 1 {
		return
	}
	in.Key(metaAllJobs)
	for i, id := range e.Jobs {
		in.B = appendTaskID(append(in.B, "[,"[min(i, 1)]), id)
	}
	in.B = append(in.B, ']')
}

func appendTaskID(b []byte, id string) []byte {
	return append(wire.AppendString(append(b, `{"taskId":`...), id), '}')
}

// guestMeta returns the keys and values of a tool's metadata, without those
// that only the protocol or the host may set.
func guestMeta(v raw) []raw {
	if v == nil {
		return nil
	}
	var m map[string]raw
	if json.Unmarshal(v, &m) != nil {
		return nil
	}
	var out []raw
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(k, metaReserved) || k == metaAllJobs {
			continue
		}
		if v := wire.Compact(m[k]); v != nil {
			out = append(out, wire.AppendString(nil, k), v)
		}
	}
	return out
}

// Result appends the member "result" for what a tool answered.
func (e Era) Result(dst []byte, r *sdk.Result) []byte {
	l := e.Open(dst, "complete", r.Meta)
	var structured raw
	broken := false
	if len(r.Structured) > 0 {
		structured = wire.Compact(r.Structured)
		broken = structured == nil
	}
	l.Key("content")
	l.B = append(l.B, '[')
	for i := range r.Content {
		if i > 0 {
			l.B = append(l.B, ',')
		}
		l.B = appendContent(l.B, &r.Content[i])
	}
	if len(r.Content) == 0 && structured != nil { // for clients that read no structured content
		l.B = appendContent(l.B, &sdk.Content{Text: string(structured)})
	}
	if broken {
		if len(r.Content) > 0 {
			l.B = append(l.B, ',')
		}
		l.B = appendContent(l.B, &sdk.Content{Text: "guest: the tool's structured content is not JSON"})
	}
	for i := range e.Also {
		if l.B[len(l.B)-1] != '[' {
			l.B = append(l.B, ',')
		}
		l.B = appendContent(l.B, &e.Also[i])
	}
	l.B = append(l.B, ']')
	if structured != nil && (e.Modern || wire.IsObject(bytes.TrimLeft(structured, " \t"))) {
		l.Raw("structuredContent", structured) // before 2026-07-28 it had to be an object
	}
	l.Key("isError")
	l.B = strconv.AppendBool(l.B, r.Failed || broken)
	return append(l.B, '}')
}

// InputRequired appends the member "result" for the questions of a tool: the
// client answers them and calls again.
func (e Era) InputRequired(dst []byte, r *sdk.Result) []byte {
	l := e.Open(dst, "input_required", nil)
	appendRequests(&l, r.Questions)
	l.Optional("requestState", r.State)
	return append(l.B, '}')
}
