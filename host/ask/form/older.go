package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Older is the form in the words of the revisions up to 2025-06-18, which have
// enum with enumNames in place of oneOf, and no lists: each option of Several
// becomes a boolean of its own.
func (f Form) Older() Older {
	var o Older
	taken := map[string]bool{}
	for _, x := range f.Fields {
		taken[x.Name] = true
	}
	var properties, required bytes.Buffer
	add := func(name string, p map[string]any, must bool) {
		b, err := json.Marshal(p)
		if err != nil { // strings and numbers: cannot happen
			return
		}
		if properties.Len() > 0 {
			properties.WriteByte(',')
		}
		properties.Write(quote(name))
		properties.WriteByte(':')
		properties.Write(b)
		if must {
			if required.Len() > 0 {
				required.WriteByte(',')
			}
			required.Write(quote(name))
		}
	}
	for i := range f.Fields {
		x := &f.Fields[i]
		if x.Kind != Several {
			add(x.Name, x.older(), x.Required)
			continue
		}
		for j, option := range x.Options {
			name := x.Name + "_" + strconv.Itoa(j+1)
			for taken[name] {
				name += "_"
			}
			taken[name] = true
			p := map[string]any{"type": "boolean", "title": x.Title + ": " + option.Label}
			if x.About != "" {
				p["description"] = x.About
			}
			if slices.Contains(x.Initial, strconv.Itoa(j)) {
				p["default"] = true
			}
			add(name, p, false)
			o.booleans = append(o.booleans, boolean{name, x.Name, option.Value})
		}
	}
	o.Schema = json.RawMessage(`{"type":"object","properties":{` + properties.String() + `}`)
	if required.Len() > 0 {
		o.Schema = append(o.Schema, `,"required":[`+required.String()+`]`...)
	}
	o.Schema = append(o.Schema, '}')
	return o
}

// An Older is a form in older words.
type Older struct {
	Schema   json.RawMessage
	booleans []boolean
}

// A boolean stands for one option of a list.
type boolean struct{ name, list, value string }

// older is a property in older words.
func (f *Field) older() map[string]any {
	p := map[string]any{"title": f.Title}
	if f.About != "" {
		p["description"] = f.About
	}
	bounds := func(low, high string) {
		if f.Bounds.Least != nil {
			p[low] = *f.Bounds.Least
		}
		if f.Bounds.Most != nil {
			p[high] = *f.Bounds.Most
		}
	}
	switch f.Kind {
	case YesNo:
		p["type"] = "boolean"
		if len(f.Initial) == 1 {
			p["default"] = f.Initial[0] == "true"
		}
	case Number, Integer:
		p["type"] = string(f.Kind)
		bounds("minimum", "maximum")
	case Choice:
		p["type"] = "string"
		var values, labels []string
		for _, o := range f.Options {
			values, labels = append(values, o.Value), append(labels, o.Label)
		}
		p["enum"], p["enumNames"] = values, labels
	default:
		p["type"] = "string"
		for key, n := range map[string]int{"minLength": f.Bounds.Shortest, "maxLength": f.Bounds.Longest} {
			if n > 0 {
				p[key] = n
			}
		}
		if f.Format != "" {
			p["format"] = f.Format
		}
	}
	return p
}

// Restore turns the content of an answer in older words into one that fits the
// form. What is not of this form is kept.
func (o Older) Restore(content json.RawMessage) json.RawMessage {
	var given map[string]json.RawMessage
	if len(o.booleans) == 0 || json.Unmarshal(content, &given) != nil || given == nil {
		return content
	}
	lists := map[string][]string{}
	for _, b := range o.booleans {
		var yes bool
		if v, ok := given[b.name]; !ok || json.Unmarshal(v, &yes) != nil {
			continue
		}
		delete(given, b.name)
		if yes {
			lists[b.list] = append(lists[b.list], b.value)
		}
	}
	for name, values := range lists {
		if _, ok := given[name]; !ok { // the client has lists after all
			given[name], _ = json.Marshal(values) // strings: it cannot fail
		}
	}
	out, err := json.Marshal(given)
	if err != nil {
		return content
	}
	return out
}
