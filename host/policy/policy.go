// Package policy decides. It reads the text of policy.toml, the operator's word on
// which skills, tools and callers may do what, and edits it without disturbing
// what a person wrote. It is pure: no clock, no files, no network. Authorize is a
// function of the operator's rules and the request. It does not know what
// manifests say beyond the request, how calls run, or where the values of secrets
// come from.
//
// docs/policy.md documents the file.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A Request asks to run one tool of one skill.
type Request struct {
	Caller  string           // "local:NAME", or what whoever authenticated a remote caller calls it
	Rights  string           // of a remote caller, with spaces between them
	Skill   string           // its name
	Digest  string           // its content
	Builtin bool             // granted as shipped
	Tool    string           // the tool's name inside the skill
	Needs   capability.Layer // what the manifest asks for: dangerous entries need the operator's word
}

// A Decision says yes or no, and why. If Allowed, Layers are the operator's
// layers that apply: defaults, caller, skill and tool, in that order, each
// named "operator". They are not bound to a workspace yet, and not to be
// changed: decisions share them.
type Decision struct {
	Allowed bool
	Layers  []capability.Layer
	Reason  string         // why not; "" if Allowed
	Pos     capability.Pos // the rule that decided
	Allow   string         // the TOML that would allow it; may have several lines

	// If Allowed, Sandbox is the least confinement that the operator accepts
	// for a native skill, whatever its manifest requires: "strict", "landlock"
	// or "none"; "" leaves it to the manifest. SandboxPos is where that is written.
	Sandbox    string
	SandboxPos capability.Pos
}

// Err returns d as an *sdk.Error of kind Denied, or nil if d allows.
func (d Decision) Err() error {
	if d.Allowed {
		return nil
	}
	hint := d.Reason
	if d.Pos.File != "" {
		hint = d.Pos.String() + ": " + hint
	}
	if table, keys, ok := strings.Cut(d.Allow, "\n"); ok {
		sep := " "
		if strings.Contains(keys, "\n") { // lines that can be pasted
			sep = "\n"
		}
		hint += "; to allow it, write under " + table + ":" + sep + keys
	} else if d.Allow != "" {
		hint += "; to allow it: " + d.Allow
	}
	return &sdk.Error{Kind: sdk.Denied, What: "the operator does not allow this call", Hint: hint,
		Denial: &sdk.Denial{Capability: "call", Layer: "operator", File: d.Pos.File, Line: d.Pos.Line, Allow: d.Allow}}
}

// A Policy is an immutable snapshot of the operator's rules. The zero Policy,
// as the nil one, lets local callers run built-in skills as shipped, and
// refuses all others.
type Policy struct {
	file      string
	text      []byte             // of the file
	defaults  []capability.Layer // none or one
	sandbox   level              // [defaults]
	deny      list               // [defaults.tools]
	skills    map[string]*skillRules
	callers   map[string]*callerRules
	rights    map[string]*callerRules // the tables that are about a right
	secrets   map[string]SecretBinding
	dangerous words
}

// A level is a confinement, and where it is written. The zero level is not.
type level struct {
	name string
	pos  capability.Pos
}

// skillRules are one [skills.NAME].
type skillRules struct {
	said      bool // allow is written
	allow     bool
	allowPos  capability.Pos
	digest    string
	digestPos capability.Pos
	pos       capability.Pos
	tools     map[string]*toolRules
	sandbox   level
	dangerous words
	layers    []capability.Layer // none or one
	stack     []capability.Layer // defaults + layers
}

// toolRules are one [skills.NAME.tools.TOOL].
type toolRules struct {
	refused bool
	pos     capability.Pos
	layers  []capability.Layer // the skill's + none or one
	stack   []capability.Layer // defaults + layers
}

// A SecretBinding is the operator's word on one secret: where its value is,
// and the most hosts that it may be sent to.
type SecretBinding struct {
	Name   string
	Source SecretSource
	Hosts  capability.Set
	Header string // "" leaves it to the manifest, unless Query says it
	Query  string // or the parameter of the URL that carries it
	Format string // "" leaves it to the manifest
	Pos    capability.Pos
}

// A SecretSource is where the value of a secret is: in the environment variable or
// the file Name, or in the host's own store.
type SecretSource struct {
	Kind string // "env", "file" or "store"
	Name string // "" for the store
}

// Secret returns the binding of the secret name, if the operator made one.
func (p *Policy) Secret(name string) (SecretBinding, bool) {
	if p == nil {
		return SecretBinding{}, false
	}
	b, ok := p.secrets[name]
	return b, ok
}

// nothing is the Policy of an operator who has said nothing.
var nothing Policy

// Authorize decides on r. What is denied is denied whatever else is allowed;
// then a caller's lists must allow, then some rule must give the call to a
// remote caller, then a skill that is not built in must be allowed with its
// digest, then what is dangerous must be allowed by name.
func (p *Policy) Authorize(r Request) Decision {
	if p == nil {
		p = &nothing
	}
	s, t := p.rules(&r)
	c := p.standing(&r)
	if d := p.denied(&r, s, t, &c); d.Reason != "" {
		return d
	}
	if c.own != nil {
		if d := c.own.unlisted(&r); d.Reason != "" {
			return d
		}
	}
	if d := c.ungranted(p, &r); d.Reason != "" {
		return d
	}
	if d := p.unapproved(&r, s); d.Reason != "" {
		return d
	}
	if d := p.unsafe(&r, s); d.Reason != "" {
		return d
	}
	level := p.sandbox
	if s != nil && s.sandbox.name != "" {
		level = s.sandbox
	}
	return Decision{Allowed: true, Layers: p.layers(s, t, &c), Sandbox: level.name, SandboxPos: level.pos}
}

// Layers returns the operator's layers that a call of r has if it is allowed,
// whether or not it is.
func (p *Policy) Layers(r Request) []capability.Layer {
	if p == nil {
		return nil
	}
	s, t := p.rules(&r)
	c := p.standing(&r)
	return p.layers(s, t, &c)
}

// rules returns what is said about the skill and the tool of r.
func (p *Policy) rules(r *Request) (*skillRules, *toolRules) {
	s := p.skills[r.Skill]
	if s == nil {
		return nil, nil
	}
	return s, s.tools[r.Tool]
}

// layers returns the operator's layers that apply. Nothing is made anew unless
// both the caller and the skill have some, or the caller's rights do.
func (p *Policy) layers(s *skillRules, t *toolRules, c *standing) []capability.Layer {
	own, stack := []capability.Layer(nil), p.defaults
	switch {
	case t != nil:
		own, stack = t.layers, t.stack
	case s != nil:
		own, stack = s.layers, s.stack
	}
	if len(c.rights) > 0 {
		if all := c.layers(); len(all) > 0 {
			return slices.Concat(p.defaults, all, own)
		}
		return stack
	}
	if c.own == nil || len(c.own.layers) == 0 {
		return stack
	}
	if len(own) == 0 {
		return c.own.stack
	}
	return slices.Concat(c.own.stack, own)
}

// denied returns the refusal of what some rule names, if any.
func (p *Policy) denied(r *Request, s *skillRules, t *toolRules, c *standing) Decision {
	if pos, rest, ok := p.deny.refuses(r); ok {
		return Decision{Reason: fmt.Sprintf("tool %q is denied to everybody", r.Skill+"."+r.Tool), Pos: pos, Allow: rest}
	}
	if s != nil && s.said && !s.allow {
		return Decision{Reason: fmt.Sprintf("skill %q is forbidden", r.Skill), Pos: s.allowPos, Allow: approval(r, s)}
	}
	if t != nil && t.refused {
		return Decision{Reason: fmt.Sprintf("tool %q of skill %q is forbidden", r.Tool, r.Skill), Pos: t.pos,
			Allow: table("skills", r.Skill, "tools", r.Tool) + "\nallow = true"}
	}
	for rules := range c.tables {
		if d := rules.denied(r); d.Reason != "" {
			return d
		}
	}
	return Decision{}
}

// AnyDigest as the digest of an allowed skill lets its content change without
// asking again. Whoever can write the skill's files then decides what runs.
const AnyDigest = "*"

// unapproved returns the refusal of a skill that nobody allowed as it is.
func (p *Policy) unapproved(r *Request, s *skillRules) Decision {
	switch {
	case r.Builtin && (s == nil || s.digest == ""), s != nil && s.digest == AnyDigest && (s.allow || r.Builtin):
		return Decision{}
	case s != nil && s.digest != "" && s.digest == r.Digest && (s.allow || r.Builtin):
		return Decision{}
	}
	d := Decision{Pos: capability.Pos{File: p.file}, Allow: approval(r, s)}
	command := "skill allow " + r.Skill
	switch {
	case s == nil:
		d.Reason = fmt.Sprintf("skill %q has not been allowed; see what it asks for with: %s", r.Skill, command)
	case !s.allow && !r.Builtin:
		d.Reason, d.Pos = fmt.Sprintf("skill %q has rules but no \"allow = true\"; see what it asks for with: %s", r.Skill, command), s.pos
	case s.digest == "":
		d.Reason, d.Pos = fmt.Sprintf("skill %q is allowed without a digest; see what it asks for with: %s", r.Skill, command), s.allowPos
	default:
		d.Reason, d.Pos = fmt.Sprintf("skill %q has changed since it was allowed; see what it asks for now with: %s", r.Skill, command), s.digestPos
	}
	return d
}

// approval returns the TOML that allows the skill of r as it is.
func approval(r *Request, s *skillRules) string {
	out := table("skills", r.Skill) + "\nallow = true"
	if !r.Builtin || s != nil && s.digest != "" {
		out += "\ndigest = " + capability.Quote(r.Digest)
	}
	return out
}

// unsafe returns the refusal of a skill that asks for something as good as
// everything, unless the operator has allowed that by name. Built-ins do not
// need it: their manifests are a part of the host.
func (p *Policy) unsafe(r *Request, s *skillRules) Decision {
	if r.Builtin {
		return Decision{}
	}
	for i := range r.Needs.Allow {
		word := r.Needs.Allow[i].Danger()
		if word == "" || p.dangerous.has(word) || s != nil && s.dangerous.has(word) {
			continue
		}
		pos := r.Needs.Allow[i].Pos
		return Decision{Reason: fmt.Sprintf("skill %q asks for the dangerous %q", r.Skill, word), Pos: pos,
			Allow: table("skills", r.Skill) + "\ndangerous = [" + capability.Quote(word) + "]"}
	}
	return Decision{}
}
