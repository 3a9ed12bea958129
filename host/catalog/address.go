package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// Resolve finds the entry that call means, and the arguments meant for it.
// "InvokeSkill", "execute", "skill-engine/execute" and "skill.tool" are
// spellings of one address, so that no tool calls another one behind the
// dispatcher's back.
func (c *Catalog) Resolve(call *sdk.Call) (Resolved, error) {
	s := c.now.Load()
	switch call.Tool { // first, so that no skill can take these names
	case InvokeSkill, "execute", "skill-engine/execute", "skill-engine.execute":
		return s.resolveAddress(call.Args)
	}
	e, ok := s.names[call.Tool]
	if name, cut := strings.CutPrefix(call.Tool, "skill-engine/"); !ok && cut {
		e, ok = s.names[name]
	}
	if !ok {
		return Resolved{}, s.noTool(call.Tool)
	}
	if e.Name == InvokeSkill && e.Skill.Home.Builtin { // by another spelling
		return s.resolveAddress(call.Args)
	}
	return Resolved{Entry: e, Args: call.Args}, nil
}

func (s *snapshot) resolveAddress(args json.RawMessage) (Resolved, error) {
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
	entries, ok := s.bySkill[a.Skill]
	if !ok {
		return r, s.noSkill(a.Skill)
	}
	if a.Origin != "" && a.Origin != entries[0].Skill.Home.Digest {
		return r, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("skill %q with origin %s", a.Skill, quote(a.Origin)), Hint: "its digest is " + entries[0].Skill.Home.Digest}
	}
	e, err := pick(entries, a.Tool)
	if err != nil {
		return r, err
	}
	r.Entry = e
	r.Args, err = a.args(e)
	return r, err
}

// pick chooses the tool of a skill. Without a name it is the instructions if
// the skill has any, else its only tool.
func pick(entries []*Entry, tool string) (*Entry, error) {
	var names []string
	for _, e := range entries {
		if e.Hidden {
			if tool == "" {
				return e, nil
			}
			continue
		}
		if tool == e.Tool.Name || tool == e.Name {
			return e, nil
		}
		names = append(names, e.Tool.Name)
	}
	skill := entries[0].Skill.Name
	switch {
	case tool == "" && len(names) == 1:
		return entries[0], nil
	case tool == "":
		return nil, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("skill %q has several tools", skill), Hint: "give \"tool\": one of " + strings.Join(names, ", ")}
	}
	return nil, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("skill %q has no tool %s", skill, quote(tool)), Hint: "its tools: " + strings.Join(names, ", ")}
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
		if s.Name == e.Skill.Name || s.Home.Builtin && !s.HasInstructions() || !visible(s) {
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
