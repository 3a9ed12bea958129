package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// A text is an argument that holds JSON in a string: models often give the JSON
// itself. Its schema says so by "contentMediaType": "application/json", and by
// "x-alias" under which other names models give it.
type text struct {
	name string
	also []string
}

// textsOf finds the texts of an input schema.
func textsOf(input json.RawMessage) (texts []text) {
	if !bytes.Contains(input, []byte("contentMediaType")) {
		return nil
	}
	var s struct {
		Properties map[string]struct {
			Type  any      `json:"type"`
			Media string   `json:"contentMediaType"`
			Also  []string `json:"x-alias"`
		} `json:"properties"`
	}
	if json.Unmarshal(input, &s) != nil { // its compiler says what is wrong
		return nil
	}
	for name, p := range s.Properties {
		if p.Type != "string" || p.Media != "application/json" {
			continue
		}
		t := text{name: name}
		for _, also := range p.Also {
			if _, taken := s.Properties[also]; !taken {
				t.also = append(t.also, also)
			}
		}
		texts = append(texts, t)
	}
	slices.SortFunc(texts, func(a, b text) int { return strings.Compare(a.name, b.name) })
	return texts
}

// A member is one of a JSON object, as places in its text.
type member struct {
	name                       string
	key, colon, value, nextKey int
}

// membersOf finds the members of an object; ok is false for what is none.
func membersOf(object []byte) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		m := member{key: int(d.InputOffset())}
		t, err := d.Token()
		if err != nil {
			return nil, false
		}
		m.name, _ = t.(string) // a key is one
		m.colon = int(d.InputOffset())
		m.key += bytes.IndexByte(object[m.key:m.colon], '"')
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		m.nextKey = int(d.InputOffset())
		m.value = m.nextKey - len(v)
		all = append(all, m)
	}
	return all, true
}

// withTexts makes strings of arrays and objects that stand where e's tool takes
// JSON in a string. All else stays as it is, for Check to judge.
func (e *Entry) withTexts(args json.RawMessage) json.RawMessage {
	if e == nil || e.texts == nil || len(args) == 0 {
		return args
	}
	all, ok := membersOf(args)
	if !ok {
		return args
	}
	var out []byte
	done := 0
	put := func(from, to int, with string) {
		b, err := json.Marshal(with)
		if err != nil { // a string: cannot happen
			return
		}
		out = append(append(out, args[done:from]...), b...)
		done = to
	}
	for _, m := range all {
		t, renamed := e.textFor(all, m.name)
		if t == nil {
			continue
		}
		if renamed {
			put(m.key, m.colon, t.name)
		}
		if c := args[m.value]; c == '[' || c == '{' {
			put(m.value, m.nextKey, string(args[m.value:m.nextKey]))
		}
	}
	if done == 0 {
		return args
	}
	return append(out, args[done:]...)
}

// textFor is the text that a member of that name gives; renamed says that it
// does so by another name, which counts if nothing has the right one.
func (e *Entry) textFor(all []member, name string) (t *text, renamed bool) {
	for i := range e.texts {
		t := &e.texts[i]
		if t.name == name {
			return t, false
		}
		if !slices.Contains(t.also, name) {
			continue
		}
		first := slices.IndexFunc(all, func(m member) bool { return m.name == t.name || slices.Contains(t.also, m.name) })
		if all[first].name == name && !slices.ContainsFunc(all, func(m member) bool { return m.name == t.name }) {
			return t, true
		}
	}
	return nil, false
}

// resolveCall is resolveTool with the arguments as the tool takes them.
func (s *snapshot) resolveCall(call *sdk.Call, v Viewer) (Resolved, error) {
	r, err := s.resolveTool(call, v)
	if err == nil && r.fault == nil {
		r.Args = r.Entry.withTexts(r.Args)
	}
	return r, err
}
