package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// Dirs are the values of the names that stand for directories; "" means that
// the call has none.
type Dirs struct{ Workspace, SkillDir string }

// Bounds of what is handed to a program, in bytes. Linux takes no longer word
// and, with a stack of 8 MiB, no longer row of words.
const (
	maxWord = 128<<10 - 1
	maxArgv = 1 << 20
)

// Argv returns the words of c with the arguments of a call, a JSON object, put
// in. The program's name is the first. A word with an argument that was not
// given, and has no default, is left out.
//
// The error has kind Invalid for an argument that must not be a word: one with
// a NUL, one that is too long, or one that the program would take for an option.
// The latter is what a word is that an argument makes start with "-", unless it
// stands after the word "--" or is one of the values that the schema lists.
func (c *Command) Argv(args json.RawMessage, dirs Dirs) ([]string, error) {
	given, err := c.given(args)
	if err != nil {
		return nil, err
	}
	argv, total, options := []string{c.Program}, len(c.Program), true
	for _, w := range c.args {
		list, err := c.fill(w, given, dirs, options)
		if err != nil {
			return nil, err
		}
		for _, text := range list {
			if total += len(text) + 1; len(text) > maxWord || total > maxArgv {
				return nil, invalid("the arguments are too long for a command", fmt.Sprintf("at most %d bytes each and %d together", maxWord, maxArgv))
			}
		}
		argv = append(argv, list...)
		if text, ok := w.literal(); ok && text == "--" {
			options = false
		}
	}
	return argv, nil
}

// Stdin returns what is written to the program, and whether anything is. The
// error is as Argv's.
func (c *Command) Stdin(args json.RawMessage, dirs Dirs) (text string, ok bool, err error) {
	if c.stdin == nil {
		return "", false, nil
	}
	given, err := c.given(args)
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	for _, p := range c.stdin.parts {
		text, ok, err := c.part(p, given, dirs)
		if err != nil || !ok {
			return "", false, err
		}
		b.WriteString(text)
	}
	return b.String(), true, nil
}

func (c *Command) given(args json.RawMessage) (given map[string]json.RawMessage, err error) {
	if c.inputs == nil { // never by a manifest
		return nil, &sdk.Error{Kind: sdk.Internal, Op: "template.Argv", What: "the command is not bound"}
	}
	if len(args) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, invalid("the arguments are not a JSON object", "")
	}
	for n := range given {
		if _, known := c.inputs[n]; !known {
			return nil, invalid(fmt.Sprintf("there is no argument %q", words.Clip(n)), words.Near(n, slices.Sorted(maps.Keys(c.inputs)), "arguments"))
		}
	}
	return given, nil
}

// fill returns the words that w comes to. options says that the program still
// looks for options there.
func (c *Command) fill(w word, given map[string]json.RawMessage, dirs Dirs, options bool) ([]string, error) {
	if w.spread != "" {
		list, ok, err := c.value(w.spread, given)
		if err != nil || !ok {
			return nil, err
		}
		for _, text := range list {
			if err := c.safe(w.spread, text, options); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	var b strings.Builder
	for _, p := range w.parts {
		text, ok, err := c.part(p, given, dirs)
		if err != nil || !ok {
			return nil, err
		}
		if p.name != "" {
			if err := c.safe(p.name, text, options && b.Len() == 0); err != nil {
				return nil, err
			}
		}
		b.WriteString(text)
	}
	return []string{b.String()}, nil
}

// safe checks text, the value of n, which is to be a word or a part of one.
// first says that the program looks for an option there.
func (c *Command) safe(n, text string, first bool) error {
	if strings.ContainsRune(text, 0) {
		return invalid(fmt.Sprintf("the argument %q has a NUL character", n), "a program cannot be given one")
	}
	if !first || !strings.HasPrefix(text, "-") || slices.Contains(c.inputs[n].enum, text) {
		return nil
	}
	return invalid(fmt.Sprintf("the argument %q, %q, would be an option of %s", n, words.Clip(text), c.Program),
		`it must not start with "-"; a path can be written as "./-name"`)
}

// part returns the text of p. ok is false if it is an argument that is not
// given.
func (c *Command) part(p part, given map[string]json.RawMessage, dirs Dirs) (text string, ok bool, err error) {
	switch p.name {
	case "":
		return p.text, true, nil
	case Workspace:
		if dirs.Workspace == "" {
			return "", false, invalid("the tool works in a workspace, and this call has none", "start the host with --workspace DIR")
		}
		return dirs.Workspace, true, nil
	case SkillDir:
		if dirs.SkillDir == "" {
			return "", false, invalid("the tool needs the skill's folder, and a skill in the binary has none", "")
		}
		return dirs.SkillDir, true, nil
	}
	list, ok, err := c.value(p.name, given)
	if err != nil || !ok {
		return "", false, err
	}
	return list[0], true, nil
}

// value returns the argument n as words: one, or those of an array. ok is false
// if it is neither given nor has a default.
func (c *Command) value(n string, given map[string]json.RawMessage) (list []string, ok bool, err error) {
	in := c.inputs[n]
	raw, ok := given[n]
	if !ok {
		if raw = in.fallback; raw == nil {
			if in.required {
				return nil, false, invalid(fmt.Sprintf("the argument %q is missing", n), "")
			}
			return nil, false, nil
		}
	}
	if list, err = in.texts(raw); err != nil {
		return nil, false, invalid(fmt.Sprintf("the argument %q: %v", n, err), "")
	}
	return list, true, nil
}

// texts writes a value of in as words: one, or those of an array.
func (in input) texts(raw json.RawMessage) ([]string, error) {
	if !in.array {
		text, err := in.text(raw)
		return []string{text}, err
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || elements == nil {
		return nil, errors.New("want an array")
	}
	list := []string{}
	for _, e := range elements {
		text, err := in.text(e)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// text writes one value as a word.
func (in input) text(raw json.RawMessage) (string, error) {
	if in.isJSON() {
		return string(raw), nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil && in.kind == "string" {
		return "", errors.New("not JSON")
	}
	switch v := v.(type) {
	case string:
		if in.kind == "string" {
			return v, nil
		}
	case bool:
		if in.kind == "boolean" {
			return strconv.FormatBool(v), nil
		}
	case float64:
		if in.kind == "number" || in.kind == "integer" {
			return number(strings.TrimSpace(string(raw)), v, in.kind == "integer")
		}
	}
	return "", fmt.Errorf("want a value of type %s", in.kind)
}

// number writes a JSON number for a program, which may know only plain digits:
// as it stands if it is such, else without an exponent.
func number(text string, v float64, integer bool) (string, error) {
	if strings.Trim(text, "-0123456789") == "" {
		return text, nil
	}
	if integer && v != math.Trunc(v) {
		return "", errors.New("want a whole number")
	}
	if math.Abs(v) > 1<<53 {
		return "", errors.New("the number is too large to be written exactly")
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}
