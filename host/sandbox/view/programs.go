package view

import (
	"io/fs"
	"path"
	"slices"

	"github.com/skillhost/skill/host/capability"
)

// anyProgram is the entry of an exec list for every program: whatever may be
// read may be executed.
const anyProgram = "*"

// searched are the directories in which a bare program name is looked up, in
// the order in which a shell in the cage does.
var searched = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// A program is one that a process may run.
type program struct {
	name  string // as the lists spell it
	found string // its path, which may be a link
	real  string
}

var running = capability.Topic{Kind: capability.Exec, Verb: capability.Run}

func run(name string) capability.Access {
	return capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: name}
}

// runnable returns the names of the programs that g grants, and whether it
// grants any. It does not if one is denied: in a directory that it may write
// to, a process gives a program whatever name it likes.
func runnable(g capability.Grant) (names []string, any bool) {
	for _, l := range g.Layers() {
		for _, c := range l.Allow {
			if c.Kind == capability.Exec && c.Pattern != anyProgram && g.Allows(run(c.Pattern)) {
				names = append(names, c.Pattern)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), g.Allows(run(anyProgram))
}

// findPrograms looks for the programs that are granted. One that is denied
// under another name, or may not be read, is none.
func (b *builder) findPrograms() {
	var denied []string
	for _, l := range b.layers {
		for _, c := range l.Deny {
			if c.Kind == capability.Exec && c.Pattern != anyProgram {
				denied = append(denied, b.everywhere(c.Pattern)...)
			}
		}
	}
	for _, name := range b.names {
		found := b.everywhere(name)
		if len(found) == 0 {
			continue
		}
		p := program{name: name, found: found[0]}
		p.real, _ = b.real(p.found)
		if !slices.Contains(denied, p.real) && !b.hidden(p.real) && b.grant.CheckAlias(run(name), p.real) == nil {
			b.programs = append(b.programs, p)
		}
	}
}

// everywhere returns the paths of the program name, which is a bare name or an
// absolute path: where it is found, and the real ones.
func (b *builder) everywhere(name string) (out []string) {
	candidates := []string{name}
	if !path.IsAbs(name) {
		candidates = nil
		for _, dir := range searched {
			candidates = append(candidates, path.Join(dir, name))
		}
	}
	for _, p := range candidates {
		real, ok := b.real(p)
		if !ok {
			continue
		}
		if m, err := b.o.Mode(real); err != nil || !m.IsRegular() || m&fs.FileMode(0o111) == 0 {
			continue
		}
		for _, p := range []string{p, real} {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}
