// Package rewrite replaces what is generated in the text of a manifest, a
// module's description of its tools, and keeps every other byte of it. It does
// not know what a manifest must hold: whoever calls it reads the result back.
package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// generated are the keys of a tool's table that Tools writes, and remove if the
// module does not say them.
var generated = []string{"title", "description", "input", "output", "annotations"}

// said are the keys that the module may have an opinion on. If it has none, they
// are the author's.
func said(t sdk.Tool) (keys []string) {
	for _, k := range []struct {
		key  string
		said bool
	}{{"icons", t.Icons != nil}, {"meta", t.Meta != nil}, {"hidden", t.Hidden}} {
		if k.said {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// Tools returns data, which was decoded into doc, with the generated keys of the
// tables [tools.NAME] replaced by what tools say. A table that is missing is
// appended. had are the names of the tables there are, sorted, and keys all keys
// that such a table can have; the table of a tool that is no more is removed
// unless it holds others than the generated ones. Errors have kind Invalid.
func Tools(doc *tomlfile.Doc, data []byte, had, keys []string, tools []sdk.Tool) ([]byte, error) {
	e := &edit{doc: doc, keys: keys, lines: strings.SplitAfter(string(data), "\n"), drop: map[int]bool{}, insert: map[int]string{}}
	names := map[string]bool{}
	for _, t := range tools {
		if names[t.Name] {
			return nil, &sdk.Error{Kind: sdk.Invalid, Op: "manifest.WriteTools", What: fmt.Sprintf("two tools are called %q", words.Clip(t.Name))}
		}
		names[t.Name] = true
		if err := e.put(t); err != nil {
			return nil, err
		}
	}
	for _, name := range had {
		if !names[name] {
			if err := e.remove(name); err != nil {
				return nil, err
			}
		}
	}
	return e.text(), nil
}

// An edit is a list of changes to whole lines.
type edit struct {
	doc    *tomlfile.Doc
	keys   []string // of a tool's table
	lines  []string
	drop   map[int]bool   // 1-based
	insert map[int]string // after the line
	tail   string
}

// put writes one tool.
func (e *edit) put(t sdk.Tool) error {
	body, err := toolText(t)
	if err != nil {
		return err
	}
	path := []string{"tools", t.Name}
	if err := e.ownLines(t.Name); err != nil {
		return err
	}
	for _, key := range slices.Concat(generated, said(t)) {
		e.dropSpans("tools", t.Name, key)
	}
	if line := e.doc.Header(path...); line > 0 {
		e.insert[line] = body
	} else {
		e.tail += fmt.Sprintf("\n[tools.%s]\n%s", capability.QuoteKey(t.Name), body)
	}
	return nil
}

// ownLines refuses a tool that shares lines with others: inline, or in dotted
// keys of another table.
func (e *edit) ownLines(name string) error {
	if e.doc.Header("tools", name) > 0 {
		return nil
	}
	for _, key := range e.keysOf(name) {
		if e.doc.Header("tools", name, key) == 0 {
			return e.fail([]string{"tools", name, key}, fmt.Sprintf("write it as a table, [tools.%s]", capability.QuoteKey(name)), "the tool %q is written inline or in dotted keys", words.Clip(name))
		}
	}
	return nil
}

// remove takes out the table of a tool that is no more.
func (e *edit) remove(name string) error {
	for _, key := range e.keysOf(name) {
		if !slices.Contains(generated, key) {
			return e.fail([]string{"tools", name, key}, "remove the table by hand if the tool is really gone, or rename it",
				"the module has no tool %q, but its table has the hand-written key %q", words.Clip(name), key)
		}
	}
	if err := e.ownLines(name); err != nil {
		return err
	}
	e.dropSpans("tools", name)
	return nil
}

// keysOf lists the keys of a tool's table.
func (e *edit) keysOf(name string) (keys []string) {
	for _, key := range e.keys {
		if len(e.doc.Spans("tools", name, key)) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

func (e *edit) dropSpans(path ...string) {
	for _, s := range e.doc.Spans(path...) {
		for line := s.First; line <= s.Last; line++ {
			e.drop[line] = true
		}
	}
}

func (e *edit) text() []byte {
	var b bytes.Buffer
	for i, line := range e.lines {
		if !e.drop[i+1] {
			b.WriteString(line)
		}
		if more := e.insert[i+1]; more != "" {
			if !strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
			b.WriteString(more)
		}
	}
	if e.tail != "" {
		if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteString(e.tail)
	}
	return b.Bytes()
}

// toolText writes the generated keys of one tool.
func toolText(t sdk.Tool) (string, error) {
	for _, text := range []string{t.Title, t.Description, string(t.Input), string(t.Output)} {
		if !utf8.ValidString(text) {
			return "", &sdk.Error{Kind: sdk.Invalid, Op: "manifest.WriteTools", What: fmt.Sprintf("the description of %q is not UTF-8", words.Clip(t.Name))}
		}
	}
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("title = " + tomlString(t.Title) + "\n")
	}
	if t.Description != "" {
		b.WriteString("description = " + tomlString(t.Description) + "\n")
	}
	for _, s := range []struct {
		key string
		raw json.RawMessage
	}{{"input", t.Input}, {"output", t.Output}} {
		if s.raw == nil {
			continue
		}
		text, err := tomlJSON(s.raw)
		if err != nil {
			return "", &sdk.Error{Kind: sdk.Invalid, Op: "manifest.WriteTools", What: fmt.Sprintf("the %s schema of %q", s.key, words.Clip(t.Name)), Err: err}
		}
		b.WriteString(s.key + " = " + text + "\n")
	}
	if t.Annotations != nil {
		var list []string
		for _, a := range []struct {
			key   string
			value *bool
		}{{"read_only", t.Annotations.ReadOnly}, {"destructive", t.Annotations.Destructive}, {"idempotent", t.Annotations.Idempotent}, {"open_world", t.Annotations.OpenWorld}} {
			if a.value != nil {
				list = append(list, fmt.Sprintf("%s = %t", a.key, *a.value))
			}
		}
		b.WriteString("annotations = { " + strings.Join(list, ", ") + " }\n")
	}
	if err := more(&b, t); err != nil {
		return "", &sdk.Error{Kind: sdk.Invalid, Op: "manifest.WriteTools", What: fmt.Sprintf("icons or meta of %q", words.Clip(t.Name)), Err: err}
	}
	return b.String(), nil
}

// more writes what said lists.
func more(b *strings.Builder, t sdk.Tool) error {
	if t.Hidden {
		b.WriteString("hidden = true\n")
	}
	if t.Icons != nil {
		var list []string
		for _, i := range t.Icons {
			sizes := make([]string, len(i.Sizes))
			for n, s := range i.Sizes {
				sizes[n] = capability.Quote(s)
			}
			icon := "src = " + capability.Quote(i.Src)
			for _, x := range [][2]string{{"mime", i.MIME}, {"theme", i.Theme}} {
				if x[1] != "" {
					icon += ", " + x[0] + " = " + capability.Quote(x[1])
				}
			}
			if len(sizes) > 0 {
				icon += ", sizes = [" + strings.Join(sizes, ", ") + "]"
			}
			list = append(list, "{ "+icon+" }")
		}
		b.WriteString("icons = [" + strings.Join(list, ", ") + "]\n")
	}
	if t.Meta == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(t.Meta))
	d.UseNumber()
	var meta map[string]any
	if err := d.Decode(&meta); err != nil || meta == nil {
		return errors.New("_meta is no JSON object")
	}
	text, err := tomlValue(meta)
	b.WriteString("meta = " + text + "\n")
	return err
}

// tomlValue writes a JSON value on one line.
func tomlValue(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return capability.Quote(v), nil
	case bool:
		return fmt.Sprint(v), nil
	case json.Number:
		return v.String(), nil
	case []any:
		list := make([]string, len(v))
		for i, x := range v {
			var err error
			if list[i], err = tomlValue(x); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(list, ", ") + "]", nil
	case map[string]any:
		var list []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			text, err := tomlValue(v[k])
			if err != nil {
				return "", err
			}
			list = append(list, capability.QuoteKey(k)+" = "+text)
		}
		return "{ " + strings.Join(list, ", ") + " }", nil
	}
	return "", errors.New("TOML has no null")
}

// tomlString writes a text, over several lines if it has several.
func tomlString(s string) string {
	if !strings.Contains(s, "\n") {
		return capability.Quote(s)
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		q := capability.Quote(l)
		lines[i] = q[1 : len(q)-1]
	}
	return `"""` + "\n" + strings.Join(lines, "\n") + `"""`
}

// tomlJSON writes a JSON object as a literal string: on one line if it is
// short, else as people write JSON.
func tomlJSON(raw json.RawMessage) (string, error) {
	const short = 100
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return "", err
	}
	if b.Len() == 0 || b.Bytes()[0] != '{' {
		return "", errors.New("not a JSON object")
	}
	quote := `'`
	if b.Len() > short {
		pretty := bytes.NewBufferString("\n")
		if err := json.Indent(pretty, b.Bytes(), "", "  "); err != nil {
			return "", err
		}
		b, quote = *pretty, `'''`
	}
	// What a literal string cannot hold stands in strings only, where JSON
	// has another way to write it.
	text := strings.NewReplacer("'", `\u0027`, "\x7f", `\u007f`).Replace(b.String())
	return quote + text + quote, nil
}

// fail returns an error about the value at path.
func (e *edit) fail(path []string, hint, format string, args ...any) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: e.doc.Pos(path...).String(), What: fmt.Sprintf(format, args...), Hint: hint}
}
