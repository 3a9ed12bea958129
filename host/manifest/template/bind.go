package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/skillhost/skill/host/manifest/words"
)

// An input is an argument as the tool's schema describes it.
type input struct {
	kind     string          // its type, or asJSON; of an array, that of the elements
	array    bool            //
	required bool            //
	fallback json.RawMessage // the schema's default, or nil
	enum     []string        // if not nil, the only values: the author's own words
}

// Bind checks c against the tool's input schema, a JSON object, and notes how
// each argument is written. Every name must be a property of it, of a type that
// can be written as a word, and every property must be used: one that is not
// would be taken and ignored. The error has kind Invalid and no Op.
func (c *Command) Bind(schema json.RawMessage) error {
	var doc struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return invalid("the input schema: "+err.Error(), "")
	}
	c.inputs = map[string]input{}
	known := slices.Sorted(maps.Keys(doc.Properties))
	all := slices.Clone(c.args)
	if c.stdin != nil {
		all = append(all, *c.stdin)
	}
	for i, w := range all {
		for _, n := range w.names() {
			raw, ok := doc.Properties[n]
			if n == Workspace || n == SkillDir {
				if ok {
					return invalid(fmt.Sprintf("the argument %q has the name of a directory that the host puts in", n), "rename it in the input schema")
				}
				continue
			}
			if !ok {
				return invalid(fmt.Sprintf("the command uses %q, which is no argument of the tool", n), words.Near(n, known, "properties of the input schema"))
			}
			in, err := read(n, raw, i == len(c.args) && w.whole() != "")
			if err != nil {
				return err
			}
			if in.array != (w.spread != "") && !in.isJSON() {
				if in.array {
					return invalid(fmt.Sprintf("the argument %q is an array", n), fmt.Sprintf("write it as a word of its own, {%s...}: each of its elements becomes a word", n))
				}
				return invalid(fmt.Sprintf("the argument %q is not an array", n), fmt.Sprintf("write {%s}", n))
			}
			in.required = slices.Contains(doc.Required, n)
			if before, twice := c.inputs[n]; twice && before.isJSON() != in.isJSON() {
				return invalid(fmt.Sprintf("the argument %q cannot be words and JSON both", n), "")
			}
			c.inputs[n] = in
		}
	}
	for _, n := range known {
		if _, used := c.inputs[n]; !used {
			return invalid(fmt.Sprintf("the argument %q is never used", n), fmt.Sprintf("write {%s} into the command or remove the property: what a caller gives must not be ignored", n))
		}
	}
	return nil
}

// scalars are the types of which a value can be written as a word. asJSON is the
// kind of an argument that is written as its JSON text.
var scalars = []string{"string", "integer", "number", "boolean"}

const asJSON = "JSON"

// isJSON reports whether the argument is written as its JSON text.
func (in input) isJSON() bool { return in.kind == asJSON }

// read reads the schema of the property n. Where it is all that is written to a
// program's stdin it may be of any type, and is written as JSON.
func read(n string, raw json.RawMessage, anyType bool) (in input, err error) {
	var p struct {
		Type    any               `json:"type"`
		Enum    []json.RawMessage `json:"enum"`
		Const   json.RawMessage   `json:"const"`
		Default json.RawMessage   `json:"default"`
		Items   json.RawMessage   `json:"items"`
	}
	const want = "want a type that can be written as a word: string, integer, number, boolean, or an array of one of them"
	if err := json.Unmarshal(raw, &p); err != nil {
		return in, invalid(fmt.Sprintf("the argument %q has no type", n), want)
	}
	kind, _ := p.Type.(string)
	if anyType && !slices.Contains(scalars, kind) {
		return input{kind: asJSON, fallback: p.Default}, nil
	}
	if kind == "array" {
		if p.Items == nil {
			return in, invalid(fmt.Sprintf("the argument %q is an array of anything", n), want)
		}
		if in, err = read(n, p.Items, false); err != nil || in.array {
			return in, invalid(fmt.Sprintf("the elements of the argument %q are not words", n), want)
		}
		in.array, in.fallback = true, p.Default
		return in, in.checkDefault(n)
	}
	if !slices.Contains(scalars, kind) {
		return in, invalid(fmt.Sprintf("the argument %q: type %s", n, typeText(p.Type)), want)
	}
	in = input{kind: kind, fallback: p.Default}
	if p.Const != nil {
		p.Enum = append(p.Enum, p.Const)
	}
	for _, v := range p.Enum {
		text, err := in.text(v)
		if err != nil {
			return in, invalid(fmt.Sprintf("the argument %q: the value %s of its enum is no %s", n, words.Clip(string(v)), kind), "")
		}
		in.enum = append(in.enum, text)
	}
	return in, in.checkDefault(n)
}

// checkDefault checks that the default, if there is one, is of the type.
func (in input) checkDefault(n string) error {
	if in.fallback == nil {
		return nil
	}
	if _, err := in.texts(in.fallback); err != nil {
		return invalid(fmt.Sprintf("the argument %q: its default %s is not of its type", n, words.Clip(string(in.fallback))), "")
	}
	return nil
}

func typeText(v any) string {
	if v == nil {
		return "is missing"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "is not understood"
	}
	return words.Clip(string(raw))
}
