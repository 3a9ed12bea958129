package view

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

var (
	reading = capability.Topic{Kind: capability.Filesystem, Verb: capability.Read}
	writing = capability.Topic{Kind: capability.Filesystem, Verb: capability.Write}
)

// rulesets returns one rule set for each layer that speaks, and one of the
// host's own: the intersection of them all, without what is denied.
func (b *builder) rulesets() ([]Ruleset, error) {
	base := b.baseRules()
	var out []Ruleset
	for i := range b.layers {
		s := b.layerRules(&b.layers[i])
		if s.Handles == 0 {
			continue
		}
		s.Rules = pack(append(s.Rules, base...), s.Handles)
		if !slices.ContainsFunc(out, func(o Ruleset) bool { return o.Handles == s.Handles && slices.Equal(o.Rules, s.Rules) }) {
			out = append(out, s)
		}
	}
	host, err := b.hostRules(base)
	if err != nil {
		return nil, err
	}
	if out = append(out, host); len(out) > MaxRulesets {
		return nil, &sdk.Error{Kind: sdk.Limit, Op: "view.Of", What: fmt.Sprintf("%d lists of files and programs hold for this process, and the kernel has room for %d", len(out), MaxRulesets),
			Hint: "invoke the tool less deep"}
	}
	return out, nil
}

// layerRules is what l alone says. Writing implies reading, so a layer that
// speaks only of reading lets no writes pass where nothing is to be read.
func (b *builder) layerRules(l *capability.Layer) Ruleset {
	s := Ruleset{Name: l.Name}
	reads, writes := l.SpeaksOf(reading), l.SpeaksOf(writing)
	if reads {
		s.Handles |= Read | Write
	}
	if writes {
		s.Handles |= Write
	}
	if l.SpeaksOf(running) {
		s.Handles |= Exec
	}
	for _, c := range l.Allow {
		if c.Kind == capability.Exec && c.Pattern == anyProgram {
			s.Rules = append(s.Rules, Rule{Path: "/", Rights: Exec})
		}
		if c.Kind != capability.Filesystem || !path.IsAbs(c.Pattern) || b.hidden(c.Pattern) {
			continue // ${tmp} is everybody's
		}
		r := Read
		if c.Verb == capability.Write || !writes {
			r |= Write
		}
		s.Rules = append(s.Rules, Rule{Path: c.Pattern, Rights: r, Maybe: true})
	}
	return s
}

// baseRules are the rules that every rule set has.
func (b *builder) baseRules() []Rule {
	var out []Rule
	for _, e := range baseline() {
		if e.where == private && !b.o.Strict || e.where == shared && b.o.Strict {
			continue
		}
		p := e.path
		real, ok := b.real(p)
		switch {
		case b.hidden(p):
			continue
		case b.o.Strict && own(p):
		case !ok || b.hidden(real):
			continue
		case b.visible[p] == nil || b.visible[p].Source == "": // else it is a file of its own
			p = real
		}
		out = append(out, Rule{Path: p, Rights: e.rights, Maybe: true})
	}
	for _, p := range b.executables() {
		out = append(out, Rule{Path: p, Rights: Read | Exec, Maybe: true})
	}
	add := func(p string, r Rights) {
		if p != "" && r != 0 {
			out = append(out, Rule{Path: p, Rights: r})
		}
	}
	tmp := b.o.Tmp
	if b.o.Strict && tmp != "" {
		tmp = tmpPath
		for _, name := range standIns {
			if m := b.visible["/etc/"+name]; m != nil && m.Source != "" {
				add(m.Path, Read)
			}
		}
	}
	switch b.tmpKind() {
	case Writable:
		add(tmp, Read|Write)
	case ReadOnly:
		add(tmp, Read)
	}
	switch {
	case b.o.Home == "":
	case b.o.HomeStays:
		add(b.o.HomePath, Read)
	default:
		add(b.o.HomePath, Read|Write)
	}
	if b.o.Sockets != "" {
		add(b.o.Serves, Read|Write|Socket)
	}
	return out
}

// hostRules is what all layers come to. It alone says where sockets are made.
func (b *builder) hostRules(base []Rule) (Ruleset, error) {
	s := Ruleset{Name: "host", Handles: Read | Write | Exec | Socket}
	if b.any {
		s.Rules = append(s.Rules, Rule{Path: "/", Rights: Exec})
	}
	granted := make([]Rule, 0, len(b.roots)+len(base))
	for _, r := range b.roots {
		if !path.IsAbs(r.Path) {
			continue
		}
		rights := Read
		if r.Write {
			rights |= Write
		}
		granted = append(granted, Rule{Path: r.Path, Rights: rights, Maybe: true})
	}
	for _, r := range base {
		if r.Maybe && !b.o.Strict { // the process's own directories are not the layers' to deny
			granted = append(granted, r)
			continue
		}
		s.Rules = append(s.Rules, r)
	}
	for _, r := range granted {
		for _, right := range []Rights{Read | Exec, Write} {
			if err := b.carve(Rule{r.Path, r.Rights & right, r.Maybe}, &s.Rules); err != nil {
				return Ruleset{}, err
			}
		}
	}
	s.Rules = pack(s.Rules, s.Handles)
	return s, nil
}

// carved reports whether the rule sets have to keep a process from d that wants
// a right. In a private root the mounts do that.
func (b *builder) carved(d deny, wanted Rights) bool {
	return !b.o.Strict && d.made && (d.read || wanted&Write != 0)
}

// carve adds r without what is denied beneath it. Rules reach all that is
// beneath their path, so a directory on the way to a denied path has none:
// the names beside it have. Links need none, as they lead to what has or has
// not one of its own.
func (b *builder) carve(r Rule, out *[]Rule) error {
	if r.Rights == 0 {
		return nil
	}
	whole := true
	for _, d := range b.denied {
		if !b.carved(d, r.Rights) {
			continue
		}
		if capability.Beneath(r.Path, d.path) {
			return nil
		}
		whole = whole && !capability.Beneath(d.path, r.Path)
	}
	if whole {
		if *out = append(*out, r); len(*out) > maxRules {
			return &sdk.Error{Kind: sdk.Limit, Op: "view.Of", What: fmt.Sprintf("more than %d rules are needed to keep a process from what is denied beneath %s", maxRules, r.Path),
				Hint: "level strict needs none"}
		}
		return nil
	}
	names, err := b.o.Names(r.Path)
	if err != nil {
		return nil // what cannot be listed cannot be granted in parts
	}
	for _, name := range names {
		p := path.Join(r.Path, name)
		if m, err := b.o.Mode(p); err != nil || m&fs.ModeSymlink != 0 {
			continue
		}
		if err := b.carve(Rule{p, r.Rights, true}, out); err != nil {
			return err
		}
	}
	return nil
}

// pack sorts rules, restricts them to what is handled and makes one of those
// that have the same path.
func pack(rules []Rule, handles Rights) []Rule {
	slices.SortStableFunc(rules, func(x, y Rule) int { return strings.Compare(x.Path, y.Path) })
	var out []Rule
	for _, r := range rules {
		if r.Rights &= handles; r.Rights == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Path == r.Path {
			out[n-1].Rights |= r.Rights
			out[n-1].Maybe = out[n-1].Maybe && r.Maybe
			continue
		}
		out = append(out, r)
	}
	return out
}
