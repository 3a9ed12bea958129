// Package guest is for authors of WASM skills: it turns one Go function per
// tool into a module that keeps the ABI skill/1 (docs/abi.md).
//
//	package main
//
//	import "github.com/skillhost/skill/sdk/guest"
//
//	type Greeting struct {
//		Name string `json:"name" doc:"who to greet" minlen:"1"`
//		Loud bool   `json:"loud,omitempty" doc:"in capitals"`
//	}
//
//	var _ = guest.Tool("greet", "Greet somebody", greet, guest.Annotations{ReadOnly: true})
//
//	func greet(c *guest.Call, in Greeting) (string, error) { return "hello, " + in.Name, nil }
//
//	func main() {}
//
// Build it with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared. Built for
// any other system, the same package runs its tools with Run, so that a test
// needs no host.
//
// The input schema follows from the argument type: the json tag gives the name
// and, by omitempty, whether it may be left out; doc, enum ("a,b"), min, max,
// minlen, maxlen, pattern, format and default say the rest. A string that holds
// JSON has media:"application/json": the host then takes the JSON itself, too,
// and makes a string of it; alias:"a,b" are other names for it. The output schema
// follows from the result type in the same way.
//
// The package knows nothing of permissions: what the host refuses arrives as
// an *sdk.Error of kind sdk.Denied.
package guest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/internal/schema"
)

// tool is one registered tool.
type tool struct {
	sdk.Tool
	open bool // takes arguments that the schema does not name
	run  func(*Call) (sdk.Result, error)

	in, out reflect.Type // what the schemas follow from, in a module: it derives them when it is asked to describe itself
}

// tools holds what Tool was given. A module is entered through exported
// functions and its main never runs, so there is no other place where the
// author's functions and the host's call can meet.
var tools = map[string]*tool{}

// Tool adds a tool to the module and returns true, so that it can stand in a
// variable declaration. In must be a struct (or json.RawMessage, for arguments
// of any shape). Out is what the tool answers:
//
//   - a struct or a map: structured content; its text is what its String
//     method says, or else the JSON
//   - Reply[T]: text, other content, and structured content of type T
//   - string: a text
//   - sdk.Result: anything, without an output schema
//
// An error becomes the reply {"error": …}: an *sdk.Error as it is, any other
// as one of kind sdk.Guest. A panic is such an error too, and its stack goes
// to stderr.
//
// Tool panics if a type has no JSON Schema, a tag is wrong, or a name comes
// twice. A module finds out about types and tags when it is first asked to
// describe itself, which is in the author's build.
func Tool[In, Out any](name, description string, run func(*Call, In) (Out, error), options ...Option) bool {
	t := &tool{Tool: sdk.Tool{Name: name, Description: description}}
	for _, o := range options {
		o.apply(t)
	}
	t.in, t.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if !isModule { // every call of a module is a start: it does not derive what no call needs
		t.describe()
	}
	if tools[name] != nil {
		panic(fmt.Sprintf("guest.Tool %q: registered twice", name))
	}
	t.run = func(c *Call) (sdk.Result, error) {
		var in In
		if err := decode(c.Args(), &in); err != nil {
			return sdk.Result{}, err
		}
		out, err := run(c, in)
		if err != nil {
			return sdk.Result{}, err
		}
		if c.asking() {
			return sdk.Result{}, nil // the answer is not in yet
		}
		return encode(&out)
	}
	tools[name] = t
	return true
}

// An Option says more about a tool: Title, Annotations, ExtraArguments, Hidden,
// Icon or Meta.
type Option interface{ apply(*tool) }

// Title is a tool's name for people.
type Title string

func (s Title) apply(t *tool) { t.Title = string(s) }

// Annotations are hints on a tool's behaviour; all four are said.
type Annotations struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may undo or remove something
	Idempotent  bool // a second call with the same arguments changes nothing more
	OpenWorld   bool // reaches beyond this machine
}

func (a Annotations) apply(t *tool) {
	t.Annotations = &sdk.Annotations{ReadOnly: &a.ReadOnly, Destructive: &a.Destructive, Idempotent: &a.Idempotent, OpenWorld: &a.OpenWorld}
}

type extraArguments struct{}

func (extraArguments) apply(t *tool) { t.open = true }

// ExtraArguments lets a tool take arguments that its struct does not name;
// Call.Args has them. Without it they are refused.
func ExtraArguments() Option { return extraArguments{} }

type hidden struct{}

func (hidden) apply(t *tool) { t.Hidden = true }

// Hidden makes a tool one that only serves what the skill's manifest names it
// for: resources, prompts and completions. Clients neither list nor call it.
func Hidden() Option { return hidden{} }

// Icon is an image that a client may show beside the tool: an https URL or a
// data:image/ URI. A tool may have several.
type Icon sdk.Icon

func (i Icon) apply(t *tool) { t.Icons = append(t.Icons, sdk.Icon(i)) }

// Meta is what clients see as the tool's _meta.
type Meta map[string]any

func (m Meta) apply(t *tool) {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("guest.Tool %q: meta: %v", t.Name, err))
	}
	t.Tool.Meta = b
}

var anyObject = json.RawMessage(`{"type":"object"}`)

// describe derives t's schemas, once. It panics if there are none.
func (t *tool) describe() {
	if t.Input != nil {
		return
	}
	if err := t.schemas(t.in, t.out); err != nil {
		panic(fmt.Sprintf("guest.Tool %q: %v", t.Name, err))
	}
}

func (t *tool) schemas(in, out reflect.Type) (err error) {
	switch {
	case in == reflect.TypeFor[json.RawMessage]():
		t.Input = anyObject
	case in.Kind() == reflect.Struct:
		t.Input, err = schema.Of(in, !t.open)
	default:
		err = fmt.Errorf("arguments of type %v: want a struct or json.RawMessage", in)
	}
	if err != nil {
		return err
	}
	if out.Implements(reflect.TypeFor[replier]()) {
		out = reflect.Zero(out).Interface().(replier).structuredType()
	}
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	switch {
	case out == reflect.TypeFor[sdk.Result](), out.Kind() == reflect.String:
		return nil
	case out.Kind() == reflect.Struct, out.Kind() == reflect.Map:
		t.Output, err = schema.Of(out, false)
		return err
	}
	return fmt.Errorf("a result of type %v: want a struct, a map, guest.Reply, a string or sdk.Result", out)
}

// description is the module's account of its tools, sorted by name.
func description() sdk.Description {
	d := sdk.Description{Tools: make([]sdk.Tool, 0, len(tools))}
	for _, t := range tools {
		t.describe()
		d.Tools = append(d.Tools, t.Tool)
	}
	sort.Slice(d.Tools, func(i, j int) bool { return d.Tools[i].Name < d.Tools[j].Name })
	return d
}
