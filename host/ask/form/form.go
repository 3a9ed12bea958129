// Package form reads the flat schemas that users are asked with (Model Context
// Protocol, client/elicitation) as fields that a page or a terminal can show,
// and turns what was filled in into an answer that fits the schema. It is pure.
//
// It does not know who asks, where the fields are shown, or what becomes of the
// answer.
package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Kind says what a Field takes.
type Kind string

// The kinds of Field.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	YesNo   Kind = "yesno"
	Choice  Kind = "choice"  // one of Options
	Several Kind = "several" // any of Options
)

// Bounds of a form.
const (
	MaxFields  = 32
	MaxOptions = 64
	MaxText    = 16 << 10 // bytes of one text that is filled in
)

// A Form is what one question asks for, in the order of its schema. Its texts
// are safe to show: see Plain.
type Form struct {
	Fields []Field `json:"fields"`
}

// A Field is one value of a form.
type Field struct {
	Name     string   `json:"name"` // of the property
	Title    string   `json:"title"`
	About    string   `json:"about,omitempty"`
	Kind     Kind     `json:"kind"`
	Format   string   `json:"format,omitempty"` // Text: "email", "uri", "date", "date-time" or ""
	Options  []Option `json:"options,omitempty"`
	Required bool     `json:"required,omitempty"`
	Initial  []string `json:"initial,omitempty"` // what is filled in at first, as Form.Read takes it
	Bounds   Bounds   `json:"bounds,omitzero"`
}

// An Option is one value of a Choice or of Several.
type Option struct {
	Value string `json:"value"` // as the schema has it, not safe to show
	Label string `json:"label"`
}

// Bounds are those of a value; zero fields say nothing.
type Bounds struct {
	Least    *float64 `json:"least,omitempty"` // Number, Integer
	Most     *float64 `json:"most,omitempty"`
	Shortest int      `json:"shortest,omitempty"` // Text, characters
	Longest  int      `json:"longest,omitempty"`
	Fewest   int      `json:"fewest,omitempty"` // Several, options
	Maximum  int      `json:"maximum,omitempty"`
}

// A property is one of a schema, as far as a form can have it.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []titled        `json:"oneOf"`
	Items       *items          `json:"items"`
	Default     json.RawMessage `json:"default"`
	Format      string          `json:"format"`
	limits
}

type limits struct {
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
	MinLength int      `json:"minLength"`
	MaxLength int      `json:"maxLength"`
	MinItems  int      `json:"minItems"`
	MaxItems  int      `json:"maxItems"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

type items struct {
	Enum  []string `json:"enum"`
	AnyOf []titled `json:"anyOf"`
	OneOf []titled `json:"oneOf"`
}

// Parse reads a schema. It fails on one that is no flat form: that can only be
// put to a client, which may know more.
func Parse(schema json.RawMessage) (Form, error) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return Form{}, fmt.Errorf("not a form: %w", err)
	}
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	var f Form
	if len(s.Properties) == 0 {
		return f, nil
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return f, fmt.Errorf("not a form: its properties are no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return f, err
		}
		var p property
		if err := d.Decode(&p); err != nil {
			return f, fmt.Errorf("property %q: %w", name, err)
		}
		x, err := p.field(name.(string)) // a key is a string
		if err != nil {
			return f, fmt.Errorf("property %q: %w", name, err)
		}
		x.Required = required[x.Name]
		if f.Fields = append(f.Fields, x); len(f.Fields) > MaxFields {
			return f, fmt.Errorf("more than %d properties", MaxFields)
		}
	}
	return f, nil
}

func (p *property) field(name string) (Field, error) {
	f := Field{Name: name, Title: Plain(p.Title), About: Plain(p.Description), Format: p.Format,
		Bounds: Bounds{p.Minimum, p.Maximum, p.MinLength, p.MaxLength, p.MinItems, p.MaxItems}}
	if f.Title == "" {
		f.Title = Plain(name)
	}
	switch {
	case p.Type == "array":
		f.Kind = Several
		if p.Items == nil {
			return f, fmt.Errorf("a list of anything")
		}
		f.Options = options(p.Items.Enum, nil, append(p.Items.AnyOf, p.Items.OneOf...))
	case p.Type == "string" && (p.Enum != nil || p.OneOf != nil):
		f.Kind = Choice
		f.Options = options(p.Enum, p.EnumNames, p.OneOf)
	case p.Type == "string":
		f.Kind = Text
	case p.Type == "boolean":
		f.Kind = YesNo
	case p.Type == "number":
		f.Kind = Number
	case p.Type == "integer":
		f.Kind = Integer
	default:
		return f, fmt.Errorf("type %q", p.Type)
	}
	if n := len(f.Options); (f.Kind == Choice || f.Kind == Several) && (n == 0 || n > MaxOptions) {
		return f, fmt.Errorf("%d options", n)
	}
	f.Initial = f.initial(p.Default)
	return f, nil
}

func options(values, names []string, list []titled) (all []Option) {
	for i, v := range values {
		label := v
		if i < len(names) && names[i] != "" {
			label = names[i]
		}
		all = append(all, Option{v, Plain(label)})
	}
	for _, t := range list {
		if t.Title == "" {
			t.Title = t.Const
		}
		all = append(all, Option{t.Const, Plain(t.Title)})
	}
	return all
}

// initial is a default as Read takes it; nil if there is none that fits.
func (f *Field) initial(v json.RawMessage) []string {
	var one string
	var many []string
	switch {
	case len(v) == 0:
		return nil
	case f.Kind == Several:
		if json.Unmarshal(v, &many) != nil {
			return nil
		}
	case json.Unmarshal(v, &one) == nil:
		many = []string{one}
	default:
		many = []string{string(bytes.TrimSpace(v))}
	}
	if f.Kind != Several && f.Kind != Choice {
		many[0] = Plain(many[0])
		if _, err := f.value(many); err != nil {
			return nil
		}
		return many
	}
	var out []string
	for _, m := range many {
		for i, o := range f.Options {
			if o.Value == m {
				out = append(out, strconv.Itoa(i))
			}
		}
	}
	return out
}

// A Fault is what is wrong with what was filled in.
type Fault struct {
	Field string `json:"field"`
	What  string `json:"what"` // for who filled it in
}

// Read turns what was filled in, by the names of fields, into the content of an
// answer. A Choice is the index of an option, counted from 0, Several are some
// of those, YesNo is "true" or "false"; of all kinds, nothing or one empty text
// means that it was left out. content is nil if there are faults.
func (f Form) Read(filled map[string][]string) (content json.RawMessage, faults []Fault) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range f.Fields {
		x := &f.Fields[i]
		v, err := x.value(filled[x.Name])
		switch {
		case err != nil:
			faults = append(faults, Fault{x.Name, err.Error()})
		case v == nil && x.Required:
			faults = append(faults, Fault{x.Name, "this needs an answer"})
		case v != nil:
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(quote(x.Name))
			b.WriteByte(':')
			b.Write(v)
		}
	}
	b.WriteByte('}')
	if faults != nil {
		return nil, faults
	}
	return b.Bytes(), nil
}

// value is the JSON of one field, or nil if it was left out.
func (f *Field) value(in []string) (json.RawMessage, error) {
	if f.Kind == Several {
		return f.several(in)
	}
	if len(in) > 1 {
		return nil, fmt.Errorf("one answer, not %d", len(in))
	}
	if len(in) == 0 || in[0] == "" {
		return nil, nil
	}
	switch f.Kind {
	case Choice:
		o, err := f.option(in[0])
		return quote(o.Value), err
	case YesNo:
		if in[0] != "true" && in[0] != "false" {
			return nil, fmt.Errorf("yes or no")
		}
		return json.RawMessage(in[0]), nil
	case Number, Integer:
		return f.number(strings.TrimSpace(in[0]))
	}
	return f.text(in[0])
}

func (f *Field) option(index string) (Option, error) {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(f.Options) {
		return Option{}, fmt.Errorf("there is no such option")
	}
	return f.Options[i], nil
}

func (f *Field) several(in []string) (json.RawMessage, error) {
	seen := map[string]bool{}
	values := []json.RawMessage{}
	for _, index := range in {
		if index == "" || seen[index] {
			continue
		}
		seen[index] = true
		o, err := f.option(index)
		if err != nil {
			return nil, err
		}
		values = append(values, quote(o.Value))
	}
	switch n := len(values); {
	case n == 0 && !f.Required:
		return nil, nil
	case n < f.Bounds.Fewest:
		return nil, fmt.Errorf("at least %d of these", f.Bounds.Fewest)
	case f.Bounds.Maximum > 0 && n > f.Bounds.Maximum:
		return nil, fmt.Errorf("at most %d of these", f.Bounds.Maximum)
	case n == 0:
		return nil, fmt.Errorf("this needs an answer")
	}
	return json.Marshal(values)
}

func (f *Field) number(s string) (json.RawMessage, error) {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !json.Valid([]byte(s)):
		return nil, fmt.Errorf("a number")
	case f.Kind == Integer && n != math.Trunc(n):
		return nil, fmt.Errorf("a whole number")
	case f.Bounds.Least != nil && n < *f.Bounds.Least:
		return nil, fmt.Errorf("at least %v", *f.Bounds.Least)
	case f.Bounds.Most != nil && n > *f.Bounds.Most:
		return nil, fmt.Errorf("at most %v", *f.Bounds.Most)
	}
	return json.RawMessage(s), nil
}

func (f *Field) text(s string) (json.RawMessage, error) {
	s = strings.ToValidUTF8(s, "\ufffd")
	n := len([]rune(s))
	switch {
	case len(s) > MaxText:
		return nil, fmt.Errorf("at most %d bytes", MaxText)
	case n < f.Bounds.Shortest:
		return nil, fmt.Errorf("at least %d characters", f.Bounds.Shortest)
	case f.Bounds.Longest > 0 && n > f.Bounds.Longest:
		return nil, fmt.Errorf("at most %d characters", f.Bounds.Longest)
	}
	if err := f.formed(s); err != nil {
		return nil, err
	}
	return quote(s), nil
}

// formed checks the format of a text, so that who filled it in can put it right.
func (f *Field) formed(s string) (err error) {
	switch f.Format {
	case "email":
		if a, bad := mail.ParseAddress(s); bad != nil || a.Address != s {
			return fmt.Errorf("an address such as name@example.com")
		}
	case "uri":
		if u, bad := url.Parse(s); bad != nil || u.Scheme == "" {
			return fmt.Errorf("an address such as https://example.com")
		}
	case "date":
		if _, err = time.Parse(time.DateOnly, s); err != nil {
			return fmt.Errorf("a date such as 2026-01-31")
		}
	case "date-time":
		if _, err = time.Parse(time.RFC3339, s); err != nil {
			return fmt.Errorf("a time such as 2026-01-31T12:00:00Z")
		}
	}
	return nil
}

// quote is s as JSON.
func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string: cannot happen
		return json.RawMessage(`""`)
	}
	return b
}
