package policy

import (
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
)

// A target is what an entry of a list names. "SKILL.TOOL" has both parts,
// "SKILL.*" and a skill's name any tool, "*" anything, and a tool's name alone
// has no skill.
type target struct{ skill, tool string }

// A list is one key that names skills or tools. The zero list is not written:
// as a list of what is allowed it allows everything.
type list struct {
	table   string // such as "[defaults.tools]"
	key     string // "allow" or "deny"
	pos     capability.Pos
	entries []string
	targets []target
	at      []capability.Pos // of each entry
	index   map[target]int   // the first entry for each target
}

// lists are what one table allows and denies.
type lists struct{ allow, deny list }

// find returns the index of an entry that names the tool of r, or -1. A tool's
// name alone, if it is to allow, means a built-in's: any stranger's skill may
// call its tool "ReadImage". If it is to deny, it is taken for any name that
// clients may call the tool by: "hello_greet" as well as "hello.greet".
func (l *list) find(r *Request, allows bool) int {
	if len(l.index) == 0 {
		return -1
	}
	if !allows {
		for _, separator := range [...]string{"_", "__"} {
			if at, ok := l.index[target{"", r.Skill + separator + r.Tool}]; ok {
				return at
			}
		}
	}
	for i, t := range [...]target{{r.Skill, r.Tool}, {r.Skill, "*"}, {"*", "*"}, {"", r.Tool}} {
		if at, ok := l.index[t]; ok && (i < 3 || !allows || r.Builtin) {
			return at
		}
	}
	return -1
}

// refuses reports whether l denies r: where, and the list without what does.
func (l *list) refuses(r *Request) (pos capability.Pos, allow string, ok bool) {
	i := l.find(r, false)
	if i < 0 {
		return capability.Pos{}, "", false
	}
	var rest []string
	for j, e := range l.entries {
		one := list{index: map[target]int{l.targets[j]: 0}}
		if one.find(r, false) < 0 {
			rest = append(rest, e)
		}
	}
	return l.at[i], l.write(rest), true
}

// lacks reports whether l is written and does not allow r.
func (l *list) lacks(r *Request) bool { return l.index != nil && l.find(r, true) < 0 }

// plus returns how l reads with name added.
func (l *list) plus(name string) string { return l.write(append(slices.Clone(l.entries), name)) }

// write formats l with other entries, as TOML.
func (l *list) write(entries []string) string {
	return l.table + "\n" + l.key + " = " + array(entries)
}

// array formats entries as a TOML array.
func array(entries []string) string {
	quoted := make([]string, len(entries))
	for i, e := range entries {
		quoted[i] = capability.Quote(e)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// table formats the header of the table at path.
func table(path ...string) string {
	keys := make([]string, len(path))
	for i, k := range path {
		keys[i] = capability.QuoteKey(k)
	}
	return "[" + strings.Join(keys, ".") + "]"
}

// words are what an operator has said may be dangerous.
type words []string

// has reports whether w allows word. "exec:*" and "network:*" stand for every
// word of their kind.
func (w words) has(word string) bool {
	kind, _, _ := strings.Cut(word, ":")
	return slices.ContainsFunc(w, func(s string) bool { return s == word || s == kind+":*" })
}

// stack precomputes the layers of every rule, so that decisions share them.
func (p *Policy) stack() {
	for _, s := range p.skills {
		s.stack = append(slices.Clip(p.defaults), s.layers...)
		for _, t := range s.tools {
			t.layers = append(slices.Clip(s.layers), t.layers...)
			t.stack = append(slices.Clip(p.defaults), t.layers...)
		}
	}
	for _, c := range p.callers { // those of rights are stacked as they meet
		c.stack = append(slices.Clip(p.defaults), c.layers...)
	}
}
