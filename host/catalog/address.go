package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// InvokeSkill is the built-in tool that names another one in its arguments.
// "execute" is the same address in the words of other hosts: accepted, but not
// listed.
const InvokeSkill = "InvokeSkill"

// An address is a call whose arguments name the tool that is really meant.
type address struct {
	Skill     string          `json:"skill_name"`
	Tool      string          `json:"tool"`
	ToolName  string          `json:"tool_name"`
	Arguments string          `json:"arguments"`
	Params    json.RawMessage `json:"parameters"`
	Origin    string          `json:"origin"`
}

// resolveTool finds the tool that call means. "InvokeSkill", "execute",
// "skill-engine/execute" and "skill.tool" are spellings of one address, so that
// no tool calls another one behind the dispatcher's back.
func (s *snapshot) resolveTool(call *sdk.Call, v Viewer) (Resolved, error) {
	switch call.Tool { // first, so that no skill can take these names
	case InvokeSkill, "execute", "skill-engine/execute", "skill-engine.execute":
		return s.resolveAddress(call.Args, v)
	}
	e, ok := s.names[call.Tool]
	if name, cut := strings.CutPrefix(call.Tool, "skill-engine/"); !ok && cut {
		e, ok = s.names[name]
	}
	if !ok {
		return Resolved{}, s.noTool(call.Tool)
	}
	if e.Name == InvokeSkill && e.Skill.Home.Builtin { // by another spelling
		return s.resolveAddress(call.Args, v)
	}
	switch by := v.Skill; {
	case !e.Tool.Hidden:
	case by == nil: // a client
		return Resolved{}, s.noTool(call.Tool)
	case by.Name != e.Skill.Name || by.Home.Digest != e.Skill.Home.Digest:
		return Resolved{}, &sdk.Error{Kind: sdk.Denied, What: "tool " + quote(call.Tool) + " serves its own skill only"}
	}
	return Resolved{Entry: e, Args: call.Args}, nil
}

func (s *snapshot) resolveAddress(args json.RawMessage, v Viewer) (Resolved, error) {
	via := s.names[InvokeSkill]
	if via == nil || !via.Skill.Home.Builtin {
		return Resolved{}, s.noTool(InvokeSkill)
	}
	r := Resolved{Via: via}
	if err := via.Input.Check(args); err != nil {
		return r, err
	}
	var a address
	if err := json.Unmarshal(args, &a); err != nil {
		return r, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	if a.Tool == "" {
		a.Tool = a.ToolName
	}
	if skill, tool, ok := strings.Cut(a.Skill, "."); ok && a.Tool == "" {
		a.Skill, a.Tool = skill, tool
	}
	if e, ok := s.names[a.Skill]; ok && a.Tool == "" { // "ReadImage" as well as "read-image"
		a.Skill, a.Tool = e.Skill.Name, e.Tool.Name
	}
	x, ok := s.bySkill[a.Skill]
	if !ok {
		return r, s.noSkill(a.Skill)
	}
	if a.Origin != "" && a.Origin != x.skill.Home.Digest {
		return r, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("skill %q with origin %s", a.Skill, quote(a.Origin)), Hint: "its digest is " + x.skill.Home.Digest}
	}
	var err error
	if r.Entry, r.fault, err = x.pick(a.Tool, v); err != nil || r.fault != nil {
		return r, err
	}
	r.Args, r.fault = a.args(r.Entry)
	return r, nil
}

// pick chooses the tool of a skill. Without a name it is the instructions if
// the skill has any, else the only tool that v may call. The fault is for who may
// call the entry to read.
func (x *stock) pick(tool string, v Viewer) (e *Entry, fault, err error) {
	var names []string
	var first, any *Entry
	for _, e := range x.entries {
		switch {
		case e.Hidden && tool == "":
			return e, nil, nil
		case e.Hidden || e.Tool.Hidden:
			continue
		case tool == e.Tool.Name || tool == e.Name:
			return e, nil, nil
		}
		any = cmp.Or(any, e)
		if v.may(e) {
			first, names = cmp.Or(first, e), append(names, e.Tool.Name)
		}
	}
	skill := x.skill.Name
	switch {
	case tool == "" && len(names) > 1:
		return first, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("skill %q has several tools", skill), Hint: "give \"tool\": one of " + strings.Join(names, ", ")}, nil
	case tool == "" && any != nil:
		return cmp.Or(first, any), nil, nil
	case any == nil:
		return nil, nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("skill %q has no tools, only resources and prompts", skill)}
	}
	return nil, nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("skill %q has no tool %s", skill, quote(tool)), Hint: "its tools: " + strings.Join(names, ", ")}
}

// args returns the arguments for e: "parameters" if given, else "arguments" if
// it holds a JSON object, else that text as the one thing the tool takes.
func (a *address) args(e *Entry) (json.RawMessage, error) {
	text := bytes.TrimSpace([]byte(a.Arguments))
	object := len(text) > 0 && text[0] == '{' && json.Valid(text)
	if e.Hidden {
		if len(a.Params) > 0 && a.Arguments == "" {
			a.Arguments = string(a.Params)
		}
		return json.Marshal(map[string]string{"arguments": a.Arguments})
	}
	switch {
	case len(a.Params) > 0 && len(text) > 0:
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "both \"parameters\" and \"arguments\" are given", Hint: "\"parameters\" is enough"}
	case len(a.Params) > 0:
		return a.Params, nil
	case object:
		return json.RawMessage(text), nil
	case len(text) > 0:
		return json.Marshal(map[string]string{"input": a.Arguments})
	}
	return json.RawMessage("{}"), nil
}

// Describe returns the JSON of an entry as a client sees it. The description
// of InvokeSkill ends with the skills that visible lets through, because a
// model cannot ask for what it has not heard of.
func (c *Catalog) Describe(e *Entry, visible func(*manifest.Skill) bool) (json.RawMessage, error) {
	if !e.Skill.Home.Builtin || e.Name != InvokeSkill {
		return e.JSON, nil
	}
	var b strings.Builder
	b.WriteString(e.Tool.Description)
	for _, s := range c.Skills() {
		callable := slices.ContainsFunc(c.Of(s.Name), func(e *Entry) bool { return e.Hidden || !e.Tool.Hidden })
		if s.Name == e.Skill.Name || s.Home.Builtin && !s.HasInstructions() || !callable || !visible(s) {
			continue
		}
		if b.Len() == len(e.Tool.Description) {
			b.WriteString("\n\nSkills:")
		}
		fmt.Fprintf(&b, "\n- %s: %s", s.Name, firstLine(s.Description, 300))
	}
	wire := e.Tool.Tool
	wire.Name, wire.Description = e.Name, b.String()
	return json.Marshal(wire)
}

func firstLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
