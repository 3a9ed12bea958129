package capability

import (
	"slices"
	"strings"
)

// A Root is a path below which a Grant permits something.
type Root struct {
	Path  string // real, or beneath "${tmp}"
	Write bool   // else only reading
}

// Roots returns the smallest list of paths such that everything granted is at
// or beneath a Root, and everything at or beneath a Root is granted apart from
// what Holes names: the exact intersection of the layers' filesystem lists,
// sorted by path. It is computed from the layers alone and reported to nobody.
func (g Grant) Roots() []Root {
	var roots []Root
	for i := range g.layers {
		for j := range g.layers[i].Allow {
			c := &g.layers[i].Allow[j]
			if c.Kind != Filesystem {
				continue
			}
			// Every list is a union of subtrees, so the intersection of lists
			// is the union of those of their subtrees that all lists cover.
			if g.permits(&Access{Kind: Filesystem, Verb: Read, Target: c.Pattern}) {
				write := g.permits(&Access{Kind: Filesystem, Verb: Write, Target: c.Pattern})
				roots = append(roots, Root{Path: c.Pattern, Write: write})
			}
		}
	}
	slices.SortFunc(roots, func(a, b Root) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 || a.Write == b.Write {
			return c
		} else if a.Write {
			return -1
		}
		return 1
	})
	var out []Root // an ancestor sorts before what is beneath it
	for _, r := range roots {
		if !slices.ContainsFunc(out, func(up Root) bool { return Beneath(r.Path, up.Path) && (up.Write || !r.Write) }) {
			out = append(out, r)
		}
	}
	return out
}

// A Hole is a path at and below which a Grant denies what a Root above it
// permits. A runtime that cannot keep a guest out of the holes of its roots,
// as Landlock cannot, must not run it.
type Hole struct {
	Path string
	Read bool // reading is denied too, else only writing
}

// Holes returns the denied paths beneath the Roots, sorted by path.
func (g Grant) Holes() []Hole {
	roots := g.Roots()
	var holes []Hole
	for i := range g.layers {
		for j := range g.layers[i].Deny {
			d := &g.layers[i].Deny[j]
			if d.Kind == Filesystem && slices.ContainsFunc(roots, func(r Root) bool {
				return beneathFold(d.Pattern, r.Path) && (r.Write || d.Verb == Read)
			}) {
				holes = append(holes, Hole{Path: d.Pattern, Read: d.Verb == Read})
			}
		}
	}
	slices.SortFunc(holes, func(a, b Hole) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 || a.Read == b.Read {
			return c
		} else if a.Read {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(holes, func(a, b Hole) bool { return a.Path == b.Path })
}
