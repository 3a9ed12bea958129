package session

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A Stack is what lies over one session at one time. It does not change, but
// for its counts: whoever has the same Stack has the same layers.
type Stack struct {
	l         *Layers
	workspace string
	version   int64 // of the store
	sheets    []*sheet
}

// A sheet is one layer of a Stack, read.
type sheet struct {
	Laid
	script
	refused *atomic.Int64

	mu    sync.Mutex
	bound map[variant]capability.Layer // where all of its paths were still what they were
}

// A variant is what a bound layer depends on.
type variant struct{ builtin, skillDir string }

// rows is what s holds; nil holds nothing.
func (s *Stack) rows() (rows []Laid) {
	if s != nil {
		for _, x := range s.sheets {
			rows = append(rows, x.Laid)
		}
	}
	return rows
}

// stack reads rows; nil if there are none. Counts go on from old.
func (l *Layers) stack(p place, rows []Laid, old *Stack) (*Stack, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	s := &Stack{l: l, workspace: p.workspace}
	for _, r := range rows {
		if old != nil {
			if i := slices.IndexFunc(old.sheets, func(x *sheet) bool { return x.ID == r.ID }); i >= 0 {
				s.sheets = append(s.sheets, old.sheets[i])
				continue
			}
		}
		read, err := readScript(r.Lists, r.layer())
		if err != nil {
			return nil, err
		}
		s.sheets = append(s.sheets, &sheet{Laid: r, script: read, refused: new(atomic.Int64), bound: map[variant]capability.Layer{}})
	}
	return s, nil
}

// A Target is whose call it is that a Stack lies over.
type Target struct {
	Builtin  string // the name of a built-in skill; "" of any other
	SkillDir string // the folder of the skill, or ""
}

// Layers returns the layers of s as they are for t. Each is the same list every
// time, as long as what its paths lead to is.
func (s *Stack) Layers(t Target) ([]capability.Layer, error) {
	if s == nil {
		return nil, nil
	}
	out := make([]capability.Layer, 0, len(s.sheets))
	for _, x := range s.sheets {
		l, err := x.layerFor(s, t)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// errMoved says that a path is not any more what it was when the layer was laid.
var errMoved = errors.New("it leads elsewhere")

func (x *sheet) layerFor(s *Stack, t Target) (capability.Layer, error) {
	written, own := x.builtin[t.Builtin]
	v := variant{skillDir: t.SkillDir}
	if v.builtin = t.Builtin; !own {
		written, v.builtin = x.all, ""
	}
	if !namesSkillDir(written) {
		v.skillDir = ""
	}
	whole := true
	realpath := func(p string) (string, error) {
		real, err := x.still(s.l, p)
		whole = whole && err == nil
		return real, err
	}
	x.mu.Lock()
	kept, ok := x.bound[v]
	x.mu.Unlock()
	if ok {
		for i := range kept.Allow { // bound: real paths
			if c := &kept.Allow[i]; c.Kind == capability.Filesystem && !strings.HasPrefix(c.Pattern, capability.VarTmp) {
				if real, err := s.l.o.Realpath(c.Pattern); err != nil || real != c.Pattern {
					whole = false
				}
			}
		}
		if whole {
			return kept, nil
		}
		whole = true
	}
	vars := s.l.o.Vars
	vars.Workspace, vars.SkillDir = s.workspace, v.skillDir
	l, err := written.Bind(vars, realpath)
	if err != nil || !whole {
		return l, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if had, ok := x.bound[v]; ok {
		return had, nil
	}
	if len(x.bound) < maxVariants {
		x.bound[v] = l
	}
	return l, nil
}

// maxVariants bounds what is kept of one layer.
const maxVariants = 256

// still returns where the path p, as it is written, led to when the layer was
// laid, if that is there and no link on the way to it has been made since: or
// else whoever makes one could turn what is allowed to something else.
func (x *sheet) still(l *Layers, p string) (string, error) {
	pin, ok := x.Pins[p]
	if !ok { // the folder of the called skill: its place is the host's to say
		pin = p
	}
	real, err := l.o.Realpath(pin)
	switch {
	case err != nil:
		return "", err
	case real != pin:
		return "", errMoved
	}
	return real, nil
}

// pins resolves the paths of s, as they are now. One that is not there is left
// out: an error would tell the skill what exists where it may not look.
func (l *Layers) pins(s script, scope sdk.Scope) map[string]string {
	pins := map[string]string{}
	vars := l.o.Vars
	vars.Workspace = scope.Workspace
	for _, layer := range append([]capability.Layer{s.all}, values(s.builtin)...) {
		_, _ = layer.Bind(vars, func(p string) (string, error) {
			real, err := l.o.Realpath(p)
			if err != nil {
				real = "" // never a real path
			}
			pins[p] = real
			return real, err
		})
	}
	return pins
}

func values(m map[string]capability.Layer) (out []capability.Layer) {
	for _, l := range m {
		out = append(out, l)
	}
	return out
}

func namesSkillDir(l capability.Layer) bool {
	return slices.ContainsFunc(l.Allow, func(c capability.Capability) bool { return strings.HasPrefix(c.Pattern, capability.VarSkillDir) })
}

// Owned returns the owner's layers, and how many others there are.
func (s *Stack) Owned(owner string) (own []Laid, others int) {
	for _, r := range s.rows() {
		if r.Owner == owner {
			own = append(own, r)
		} else {
			others++
		}
	}
	return own, others
}

// Refused counts one refusal by the layer that is called name, and reports
// whether it is one of s.
func (s *Stack) Refused(name string) bool {
	if s == nil {
		return false
	}
	for _, x := range s.sheets {
		if x.all.Name == name {
			x.refused.Add(1)
			return true
		}
	}
	return false
}

// Named counts one refusal by each layer that text names.
func (s *Stack) Named(text string) {
	for _, x := range s.sheets {
		if strings.Contains(text, x.all.Name) {
			x.refused.Add(1)
		}
	}
}

// Count returns how often this process has seen the layer refuse something.
func (s *Stack) Count(id string) int64 {
	if s != nil {
		for _, x := range s.sheets {
			if x.ID == id {
				return x.refused.Load()
			}
		}
	}
	return 0
}
