// Package schema compiles JSON Schemas and checks values against them. Both
// the schemas and the values are strangers': a schema never makes the host
// fetch anything, neither can make it work or recurse without bound, and a
// value that two parsers could read differently is refused. It does not know
// what the values are used for.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/skillhost/skill/sdk"
)

// Bounds of what is accepted.
const (
	MaxSchema        = 256 << 10 // bytes of a schema
	MaxSchemaDepth   = 64        // arrays and objects inside each other
	MaxInstance      = 16 << 20  // bytes of a value
	MaxInstanceDepth = 128
)

// A Schema is a compiled JSON Schema. It is immutable and safe for concurrent
// use.
type Schema struct {
	compiled *jsonschema.Schema // nil: every object
	fast     *shape             // accepts most valid values; nil if the schema is not simple
	subject  string             // what is checked, for messages
	nodes    map[string]*jsonschema.Schema
	worst    int // work for a value without arrays; manyWork if it has no bound

	later func() (*Schema, error) // of Later
}

// Later is Compile, or CompileAny if any, at the first Check. It is for schemas
// that are known to be good, such as those of this binary: a bad one is only
// found then.
func Later(raw json.RawMessage, any bool) *Schema {
	return &Schema{later: sync.OnceValues(func() (*Schema, error) {
		if any {
			return CompileAny(raw)
		}
		return Compile(raw)
	})}
}

// Compile compiles the schema of a tool's arguments, whose type must be
// "object". A nil raw accepts every object.
//
// The default draft is 2020-12; "$schema" may name another one. "$ref" reaches
// only what is in raw itself. Formats are asserted; patterns are RE2 (package
// regexp). "$dynamicRef" and "$recursiveRef" are refused, as is a reference
// that leads back to itself without taking a step into the value. The error
// has kind Invalid and names the place in the schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	if raw == nil {
		return &Schema{subject: "arguments"}, nil
	}
	return compile(raw, "arguments", true)
}

// CompileSettings is Compile for what an operator sets, which messages call
// settings.
func CompileSettings(raw json.RawMessage) (*Schema, error) {
	return compile(raw, "settings", true)
}

// CompileAny is Compile for a value of any type, such as a tool's structured
// result.
func CompileAny(raw json.RawMessage) (*Schema, error) {
	return compile(raw, "value", false)
}

func compile(raw json.RawMessage, subject string, object bool) (s *Schema, err error) {
	defer func() {
		// The schema is a stranger's: whatever the library trips over, the
		// schema is refused and the host lives.
		if r := recover(); r != nil {
			s, err = nil, badSchema("it cannot be compiled: %v", r)
		}
	}()
	if len(raw) > MaxSchema {
		return nil, badSchema("%d bytes are too many: at most %d", len(raw), MaxSchema)
	}
	doc, err := parse(raw, MaxSchemaDepth)
	if err != nil {
		return nil, badSchema("%v", err)
	}
	root, ok := doc.(map[string]any)
	if _, isBool := doc.(bool); !ok && (object || !isBool) {
		return nil, badSchema("want a JSON object")
	}
	if object && root["type"] != "object" {
		return nil, badSchema(`at /type: want "type": "object", because arguments are an object`)
	}
	if err := inspect(doc); err != nil {
		return nil, err
	}
	patterns := &patterns{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns.compile)
	if err := c.AddResource(home, doc); err != nil {
		return nil, badSchema("%v", err)
	}
	compiled, err := c.Compile(home)
	if err != nil {
		return nil, compileError(err)
	}
	s = &Schema{compiled: compiled, subject: subject}
	if err := s.survey(); err != nil {
		return nil, err
	}
	if s.fast = shapeOf(doc, true); s.fast != nil && object && s.fast.types != typeObject {
		s.fast = nil
	}
	return s, nil
}

// home is the URL that a schema is compiled under. Relative references are
// relative to it, and lead nowhere.
const home = "schema:///"

// noLoader is how documents outside of the schema are fetched: not at all.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) { return nil, errRemote }

var errRemote = errors.New("a schema is never fetched: put what it refers to under \"$defs\"")

func badSchema(format string, args ...any) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "schema.Compile", What: "bad schema: " + fmt.Sprintf(format, args...)}
}

// Check checks value, which is JSON text; nil is {}. The error has kind
// Invalid and says for up to five places what was expected and which part of
// the schema expects it, or kind Limit if the check itself would take too long.
//
// Besides what breaks the schema, Check refuses what parsers disagree on:
// duplicate keys, text that is not UTF-8, unpaired surrogates, anything after
// the value, and numbers beyond all reason.
func (s *Schema) Check(value json.RawMessage) (err error) {
	if s.later != nil {
		if s, err = s.later(); err != nil {
			return &sdk.Error{Kind: sdk.Internal, Op: "schema.Check", What: "the schema", Err: err}
		}
	}
	if value == nil {
		value = emptyObject
	}
	if s.fast != nil && len(value) <= MaxInstance && s.fast.accepts(value) {
		return nil
	}
	return s.check(value)
}

var emptyObject = json.RawMessage("{}")

// check is Check without the shortcut.
func (s *Schema) check(value json.RawMessage) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s: cannot be checked: %v", s.subject, r)}
			if r == errWork {
				err = tooMuchWork(s.subject)
			}
		}
	}()
	if len(value) > MaxInstance {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%s: %d bytes are too many", s.subject, len(value)), Hint: fmt.Sprintf("at most %d", MaxInstance)}
	}
	v, err := parse(value, MaxInstanceDepth)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: s.subject + ": " + err.Error()}
	}
	if s.compiled == nil {
		if _, ok := v.(map[string]any); !ok {
			return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s: want an object, found %s", s.subject, describe(v))}
		}
		return nil
	}
	if s.worst > maxWork || len(value)*s.worst > maxWork {
		if w := (&work{memo: map[workKey]int{}}); w.of(s.compiled, v) > maxWork {
			return tooMuchWork(s.subject)
		}
	}
	if err := s.compiled.Validate(v); err != nil {
		return s.explain(v, err)
	}
	return nil
}

func tooMuchWork(subject string) error {
	return &sdk.Error{Kind: sdk.Limit, What: subject + ": checking this against the schema would take too long", Hint: "send a smaller or flatter value"}
}
