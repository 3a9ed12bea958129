package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// bounds says which keyword a tag becomes for a type of JSON value.
var bounds = map[string]map[string]string{
	"min":    {"integer": "minimum", "number": "minimum", "array": "minItems"},
	"max":    {"integer": "maximum", "number": "maximum", "array": "maxItems"},
	"minlen": {"string": "minLength", "array": "minItems"},
	"maxlen": {"string": "maxLength", "array": "maxItems"},
}

// narrow adds the keywords that f's tags ask for. enum, format and pattern of
// a list speak of its items.
func (f field) narrow(o object) (object, error) {
	if f.quoted {
		return nil, fmt.Errorf("the option \"string\" of the json tag is not supported")
	}
	for _, tag := range []string{"min", "max", "minlen", "maxlen"} {
		s, ok := f.Tag.Lookup(tag)
		if !ok {
			continue
		}
		keyword := bounds[tag][o.typeOf()]
		n := json.Number(s)
		_, isInt := strconv.Atoi(s)
		_, isNumber := n.Float64()
		switch {
		case keyword == "":
			return nil, fmt.Errorf("tag %s does not fit type %v", tag, f.Type)
		case isNumber != nil, isInt != nil && keyword != "minimum" && keyword != "maximum":
			return nil, fmt.Errorf("tag %s:%q is not a number that fits", tag, s)
		}
		o = slices.DeleteFunc(o, func(m member) bool { return m.key == keyword }).with(keyword, n)
	}
	if o.typeOf() != "array" {
		return f.values(o)
	}
	for i := range o {
		if items, ok := o[i].value.(object); ok && o[i].key == "items" {
			items, err := f.values(items)
			if err != nil {
				return nil, err
			}
			o[i].value = items
		}
	}
	return o, nil
}

// values adds the keywords enum, format and pattern.
func (f field) values(o object) (object, error) {
	if s, ok := f.Tag.Lookup("enum"); ok {
		var values []json.RawMessage
		for v := range strings.SplitSeq(s, ",") {
			raw := json.RawMessage(v)
			if o.typeOf() == "string" {
				raw, _ = json.Marshal(v)
			} else if !json.Valid(raw) {
				return nil, fmt.Errorf("tag enum: %q is not of type %s", v, o.typeOf())
			}
			values = append(values, raw)
		}
		o = o.with("enum", values)
	}
	for _, tag := range []string{"format", "pattern"} {
		s, ok := f.Tag.Lookup(tag)
		if !ok {
			continue
		}
		if o.typeOf() != "string" {
			return nil, fmt.Errorf("tag %s does not fit type %v", tag, f.Type)
		}
		o = o.with(tag, s)
	}
	return f.media(o)
}

// media adds what a string holds, and other names that it is given under.
func (f field) media(o object) (object, error) {
	media, isMedia := f.Tag.Lookup("media")
	alias, isAlias := f.Tag.Lookup("alias")
	if !isMedia && !isAlias {
		return o, nil
	}
	if o.typeOf() != "string" || isAlias && media != "application/json" {
		return nil, fmt.Errorf("tag media or alias does not fit type %v", f.Type)
	}
	o = o.with("contentMediaType", media)
	if isAlias {
		o = o.with("x-alias", strings.Split(alias, ","))
	}
	return o, nil
}
