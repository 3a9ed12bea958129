package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[start:i]...), "\uFFFD"...)
			start = i + n
		case r == '\u2028', r == '\u2029': // line ends to some readers of lines
			dst = append(append(dst, s[start:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

// compact returns v as one line of valid JSON, or nil if v is not JSON. It
// copies only what must change: v may come from a guest.
func compact(v raw) raw {
	if !utf8.Valid(v) {
		v = bytes.ToValidUTF8(v, []byte("\uFFFD"))
	}
	if s := (scanner{b: v}); !s.whole(nil) {
		return nil
	}
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		return v
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return nil
	}
	return b.Bytes()
}

// A list appends the members of an object or array with commas between them.
type list struct {
	b     []byte
	first bool
}

func (l *list) key(k string) {
	l.comma()
	l.b = append(append(append(l.b, '"'), k...), '"', ':')
}

func (l *list) comma() {
	if !l.first {
		l.b = append(l.b, ',')
	}
	l.first = false
}

func (l *list) text(k, v string) {
	l.key(k)
	l.b = appendString(l.b, v)
}

// optional is text unless v is empty.
func (l *list) optional(k, v string) {
	if v != "" {
		l.text(k, v)
	}
}

func (l *list) raw(k string, v raw) {
	l.key(k)
	l.b = append(l.b, v...)
}

func (l *list) base64(k string, v []byte) {
	l.key(k)
	l.b = append(l.b, '"')
	l.b = append(base64.StdEncoding.AppendEncode(l.b, v), '"')
}

// appendContent appends one piece of a result.
func appendContent(dst []byte, c *sdk.Content) []byte {
	l := list{b: append(dst, '{'), first: true}
	switch c.Type {
	case sdk.TypeText, "":
		l.text("type", sdk.TypeText)
		l.text("text", c.Text)
	case sdk.TypeImage, sdk.TypeAudio:
		l.text("type", c.Type)
		l.text("mimeType", c.MIME)
		l.base64("data", c.Data)
	case sdk.TypeResource:
		l.text("type", c.Type)
		l.key("resource")
		in := list{b: append(l.b, '{'), first: true}
		in.text("uri", c.URI)
		in.optional("mimeType", c.MIME)
		if c.Data != nil {
			in.base64("blob", c.Data)
		} else {
			in.text("text", c.Text)
		}
		l.b = append(in.b, '}')
	case sdk.TypeResourceLink:
		l.text("type", c.Type)
		l.text("uri", c.URI)
		l.text("name", orElse(c.Name, c.URI))
		l.optional("title", c.Title)
		l.optional("description", c.Description)
		l.optional("mimeType", c.MIME)
		if c.Size > 0 {
			l.key("size")
			l.b = strconv.AppendInt(l.b, c.Size, 10)
		}
	default:
		l.text("type", sdk.TypeText)
		l.text("text", fmt.Sprintf("[content of unknown type %q]", c.Type))
	}
	if len(c.Audience) > 0 {
		l.key("annotations")
		l.b = append(l.b, `{"audience":[`...)
		for i, a := range c.Audience {
			if i > 0 {
				l.b = append(l.b, ',')
			}
			l.b = appendString(l.b, a)
		}
		l.b = append(l.b, "]}"...)
	}
	return append(l.b, '}')
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// An era says what a result must carry besides its contents.
type era struct {
	modern bool
	server raw // this server's Implementation
}

// open begins a result of the given type and ends in its metadata; guest is
// metadata that the tool gave, or nil.
func (e era) open(dst []byte, resultType string, guest raw) list {
	l := list{b: append(dst, `"result":{`...), first: true}
	if e.modern {
		l.text("resultType", resultType)
	}
	entries := guestMeta(guest)
	if !e.modern && len(entries) == 0 {
		return l
	}
	l.key("_meta")
	in := list{b: append(l.b, '{'), first: true}
	if e.modern {
		in.raw(metaServer, e.server)
	}
	for i := 0; i < len(entries); i += 2 {
		in.comma()
		in.b = append(append(append(in.b, entries[i]...), ':'), entries[i+1]...)
	}
	l.b = append(in.b, '}')
	return l
}

// guestMeta returns the keys and values of a tool's metadata, without those
// that only the protocol may set.
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
		if strings.HasPrefix(k, metaReserved) {
			continue
		}
		if v := compact(m[k]); v != nil {
			out = append(out, appendString(nil, k), v)
		}
	}
	return out
}

// result appends the member "result" for what a tool answered.
func (e era) result(dst []byte, r *sdk.Result) []byte {
	l := e.open(dst, "complete", r.Meta)
	var structured raw
	broken := false
	if len(r.Structured) > 0 {
		structured = compact(r.Structured)
		broken = structured == nil
	}
	l.key("content")
	l.b = append(l.b, '[')
	for i := range r.Content {
		if i > 0 {
			l.b = append(l.b, ',')
		}
		l.b = appendContent(l.b, &r.Content[i])
	}
	if len(r.Content) == 0 && structured != nil { // for clients that read no structured content
		l.b = appendContent(l.b, &sdk.Content{Text: string(structured)})
	}
	if broken {
		if len(r.Content) > 0 {
			l.b = append(l.b, ',')
		}
		l.b = appendContent(l.b, &sdk.Content{Text: "guest: the tool's structured content is not JSON"})
	}
	l.b = append(l.b, ']')
	if structured != nil && (e.modern || isObject(bytes.TrimLeft(structured, " \t"))) {
		l.raw("structuredContent", structured) // before 2026-07-28 it had to be an object
	}
	l.key("isError")
	l.b = strconv.AppendBool(l.b, r.Failed || broken)
	return append(l.b, '}')
}
