package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
)

// ofRight starts the names of tables that are about a right, and so about
// every caller that has it. No caller's own name does.
const ofRight = "right:"

// callerRules are one [callers.NAME].
type callerRules struct {
	name    string // as it is written
	refused bool
	grants  bool // it says that something may be called
	pos     capability.Pos
	skills  lists
	tools   lists
	layers  []capability.Layer // none or one
	stack   []capability.Layer // defaults + layers
}

// a standing is all that the operator says about the caller of one request.
type standing struct {
	own    *callerRules   // its own table, or that of "*" if it has none of any kind
	rights []*callerRules // those of its rights, sorted by their names
	named  bool           // own is its own
	remote bool
}

// Rights lists the rights that some rule is about, sorted.
func (p *Policy) Rights() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.rights))
}

// Remote reports whether a caller is not a user of this machine.
func Remote(caller string) bool { return !local(caller) }

// local reports whether a caller is a user of this machine. Whoever authenticated
// others gave them other names.
func local(caller string) bool { return strings.HasPrefix(caller, "local:") }

func (p *Policy) standing(r *Request) standing {
	c := standing{remote: !local(r.Caller)}
	if r.Caller != "*" {
		c.own = p.callers[r.Caller]
		c.named = c.own != nil
	}
	if len(p.rights) > 0 && r.Rights != "" {
		for right := range strings.SplitSeq(r.Rights, " ") {
			if t := p.rights[right]; t != nil {
				c.rights = append(c.rights, t)
			}
		}
	}
	if !c.named && len(c.rights) == 0 {
		c.own = p.callers["*"]
	}
	return c
}

// tables yields every table of c.
func (c *standing) tables(yield func(*callerRules) bool) {
	if c.own != nil && !yield(c.own) {
		return
	}
	for _, t := range c.rights {
		if !yield(t) {
			return
		}
	}
}

// layers are those of all tables: what one takes away, another does not give back.
func (c *standing) layers() []capability.Layer {
	var all []capability.Layer
	for t := range c.tables {
		all = append(all, t.layers...)
	}
	return all
}

// whom names who c is about, in a refusal of r.
func (c *callerRules) whom(r *Request) string {
	if right, ok := strings.CutPrefix(c.name, ofRight); ok {
		return fmt.Sprintf("right %q", right)
	}
	return fmt.Sprintf("caller %q", r.Caller)
}

// denied returns the refusal of what c denies, if it does.
func (c *callerRules) denied(r *Request) Decision {
	if c.refused {
		return Decision{Reason: c.whom(r) + " may call nothing", Pos: c.pos, Allow: table("callers", c.name) + "\nallow = true"}
	}
	if pos, rest, ok := c.skills.deny.refuses(r); ok {
		return Decision{Reason: fmt.Sprintf("skill %q is denied to %s", r.Skill, c.whom(r)), Pos: pos, Allow: rest}
	}
	if pos, rest, ok := c.tools.deny.refuses(r); ok {
		return Decision{Reason: fmt.Sprintf("tool %q is denied to %s", r.Skill+"."+r.Tool, c.whom(r)), Pos: pos, Allow: rest}
	}
	return Decision{}
}

// unlisted returns the refusal of what is not on a list of c's that says what
// is allowed, if c has one.
func (c *callerRules) unlisted(r *Request) Decision {
	if l := &c.skills.allow; l.lacks(r) {
		return Decision{Reason: fmt.Sprintf("skill %q is not on the list of %s", r.Skill, c.whom(r)), Pos: l.pos, Allow: l.plus(r.Skill)}
	}
	if l := &c.tools.allow; l.lacks(r) {
		tool := r.Skill + "." + r.Tool
		return Decision{Reason: fmt.Sprintf("tool %q is not on the list of %s", tool, c.whom(r)), Pos: l.pos, Allow: l.plus(tool)}
	}
	return Decision{}
}

// ungranted returns the refusal of what no rule gives to a remote caller, who
// gets nothing that is not given: its own table does, or that of one of its rights.
func (c *standing) ungranted(p *Policy, r *Request) Decision {
	if !c.remote || c.named && c.own.grants { // its lists have been looked at
		return Decision{}
	}
	var near Decision // the refusal that is nearest to being none
	for _, t := range c.rights {
		if !t.grants {
			continue
		}
		d := t.unlisted(r)
		if d.Reason == "" {
			return Decision{}
		}
		if near.Reason == "" {
			near = d
		}
	}
	if near.Reason != "" {
		return near
	}
	tool := r.Skill + "." + r.Tool
	d := Decision{Reason: fmt.Sprintf("caller %q is remote, and no rule lets it call tool %q", r.Caller, tool), Pos: capability.Pos{File: p.file}}
	switch {
	case len(c.rights) > 0:
		d.Allow = table("callers", c.rights[0].name, "tools") + "\nallow = " + array([]string{tool})
	case isCaller(r.Caller):
		d.Allow = table("callers", r.Caller, "tools") + "\nallow = " + array([]string{tool})
	}
	return d
}

// isCaller reports whether s can be the name of one caller.
func isCaller(s string) bool {
	return s != "" && !strings.ContainsAny(s, "*\x00\n") && !strings.HasPrefix(s, ofRight)
}

// isRight reports whether s can be the name of a right: a scope of OAuth, but
// for "*", which would look like more than it means.
func isRight(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\*`, r) })
}

func (r *reader) callers() error {
	for _, name := range sortedKeys(r.in.Callers) {
		in, path := r.in.Callers[name], []string{"callers", name}
		right, about := strings.CutPrefix(name, ofRight)
		if about && !isRight(right) {
			return r.invalid(path, fmt.Sprintf("bad right %q", right), `write a scope of OAuth, such as "right:tools.read"`)
		}
		if !about && name != "*" && !isCaller(name) {
			return r.invalid(path, fmt.Sprintf("bad caller %q", name), `write the whole name, such as "local:bob", or "*" for callers without a table of their own`)
		}
		c := &callerRules{name: name, refused: in.Allow != nil && !*in.Allow, pos: r.doc.Pos(at(path, "allow")...),
			grants: in.Allow != nil && *in.Allow || in.Allow == nil && (in.Skills.Allow != nil || in.Tools.Allow != nil)}
		var err error
		if c.layers, err = r.layer(path, in.Capabilities, in.Deny, nil); err != nil {
			return err
		}
		for _, l := range []struct {
			to    *list
			table string
			key   string
			in    []string
		}{{&c.skills.allow, "skills", "allow", in.Skills.Allow}, {&c.skills.deny, "skills", "deny", in.Skills.Deny},
			{&c.tools.allow, "tools", "allow", in.Tools.Allow}, {&c.tools.deny, "tools", "deny", in.Tools.Deny}} {
			if *l.to, err = r.list(at(path, l.table), l.key, l.in, l.table == "tools"); err != nil {
				return err
			}
		}
		if about {
			r.p.rights[right] = c
		} else {
			r.p.callers[name] = c
		}
	}
	return nil
}
