// Package schema derives a JSON Schema from a Go type and its struct tags, and
// makes values of such types keep to it: it fills in defaults, and lists
// instead of null. It reads types only; it never validates a document.
package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Of returns the schema of t as JSON, always with the same order of keys. If
// closed, objects take no other properties than their type has fields. The
// error says which field cannot be expressed and is the author's to correct.
func Of(t reflect.Type, closed bool) (json.RawMessage, error) {
	d := deriver{closed: closed}
	o, err := d.typ(t)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	return json.Marshal(o)
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		v, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(m.key) + ":")
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o object) with(key string, value any) object { return append(o, member{key, value}) }

// typeOf returns o's "type", or "".
func (o object) typeOf() string {
	for _, m := range o {
		if s, ok := m.value.(string); ok && m.key == "type" {
			return s
		}
	}
	return ""
}

// deriver walks a type; within holds the structs it is inside of.
type deriver struct {
	closed bool
	within []reflect.Type
}

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	numberType    = reflect.TypeFor[json.Number]()
	timeType      = reflect.TypeFor[time.Time]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
)

func (d *deriver) typ(t reflect.Type) (object, error) {
	switch {
	case t == rawType:
		return object{}, nil
	case t == numberType:
		return object{{"type", "number"}}, nil
	case t == timeType:
		return object{{"type", "string"}, {"format", "date-time"}}, nil
	case t.Kind() != reflect.Pointer && t.Implements(marshalerType):
		return object{}, nil // it alone knows what it writes
	case t.Kind() != reflect.Pointer && t.Implements(textType):
		return object{{"type", "string"}}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{{"type", "boolean"}}, nil
	case reflect.String:
		return object{{"type", "string"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{{"type", "integer"}}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{{"type", "integer"}, {"minimum", 0}}, nil
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}, nil
	case reflect.Interface:
		return object{}, nil
	case reflect.Pointer:
		return d.typ(t.Elem())
	case reflect.Slice, reflect.Array:
		return d.list(t)
	case reflect.Map:
		return d.mapping(t)
	case reflect.Struct:
		return d.structure(t)
	}
	return nil, fmt.Errorf("type %v has no JSON form", t)
}

func (d *deriver) list(t reflect.Type) (object, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return object{{"type", "string"}, {"contentEncoding", "base64"}}, nil
	}
	items, err := d.typ(t.Elem())
	if err != nil {
		return nil, err
	}
	o := object{{"type", "array"}, {"items", items}}
	if t.Kind() == reflect.Array {
		o = o.with("minItems", t.Len()).with("maxItems", t.Len())
	}
	return o, nil
}

func (d *deriver) mapping(t reflect.Type) (object, error) {
	switch k := t.Key(); {
	case k.Kind() == reflect.String, k.Implements(textType), k.Kind() >= reflect.Int && k.Kind() <= reflect.Uint64:
	default:
		return nil, fmt.Errorf("map key %v has no JSON form", k)
	}
	values, err := d.typ(t.Elem())
	if err != nil {
		return nil, err
	}
	o := object{{"type", "object"}}
	if len(values) > 0 {
		o = o.with("additionalProperties", values)
	}
	return o, nil
}

func (d *deriver) structure(t reflect.Type) (object, error) {
	for _, outer := range d.within {
		if outer == t {
			return nil, fmt.Errorf("type %v contains itself: use json.RawMessage for the inner one", t)
		}
	}
	d.within = append(d.within, t)
	defer func() { d.within = d.within[:len(d.within)-1] }()

	var properties object
	var required []string
	for _, f := range fieldsOf(t) {
		o, err := d.field(f)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.name, err)
		}
		properties = properties.with(f.name, o)
		if f.required() {
			required = append(required, f.name)
		}
	}
	o := object{{"type", "object"}}
	if len(properties) > 0 {
		o = o.with("properties", properties)
	}
	if len(required) > 0 {
		o = o.with("required", required)
	}
	if d.closed {
		o = o.with("additionalProperties", false)
	}
	return o, nil
}

// field returns the schema of one field: its type's, narrowed by its tags.
func (d *deriver) field(f field) (object, error) {
	o, err := d.typ(f.Type)
	if err != nil {
		return nil, err
	}
	if o, err = f.narrow(o); err != nil {
		return nil, err
	}
	if f.Type.Kind() == reflect.Pointer && !f.omitted { // encoded as null if nil
		if s := o.typeOf(); s != "" {
			o[0].value = []string{s, "null"}
		}
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		o = o.with("description", doc)
	}
	if s, ok := f.Tag.Lookup("default"); ok {
		v, err := f.defaultJSON(s)
		if err != nil {
			return nil, err
		}
		o = o.with("default", v)
	}
	return o, nil
}

// A field is one property of a struct.
type field struct {
	reflect.StructField
	name    string
	omitted bool // left out when empty
	quoted  bool // the option "string"
}

func (f field) required() bool {
	_, hasDefault := f.Tag.Lookup("default")
	return !f.omitted && !hasDefault
}

// fieldsOf lists the properties of t as encoding/json sees them, those of an
// embedded struct among them; Index is the path from t.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for _, sf := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		promotes := sf.Anonymous && name == "" && inner.Kind() == reflect.Struct
		if sf.Tag.Get("json") == "-" || !sf.IsExported() || promotes || hidden(t, sf.Index) {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		f := field{StructField: sf, name: name}
		for o := range strings.SplitSeq(options, ",") {
			f.omitted = f.omitted || o == "omitempty" || o == "omitzero"
			f.quoted = f.quoted || o == "string"
		}
		fields = append(fields, f)
	}
	return fields
}

// hidden reports whether a struct on the way to the field is a property of its
// own, so that the field is not one of t's.
func hidden(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		outer := t.FieldByIndex(index[:i])
		if tag, ok := outer.Tag.Lookup("json"); ok && tag != "" && tag[0] != ',' {
			return true
		}
	}
	return false
}

// defaultJSON reads the tag "default": a string as it is, anything else JSON.
func (f field) defaultJSON(s string) (json.RawMessage, error) {
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	raw := json.RawMessage(s)
	if t.Kind() == reflect.String {
		raw, _ = json.Marshal(s)
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return nil, fmt.Errorf("tag default:%q: %w", s, err)
	}
	return raw, nil
}
