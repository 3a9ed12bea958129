package capability

import (
	"slices"
	"strings"
	"testing"
)

// The small world of paths: every list that can be written about these five,
// asked about everything in it and one step beyond.
var (
	worldPaths   = []string{"/", "/a", "/a/b", "/ab", "/a/b/c"}
	worldTargets = []string{"/", "/a", "/ab", "/a/b", "/a/bc", "/a/b/c", "/a/b/c/d", "/z"}
	worldVerbs   = []Verb{Read, Write}
)

// bits holds one answer for each target and verb of the world.
type bits uint32

const everything = bits(1<<16 - 1)

func pathBits(yes func(target string, v Verb) bool) bits {
	var b bits
	for i, t := range worldTargets {
		for j, v := range worldVerbs {
			if yes(t, v) {
				b |= 1 << (2*i + j)
			}
		}
	}
	return b
}

// naiveBeneath compares component by component, where the code compares bytes.
func naiveBeneath(target, dir string) bool {
	split := func(p string) []string {
		return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	}
	t, d := split(target), split(dir)
	return len(t) >= len(d) && slices.Equal(t[:len(d)], d)
}

// entry is one written permission, for the reference and for the code.
type entry struct {
	path string
	verb Verb
}

func (e entry) capability(t testing.TB) Capability {
	c, err := Parse(Filesystem, string(e.verb)+":"+e.path, Pos{File: "f", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func allEntries() []entry {
	var out []entry
	for _, p := range worldPaths {
		for _, v := range worldVerbs {
			out = append(out, entry{p, v})
		}
	}
	return out
}

// lists returns every list of at most n entries.
func lists(n int) [][]entry {
	out := [][]entry{nil}
	grow := [][]entry{nil}
	for range n {
		var next [][]entry
		for _, l := range grow {
			for _, e := range allEntries() {
				if len(l) == 0 || less(l[len(l)-1], e) {
					next = append(next, append(slices.Clone(l), e))
				}
			}
		}
		out, grow = append(out, next...), next
	}
	return out
}

func less(a, b entry) bool { return a.path < b.path || a.path == b.path && a.verb < b.verb }

// modes are the ways in which a layer speaks of files.
var modes = []struct {
	name   string
	closed bool
	speaks []Topic
}{
	{"closed", true, nil},
	{"silent", false, nil},
	{"read", false, []Topic{{Filesystem, Read}}},
	{"write", false, []Topic{{Filesystem, Write}}},
	{"both", false, []Topic{{Filesystem, Read}, {Filesystem, Write}}},
}

// A world is a layer with what the reference says about it.
type world struct {
	layer Layer
	allow bits // passes its allow list
	deny  bits // is on its deny list
	list  []entry
}

func worlds(t testing.TB, modeNames string, allows, denies [][]entry) []world {
	var out []world
	for m, mode := range modes {
		if !strings.Contains(modeNames, mode.name) {
			continue
		}
		for _, allow := range allows {
			l := Layer{Name: mode.name, Pos: Pos{File: "f"}, Closed: mode.closed, Speaks: mode.speaks}
			for _, e := range allow {
				l.Allow = append(l.Allow, e.capability(t))
			}
			for _, deny := range denies {
				l := l
				for _, e := range deny {
					l.Deny = append(l.Deny, e.capability(t))
				}
				out = append(out, world{l, naiveAllow(m, allow), naiveDeny(deny), allow})
			}
		}
	}
	return out
}

// expect is the reference for a stack of layers.
func expect(stack ...*world) bits {
	allow, deny, closed := everything, bits(0), false
	for _, w := range stack {
		allow, deny, closed = allow&w.allow, deny|w.deny, closed || w.layer.Closed
	}
	if !closed {
		return 0
	}
	return allow &^ deny
}

func ask(g Grant) bits {
	return pathBits(func(target string, v Verb) bool {
		return g.permits(&Access{Kind: Filesystem, Verb: v, Target: target})
	})
}

const allModes = "closed silent read write both"

func TestPathWorldOneLayer(t *testing.T) {
	// All 3^5 lists (nothing, read or write for each path) and all single denies.
	allows := [][]entry{nil}
	for _, p := range worldPaths {
		for _, l := range slices.Clone(allows) {
			for _, v := range worldVerbs {
				allows = append(allows, append(slices.Clone(l), entry{p, v}))
			}
		}
	}
	if len(allows) != 243 {
		t.Fatalf("%d lists", len(allows))
	}
	for _, w := range worlds(t, allModes, allows, lists(1)) {
		if got, want := ask(NewGrant([]Layer{w.layer}, nil)), expect(&w); got != want {
			t.Fatalf("%s allow %v deny %v: got %016b, want %016b", w.layer.Name, w.layer.Allow, w.layer.Deny, got, want)
		}
	}
}

func TestPathWorldTwoLayers(t *testing.T) {
	first := worlds(t, "closed", lists(2), lists(1))
	second := worlds(t, allModes, lists(2), lists(0))
	for i := range first {
		a := &first[i]
		alone := ask(NewGrant([]Layer{a.layer}, nil))
		for j := range second {
			b := &second[j]
			g := NewGrant([]Layer{a.layer, b.layer}, nil)
			got, want := ask(g), expect(a, b)
			if got != want {
				t.Fatalf("%v + %v: got %016b, want %016b", a.layer, b.layer, got, want)
			}
			if got&^alone != 0 {
				t.Fatalf("%v + %v: the second layer allows more", a.layer, b.layer)
			}
			if b.layer.Name == "silent" && got != alone {
				t.Fatalf("%v + %v: a layer that abstains changes something", a.layer, b.layer)
			}
			if (i+j)%13 == 0 {
				checkRoots(t, g, want)
			}
		}
	}
}

func TestPathWorldThreeLayers(t *testing.T) {
	first := worlds(t, "closed", lists(1), lists(1))
	rest := worlds(t, allModes, lists(1), lists(0))
	for i := range first {
		for j := range rest {
			for k := range rest {
				a, b, c := &first[i], &rest[j], &rest[k]
				g := NewGrant([]Layer{b.layer, a.layer, c.layer}, nil)
				if got, want := ask(g), expect(a, b, c); got != want {
					t.Fatalf("%v + %v + %v: got %016b, want %016b", b.layer, a.layer, c.layer, got, want)
				}
			}
		}
	}
}

// checkRoots compares Roots and Holes with the answers to all questions.
func checkRoots(t *testing.T, g Grant, granted bits) {
	t.Helper()
	roots, holes := g.Roots(), g.Holes()
	got := pathBits(func(target string, v Verb) bool {
		in := slices.ContainsFunc(roots, func(r Root) bool { return naiveBeneath(target, r.Path) && (r.Write || v == Read) })
		out := slices.ContainsFunc(holes, func(h Hole) bool { return naiveBeneath(target, h.Path) && (h.Read || v == Write) })
		return in && !out
	})
	if got != granted {
		t.Fatalf("layers %v: roots %v and holes %v say %016b, the grant says %016b", g.Layers(), roots, holes, got, granted)
	}
	for i, r := range roots {
		if i > 0 && roots[i-1].Path >= r.Path {
			t.Fatalf("roots %v are not sorted or not unique", roots)
		}
	}
	if len(roots) == 0 && len(holes) > 0 {
		t.Fatalf("holes %v without roots", holes)
	}
}

func TestOutsidePaths(t *testing.T) {
	sets := lists(2)
	for _, a := range sets {
		for _, b := range sets {
			var inner, outer Set
			for _, e := range a {
				inner = append(inner, e.capability(t))
			}
			for _, e := range b {
				outer = append(outer, e.capability(t))
			}
			closed := 0 // modes[0]
			want := naiveAllow(closed, a)&^naiveAllow(closed, b) == 0
			if got := len(inner.Outside(outer)) == 0; got != want {
				t.Fatalf("%v within %v: got %v, want %v", a, b, got, want)
			}
		}
	}
}

// naiveAllow is what a layer lets through by its allow list: nothing is asked
// of a topic it is silent about, except that who may not read may not write.
func naiveAllow(mode int, list []entry) bits {
	return pathBits(func(target string, v Verb) bool {
		may := map[Verb]bool{}
		for _, e := range list {
			if naiveBeneath(target, e.path) {
				may[Read] = true
				if e.verb == Write {
					may[Write] = true
				}
			}
		}
		switch modes[mode].name {
		case "silent":
			return true
		case "read":
			return may[Read]
		case "write":
			return v == Read || may[Write]
		}
		return may[v]
	})
}

// naiveDeny is what a deny list refuses: who may not read may not write.
func naiveDeny(list []entry) bits {
	return pathBits(func(target string, v Verb) bool {
		for _, e := range list {
			if naiveBeneath(target, e.path) && (e.verb == Read || v == Write) {
				return true
			}
		}
		return false
	})
}
