package catalog

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"

	"github.com/skillhost/skill/host/library"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/manifest/uri"
	"github.com/skillhost/skill/sdk"
)

// A Resolved is what a call's name and arguments lead to.
type Resolved struct {
	Entry  *Entry
	Via    *Entry          // the address tool that named Entry, or nil
	Args   json.RawMessage // for Entry's tool
	Answer *sdk.Result     // what is known without running anything, or nil
	MIME   string          // of a resource, as far as it is known

	fault error           // of the arguments of Via
	given json.RawMessage // what the client gave where that is not Args
}

// Check returns an error of kind Invalid unless the arguments fit: what the
// client gave a prompt or an address, and what its tool is given. It says what
// there is: it is for who may call the Entry.
func (r *Resolved) Check() error {
	if r.fault != nil {
		return r.fault
	}
	if r.Answer != nil {
		return nil
	}
	if o := r.Entry.Offer; o != nil && o.given != nil && r.given != nil {
		if err := o.given.Check(r.given); err != nil {
			return err
		}
	}
	return r.Entry.Input.Check(r.Args)
}

// A Viewer is who resolves. What it may not call stands in nobody's way: where
// several skills serve one URI, it gets that of a skill it may call.
type Viewer struct {
	Skill *manifest.Skill   // whose tool makes the call; nil: a client does
	May   func(*Entry) bool // whether the operator lets the caller call it; nil: always
}

func (v Viewer) may(e *Entry) bool { return v.May == nil || v.May(e) }

// Resolve finds the entry that call means for v, and the arguments meant for it.
func (c *Catalog) Resolve(call *sdk.Call, v Viewer) (Resolved, error) {
	s := c.now.Load()
	switch call.Kind {
	case sdk.CallTool:
		return s.resolveCall(call, v)
	case sdk.CallResource:
		return s.resolveResource(call.Tool, v)
	case sdk.CallPrompt:
		return s.resolvePrompt(call)
	case sdk.CallCompletion:
		return s.resolveCompletion(call, v)
	}
	return Resolved{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("unknown kind of call %.20q", call.Kind)}
}

// resolveResource finds who serves the URI: an exact match, else the template
// with the longest literal beginning, else the first name of a skill. What no
// manifest names may be a file of a skill that clients can load.
func (s *snapshot) resolveResource(address string, v Viewer) (Resolved, error) {
	if why := uri.Fault(address); why != "" {
		return Resolved{}, &sdk.Error{Kind: sdk.Invalid, What: "resource " + quote(address) + ": " + why}
	}
	for _, seen := range []bool{true, false} { // what v may not read is found last, so that the refusal says why
		for _, o := range s.exact[address] {
			if v.may(o.Entry) == seen {
				return o.read(address, nil)
			}
		}
		for _, o := range s.tries {
			if v.may(o.Entry) != seen {
				continue
			}
			if values, ok := o.template.Match(address); ok {
				return o.read(address, values)
			}
		}
	}
	if skill, file, ok := library.Parse(address); ok {
		if x := s.bySkill[skill]; x != nil && x.files != nil && x.has(file) {
			r := Resolved{Entry: x.files, MIME: library.Type(file)}
			var err error
			r.Args, err = json.Marshal(map[string]string{"file": file})
			return r, err
		}
	}
	return Resolved{}, &sdk.Error{Kind: sdk.NotFound, What: "no resource " + quote(address)}
}

func (x *stock) has(file string) bool {
	st, err := fs.Stat(x.skill.Home.Files, file)
	return err == nil && st.Mode().IsRegular()
}

// read is the reading of a resource.
func (o *Offer) read(address string, values map[string]string) (Resolved, error) {
	r := Resolved{Entry: o.Entry, MIME: o.MIME}
	given := map[string]any{}
	for name, v := range values {
		given[name] = v
	}
	given["uri"] = address
	var err error
	r.Args, err = o.Entry.only(given)
	return r, err
}

func (s *snapshot) resolvePrompt(call *sdk.Call) (Resolved, error) {
	o, ok := s.prompts[call.Tool]
	if !ok {
		return Resolved{}, s.noPrompt(call.Tool)
	}
	r := Resolved{Entry: o.Entry, given: call.Args}
	if len(r.given) == 0 {
		r.given = json.RawMessage("{}")
	}
	var given map[string]any
	if json.Unmarshal(r.given, &given) != nil { // Check says what is wrong
		given = nil
	}
	var err error
	r.Args, err = o.Entry.only(given)
	return r, err
}

// noPrompt does not say which prompts there are: not every caller sees all.
func (s *snapshot) noPrompt(name string) error {
	return &sdk.Error{Kind: sdk.NotFound, What: "no prompt " + quote(name)}
}

// only returns, as JSON, those of the values that e's input schema names. A
// schema that names none and is not closed takes them all.
func (e *Entry) only(values map[string]any) (json.RawMessage, error) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(e.Tool.Input, &s); err != nil {
		return nil, err
	}
	if len(s.Properties) > 0 || string(s.Additional) == "false" {
		for name := range values {
			if _, ok := s.Properties[name]; !ok {
				delete(values, name)
			}
		}
	}
	if len(values) == 0 {
		return json.RawMessage("{}"), nil
	}
	return json.Marshal(values)
}

// request is what a completion is asked for.
type request struct {
	Prompt   string `json:"prompt"`
	URI      string `json:"uri"`
	Argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
	Context map[string]any `json:"context"`
}

// resolveCompletion finds who suggests values for an argument of a prompt, or
// for a variable of a template. To a caller who may not call them, there is no
// such prompt and no such template.
func (s *snapshot) resolveCompletion(call *sdk.Call, v Viewer) (Resolved, error) {
	var q request
	if err := json.Unmarshal(call.Args, &q); err != nil {
		return Resolved{}, &sdk.Error{Kind: sdk.Invalid, What: "completion", Err: err, Hint: `want {"prompt" or "uri": …, "argument": {"name", "value"}}`}
	}
	if (q.Prompt == "") == (q.URI == "") || q.Argument.Name == "" {
		return Resolved{}, &sdk.Error{Kind: sdk.Invalid, What: "completion", Hint: "name either a prompt or a resource, and the argument"}
	}
	o, err := s.completed(&q, v)
	if err != nil {
		return Resolved{}, err
	}
	known, ok := o.suggest[q.Argument.Name]
	if !ok && o.Kind != Resources {
		return Resolved{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s has no argument %s", quote(o.Key), quote(q.Argument.Name))}
	}
	if ok && known.entry != nil && v.may(known.entry) {
		args := map[string]any{"argument": q.Argument.Name, "value": q.Argument.Value, "context": q.Context}
		if q.Context == nil {
			delete(args, "context")
		}
		r := Resolved{Entry: known.entry}
		r.Args, err = known.entry.only(args)
		return r, err
	}
	r := Resolved{Entry: o.Entry, Args: json.RawMessage("{}"), Answer: &sdk.Result{}}
	r.Answer.Structured, err = known.answer(q.Argument.Value)
	return r, err
}

// completed finds the offer that a completion is about.
func (s *snapshot) completed(q *request, v Viewer) (*Offer, error) {
	if q.Prompt != "" {
		if o := s.prompts[q.Prompt]; o != nil && v.may(o.Entry) {
			return o, nil
		}
		return nil, s.noPrompt(q.Prompt)
	}
	all := slices.Concat(s.tries, s.exact[q.URI])
	i := slices.IndexFunc(all, func(o *Offer) bool { return o.Key == q.URI && v.may(o.Entry) })
	if i < 0 {
		return nil, &sdk.Error{Kind: sdk.NotFound, What: "no resource " + quote(q.URI)}
	}
	return all[i], nil
}
