package session

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
)

// unambiguous refuses what two readers could read differently, such as a kind
// that is given twice.
var unambiguous = func() *schema.Schema {
	s, err := schema.Compile(nil)
	if err != nil { // a constant: cannot happen
		panic(err)
	}
	return s
}()

// writing is the member for a layer that speaks of writing files alone, and
// leaves reading to the other layers.
const writing = "filesystem.write"

// builtins is the member in which a pushed layer says what it says instead to
// built-in skills.
const builtins = "builtin"

const narrowHint = `want for example {"filesystem": ["read:/data"], "network": []}`

// Narrowing reads the layer that a caller lays under its own call: an object
// from kinds to lists of entries, as in the manifest's [capabilities], or from
// "filesystem.write" to a list of entries for writing. An error has kind Invalid.
func Narrowing(raw json.RawMessage) (capability.Layer, error) {
	l := capability.Layer{Name: "call", Pos: capability.Pos{File: "the call's own narrowing"}}
	if err := unambiguous.Check(raw); err != nil {
		return l, err
	}
	var said lists
	if err := json.Unmarshal(raw, &said); err != nil {
		return l, &sdk.Error{Kind: sdk.Invalid, What: "narrowing", Err: err, Hint: narrowHint}
	}
	return l, said.onto(&l)
}

// lists is what a layer says, by kind or writing. In what is said to a built-in
// skill alone, nil says nothing.
type lists map[string][]string

// kindOf is the kind of a member of lists.
func kindOf(member string) capability.Kind {
	kind, _, _ := strings.Cut(member, ".")
	return capability.Kind(kind)
}

// onto adds what s says to the layer l.
func (s lists) onto(l *capability.Layer) error {
	left := len(s)
	_, files := s[string(capability.Filesystem)]
	if _, write := s[writing]; files && write {
		return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("narrowing: both %q and %q", capability.Filesystem, writing), Hint: "one of them says all"}
	}
	add := func(kind capability.Kind, verbs []capability.Verb, entries []string) error {
		left--
		for _, v := range verbs {
			l.Speaks = append(l.Speaks, capability.Topic{Kind: kind, Verb: v})
		}
		for _, entry := range entries {
			c, err := capability.Parse(kind, entry, l.Pos)
			if err != nil {
				return err
			}
			if len(verbs) == 1 && c.Verb != verbs[0] {
				return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("narrowing: %q in a list for writing", entry), Hint: `want "write:PATH"`}
			}
			l.Allow = append(l.Allow, c)
		}
		return nil
	}
	for _, kind := range capability.Kinds { // in this order, so that two readings are the same
		if entries, ok := s[string(kind)]; ok {
			if err := add(kind, capability.Verbs(kind), entries); err != nil {
				return err
			}
		}
	}
	if entries, ok := s[writing]; ok {
		if err := add(capability.Filesystem, []capability.Verb{capability.Write}, entries); err != nil {
			return err
		}
	}
	if left > 0 {
		return s.unknown()
	}
	return nil
}

// unknown is the error of a member that is none.
func (s lists) unknown() error {
	for member := range s {
		kind := kindOf(member)
		if member != writing && (capability.Verbs(kind) == nil || string(kind) != member) {
			return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("narrowing: unknown kind %.64q", member), Hint: narrowHint}
		}
	}
	return &sdk.Error{Kind: sdk.Internal, What: "narrowing"} // onto has counted wrong
}

// replaced returns s with what more says of a kind in the place of all that s
// says of it. nil there says nothing of the kind.
func (s lists) replaced(more lists) lists {
	out := lists{}
	for member, entries := range s {
		out[member] = entries
	}
	for member := range more {
		for had := range s {
			if kindOf(had) == kindOf(member) {
				delete(out, had)
			}
		}
	}
	for member, entries := range more {
		if entries != nil {
			out[member] = entries
		}
	}
	return out
}

// Bounds of a pushed layer.
const (
	maxLayer = 16 << 10 // bytes as it is written
	maxPaths = 64       // entries of the file system, which are looked at in every call
)

// A script is what a pushed layer says: to all skills, and to the built-in ones
// that it names.
type script struct {
	all     capability.Layer
	builtin map[string]capability.Layer
}

// readScript reads a pushed layer. like is the layer without its lists.
func readScript(raw json.RawMessage, like capability.Layer) (script, error) {
	s := script{all: like, builtin: map[string]capability.Layer{}}
	if len(raw) > maxLayer {
		return s, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("a layer of %d bytes", len(raw)), Hint: fmt.Sprintf("at most %d", maxLayer)}
	}
	if err := unambiguous.Check(raw); err != nil {
		return s, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return s, &sdk.Error{Kind: sdk.Invalid, What: "layer", Err: err, Hint: narrowHint}
	}
	own := map[string]lists{}
	if text, ok := members[builtins]; ok {
		if err := json.Unmarshal(text, &own); err != nil {
			return s, &sdk.Error{Kind: sdk.Invalid, What: "layer: " + builtins, Err: err, Hint: `want for example {"websearch": {"network": null}}`}
		}
		delete(members, builtins)
	}
	said := lists{}
	for member, text := range members {
		entries := []string{}
		if err := json.Unmarshal(text, &entries); err != nil {
			return s, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("layer: %.64q", member), Err: err, Hint: narrowHint}
		}
		said[member] = entries
	}
	if err := said.onto(&s.all); err != nil {
		return s, err
	}
	paths := count(s.all)
	for name, more := range own {
		l := like
		if err := more.check(); err != nil {
			return s, err
		}
		if err := said.replaced(more).onto(&l); err != nil {
			return s, err
		}
		s.builtin[name] = l
		paths += count(l)
	}
	if paths > maxPaths {
		return s, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("a layer with %d paths", paths), Hint: fmt.Sprintf("at most %d, those for built-in skills among them", maxPaths)}
	}
	return s, nil
}

// check refuses members that are none, also those that say nothing.
func (s lists) check() error {
	for member := range s {
		if member != writing && capability.Verbs(capability.Kind(member)) == nil {
			return s.unknown()
		}
	}
	return nil
}

// count is how many entries of l are paths.
func count(l capability.Layer) (n int) {
	for i := range l.Allow {
		if l.Allow[i].Kind == capability.Filesystem {
			n++
		}
	}
	return n
}
