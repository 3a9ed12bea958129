package capability

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// A Topic is one kind and verb: what a layer speaks of, or is silent about.
type Topic struct {
	Kind Kind
	Verb Verb
}

// A Layer is one list of permissions: the manifest's, the operator's, the
// session's or the call's. For a topic it speaks of, only what Allow covers
// passes; on other topics it abstains, unless it is Closed. What Deny names is
// refused whatever any layer allows. The zero Layer abstains from everything.
type Layer struct {
	Name   string // "manifest", "operator", "session" or "call"
	Pos    Pos    // the file it is written in
	Table  string // the TOML table a permission would be added to, such as "[capabilities]"
	Closed bool   // never abstains: what it does not mention is refused
	Speaks []Topic
	Allow  Set
	Deny   Set

	// Pushed says that a skill has laid the layer over a session. It cannot name
	// the private home of a process, and so takes writing there away where it
	// speaks of writing. Why is what it says to whoever is refused.
	Pushed bool
	Why    string

	written Set  // Allow before Bind; nil if it was not bound
	vars    Vars // of Bind
}

func (l *Layer) speaks(k Kind, v Verb) bool {
	return l.Closed || slices.Contains(l.Speaks, Topic{k, v})
}

// A Grant is what one call may touch: every layer that speaks of a topic must
// allow (architecture 8.1). The zero Grant, having no layers, denies all.
type Grant struct {
	layers []Layer
	live   func(Access) error
	see    func(Access, error)
}

// NewGrant returns the Grant of layers, of which at least one must be Closed:
// otherwise it denies all. see, if not nil, is told of every Check.
func NewGrant(layers []Layer, see func(Access, error)) Grant {
	if !slices.ContainsFunc(layers, func(l Layer) bool { return l.Closed }) {
		layers = nil
	}
	return Grant{layers: layers, see: see}
}

// WithLive returns g with one more condition, asked after the layers: whether
// today's policy, which may have changed since the call began, still allows.
func (g Grant) WithLive(live func(Access) error) Grant { g.live = live; return g }

// Layers returns the layers of g. They must not be changed.
func (g Grant) Layers() []Layer { return g.layers }

// Check returns nil if a is granted. If not, it returns an *sdk.Error of kind
// Denied that names the first layer that refuses and the line that would allow.
//
// A deny outranks every allow, wherever it stands: a denied path beneath a
// Root is refused with all that is beneath it. Where a host is denied by name,
// an access by address, which may be that host's, is granted only if each
// layer that speaks of the network lists the address or its prefix: "*" does
// not do, or else who may go everywhere but there could go there by number.
func (g Grant) Check(a Access) error {
	err := g.decide(&a)
	if err == nil && g.live != nil {
		if err = g.live(a); err != nil && sdk.KindOf(err) != sdk.Denied { // it cannot be told what is allowed today
			e := objection{fault: "today's policy cannot be asked"}.refuse(&a)
			e.Err = err
			err = e
		}
	}
	if g.see != nil {
		g.see(a, err)
	}
	return err
}

// Allows is Check without a record: for planning, never for admission.
func (g Grant) Allows(a Access) bool {
	return g.permits(&a) && (g.live == nil || g.live(a) == nil)
}

// CheckAddress returns nil unless a layer denies ip, to which the host of the
// granted network access a has been resolved. Names are granted whatever their
// addresses are, but a denied address is denied under every name.
func (g Grant) CheckAddress(a Access, ip netip.Addr) error {
	if a.Net == nil {
		return objection{fault: "no network access"}.refuse(&a)
	}
	at := Net{Scheme: a.Net.Scheme, IP: ip.Unmap().WithZone(""), Port: a.Net.Port}
	return g.undenied(a, &Access{Kind: Network, Verb: Connect, Net: &at})
}

// CheckAlias returns nil unless a layer denies name, which is another name of
// the target of the granted access a: what is denied is denied under every name.
func (g Grant) CheckAlias(a Access, name string) error {
	return g.undenied(a, &Access{Kind: a.Kind, Verb: a.Verb, Target: name})
}

// undenied refuses the granted access a if a layer denies same, which comes to
// the same thing.
func (g Grant) undenied(a Access, same *Access) error {
	o, ok := g.denial(same)
	if ok {
		return nil
	}
	err := o.refuse(&a)
	if g.see != nil {
		g.see(a, err)
	}
	return err
}

func (g Grant) decide(a *Access) error {
	if o, ok := g.weigh(a); !ok {
		return o.refuse(a)
	}
	return nil
}

func (g Grant) permits(a *Access) bool {
	_, ok := g.weigh(a)
	return ok
}

// An objection is the ground on which an access is refused: a fault, else an
// entry of layer's deny list, else that layer has no entry that allows it.
type objection struct {
	fault string
	layer *Layer
	deny  *Capability
}

// weigh returns true, or false and the first objection.
func (g Grant) weigh(a *Access) (objection, bool) {
	if fault := a.fault(); fault != "" {
		return objection{fault: fault}, false
	}
	if len(g.layers) == 0 {
		return objection{fault: "nothing is granted"}, false
	}
	if o, ok := g.denial(a); !ok {
		return o, false
	}
	if a.Net != nil && a.Net.IP.IsValid() {
		if o, ok := g.nameless(a); !ok {
			return o, false
		}
	}
	for i := range g.layers {
		if l := &g.layers[i]; !l.admits(a) {
			return objection{layer: l}, false
		}
	}
	return objection{}, true
}

// denial is weigh for the deny lists alone.
func (g Grant) denial(a *Access) (objection, bool) {
	for i := range g.layers {
		for j := range g.layers[i].Deny {
			if d := &g.layers[i].Deny[j]; d.denies(a) {
				return objection{layer: &g.layers[i], deny: d}, false
			}
		}
	}
	return objection{}, true
}

// nameless is weigh for an access by address where names are denied.
func (g Grant) nameless(a *Access) (objection, bool) {
	listed := true // by each layer that speaks of the network
	for i := range g.layers {
		l := &g.layers[i]
		listed = listed && (!l.speaks(Network, Connect) || slices.ContainsFunc(l.Allow, func(c Capability) bool {
			return c.net != nil && !c.net.any && c.covers(a)
		}))
	}
	for i := range g.layers {
		for j := range g.layers[i].Deny {
			d := &g.layers[i].Deny[j]
			if d.net != nil && d.net.host != "" && (d.net.port == 0 || d.net.port == a.Net.Port) && !listed {
				return objection{layer: &g.layers[i], deny: d}, false
			}
		}
	}
	return objection{}, true
}

// admits reports whether l lets a pass, denies apart. Writing implies reading,
// so a layer that speaks only of reading is asked about writes as well.
func (l *Layer) admits(a *Access) bool {
	if l.speaks(a.Kind, a.Verb) {
		return l.Allow.covers(a)
	}
	if a.Kind == Filesystem && a.Verb == Write && l.speaks(Filesystem, Read) {
		read := Access{Kind: Filesystem, Verb: Read, Target: a.Target}
		return l.Allow.covers(&read)
	}
	return true
}

// refuse returns the error that says who refused a and how to change that.
func (o objection) refuse(a *Access) *sdk.Error {
	d := &sdk.Denial{Capability: string(a.Kind) + "." + string(a.Verb), Resource: a.Target, Layer: "host"}
	e := &sdk.Error{Kind: sdk.Denied, What: d.Capability + " " + display(a.Target), Denial: d}
	if o.layer == nil {
		e.Hint = "refused by host: " + o.fault
		return e
	}
	pos := o.layer.Pos
	if o.deny != nil && o.deny.Pos.File != "" {
		pos = o.deny.Pos
	}
	d.Layer, d.File, d.Line = o.layer.Name, pos.File, pos.Line
	e.Hint = "refused by " + o.layer.Name
	if pos.File != "" {
		e.Hint += " " + pos.String()
	}
	if o.layer.Why != "" {
		e.Hint += ", which says " + Quote(o.layer.Why)
	}
	if o.deny != nil {
		e.Hint += ": denied by " + Quote(o.deny.Entry())
		if n := o.deny.net; n != nil && n.host != "" && a.Net != nil && a.Net.IP.IsValid() {
			e.Hint += ", whose address this may be; list the address itself, not \"*\""
		}
	} else if entry, ok := o.layer.suggest(a); ok && o.layer.Table != "" {
		var said bool
		d.Entry = entry.Entry()
		d.Allow, said = o.layer.line(a.Kind, d.Entry)
		do := "add to"
		if said {
			do = "write in"
		}
		e.Hint += fmt.Sprintf("; to allow it, %s %s: %s", do, o.layer.Table, d.Allow)
		if word := entry.Danger(); word != "" {
			e.Hint += "; the policy must allow the dangerous " + Quote(word) + " as well"
		}
	}
	if a.Kind == Filesystem && strings.HasPrefix(a.Target, VarTmp) {
		e.Hint += "; /tmp is private to each call: what is in the host's has to be copied into the workspace"
	}
	return e
}

// line returns the list of l for kind as it has to be with one entry more, and
// whether there is one to replace. It is written as l was, and not as it was
// bound: the operator is to copy the whole line.
func (l *Layer) line(kind Kind, entry string) (text string, said bool) {
	said = slices.ContainsFunc(l.Speaks, func(t Topic) bool { return t.Kind == kind })
	list := l.written
	if list == nil {
		list = l.Allow
	}
	var b strings.Builder
	for i := range list {
		if list[i].Kind == kind {
			b.WriteString(Quote(list[i].Entry()) + ", ")
			said = true
		}
	}
	return fmt.Sprintf("%s = [%s%s]", kind, b.String(), Quote(entry)), said
}

// suggest returns the narrowest entry that would make l allow a, if there is
// one: a host directory below /tmp cannot be written down, for one.
func (l *Layer) suggest(a *Access) (Capability, bool) {
	entry := a.Target
	switch {
	case a.Kind == Filesystem:
		for _, v := range [...][2]string{{l.vars.Workspace, VarWorkspace}, {l.vars.SkillDir, VarSkillDir}, {l.vars.Home, VarHome}} {
			if dir, name := v[0], v[1]; dir != "/" && Beneath(a.Target, dir) { // so that it means the same for others
				c, err := Parse(a.Kind, string(a.Verb)+":"+name+a.Target[len(dir):], Pos{})
				return c, err == nil
			}
		}
		entry = string(a.Verb) + ":" + a.Target
	case a.Net != nil:
		e := endpoint{scheme: a.Net.Scheme, host: a.Net.Host, port: a.Net.Port}
		if a.Net.IP.IsValid() {
			e.prefix = netip.PrefixFrom(a.Net.IP, a.Net.IP.BitLen())
		}
		if a.Net.Method != "" && l.namesMethods(a.Net) {
			e.methods = []string{a.Net.Method}
		}
		entry = e.String()
	}
	c, err := Parse(a.Kind, entry, Pos{})
	return c, err == nil && c.covers(a)
}

// namesMethods reports whether l reaches n, but not by its method.
func (l *Layer) namesMethods(n *Net) bool {
	return slices.ContainsFunc(l.Allow, func(c Capability) bool { return c.net != nil && c.net.methods != nil && c.net.reaches(n) })
}

func invalid(pos Pos, what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: what, Hint: hint}
}
