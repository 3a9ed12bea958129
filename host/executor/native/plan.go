package native

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// A Plan says how a process of a skill is to be confined for a job. The first
// three fields are for the executor to set before Start; they do not enter Key.
type Plan struct {
	Serves   string   // the environment variable that tells the process where it makes Unix sockets (Guest.Serves); "": it makes none
	Programs []string // real paths of files that it may execute whatever the grant says of programs, such as a script's interpreter
	Note     string   // what the process is denied though its skill asks for it, for its user; or ""

	Key   string        // 64 hex digits: two jobs may use one process only if their Keys are equal
	Level sandbox.Level // how well it is confined

	skill    *manifest.Skill
	owner    string // "" if it has no private home
	scope    sdk.Scope
	limits   manifest.Limits
	env      map[string]string
	layers   []capability.Layer
	place    string // the real path of the workspace, or ""
	skillDir string // of the skill, or ""
	network  sandbox.Network
	absent   []string // denied paths that could come to exist
	out      bool     // there is a way out of the cage; else Proxy is its loopback alone
	nest     bool     // it may make namespaces of its own
}

// defaultLevel is required of a machine where neither manifest nor policy says.
const defaultLevel = sandbox.Landlock

// Plan decides how a process that runs j for s is confined. It looks at
// nothing but its arguments, what the machine offers, and whether there is
// something at the paths that are denied, and is fast. Its
// error has kind Denied if the machine offers less than is required.
func (m *Maker) Plan(s *manifest.Skill, j executor.Job) (Plan, error) {
	p := Plan{
		skill: s, scope: j.Input.Scope, limits: j.Limits, env: j.Input.Env, layers: j.Grant.Layers(),
		place: j.Dirs.Workspace, skillDir: j.Dirs.Skill,
	}
	if s.Sandbox.Home == "private" {
		p.owner = s.Name
		if m.o.Owner != nil {
			p.owner = m.o.Owner(s)
		}
	}
	var err error
	if p.Level, err = m.level(s, j.Level); err != nil {
		return Plan{}, err
	}
	if asksNetwork(p.layers) {
		if p.Level == sandbox.Strict && m.o.Serve != nil {
			p.network, p.out = sandbox.Proxy, true
		} else {
			p.Note = fmt.Sprintf("programs have no network: at level %s nothing could hold them to the hosts that are granted; the tool itself has what it asks of the host", p.Level)
		}
	}
	if s.Sandbox.Loopback && p.Level == sandbox.Strict {
		p.network = sandbox.Proxy // without p.out, there is nobody at its end
	}
	p.nest = s.Sandbox.Nest && p.Level == sandbox.Strict
	p.absent = unmade(p.layers)
	p.Key = p.key()
	return p, nil
}

// level returns the level at which s is run: the best that there is, if that is
// enough.
func (m *Maker) level(s *manifest.Skill, require string) (sandbox.Level, error) {
	want := sandbox.Level(require)
	if want == "" {
		want = defaultLevel
	}
	offer := m.report()
	e := &sdk.Error{Kind: sdk.Denied, Op: "native.Plan"}
	switch {
	case !want.Covers(sandbox.None):
		e.Kind, e.What = sdk.Invalid, fmt.Sprintf("unknown confinement level %q", require)
		e.Hint = `levels are "strict", "landlock" and "none"`
		return "", e
	case !offer.Level.Covers(sandbox.None):
		e.What = fmt.Sprintf("skill %q is a native program, and this machine offers no confinement for one%s", s.Name, missing(offer))
		e.Hint = "WASM skills run everywhere"
		return "", e
	case m.root() && offer.Level != sandbox.Strict:
		e.What = fmt.Sprintf("skill %q may be run by root at level strict only, and this machine offers %s%s", s.Name, offer.Level, missing(offer))
		e.Hint = "run the host as an ordinary user"
		return "", e
	case !offer.Level.Covers(want):
		e.What = fmt.Sprintf("skill %q requires level %s, and this machine offers %s%s", s.Name, want, offer.Level, missing(offer))
		e.Hint = fmt.Sprintf("to run it with less, write sandbox = %q in [skills.%s] of the policy; the manifest %s asks with require in [sandbox]",
			offer.Level, capability.QuoteKey(s.Name), s.Home.File)
		return "", e
	}
	return offer.Level, nil
}

// missing says what a better level lacks, as the end of a sentence.
func missing(r sandbox.Report) string {
	out := ""
	for _, why := range r.Missing {
		out += "; missing: " + why
	}
	return out
}

// asksNetwork reports whether every layer that speaks of the network has an
// entry, so that something may be granted.
func asksNetwork(layers []capability.Layer) bool {
	spoken := false
	for _, l := range layers {
		if !l.SpeaksOf(capability.Topic{Kind: capability.Network, Verb: capability.Connect}) {
			continue
		}
		spoken = true
		if !slices.ContainsFunc(l.Allow, func(c capability.Capability) bool { return c.Kind == capability.Network }) {
			return false
		}
	}
	return spoken
}

// key returns the digest of everything that a process of p is confined by and
// told at its start. Whose process it is comes first: nothing that one caller,
// workspace or session left in its memory is ever there for another.
func (p *Plan) key() string {
	k := make(text, 0, 4<<10)
	k.add(p.skill.Home.Digest, p.owner, p.scope.Caller, p.scope.Workspace, p.scope.Session, p.place, p.skillDir, string(p.Level))
	k.add(strconv.FormatBool(p.out))
	k.count(int64(p.network), p.limits.Memory, int64(p.limits.Processes), p.limits.HTTPBody, int64(len(p.env)))
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		k.add(name, p.env[name])
	}
	k.count(int64(len(p.layers)))
	for i := range p.layers {
		l := &p.layers[i]
		k.add(l.Name, strconv.FormatBool(l.Closed), strconv.FormatBool(l.Pushed))
		k.count(int64(len(l.Speaks)))
		for _, t := range l.Speaks {
			k.add(string(t.Kind), string(t.Verb))
		}
		for _, set := range []capability.Set{l.Allow, l.Deny} {
			k.count(int64(len(set)))
			for j := range set {
				k.add(string(set[j].Kind), string(set[j].Verb), set[j].Pattern)
			}
		}
	}
	if p.Level != sandbox.None {
		k.addHeld(p.layers)
	}
	sum := sha256.Sum256(k)
	return hex.EncodeToString(sum[:])
}

// homeStays reports whether the private home of p can be read only: a skill has
// laid a layer over the session that speaks of writing.
func (p *Plan) homeStays() bool {
	return slices.ContainsFunc(p.layers, func(l capability.Layer) bool {
		return l.Pushed && l.SpeaksOf(capability.Topic{Kind: capability.Filesystem, Verb: capability.Write})
	})
}

// A text is what is digested. Every part says how long it is, so that no two
// lists of parts are one text.
type text []byte

func (t *text) add(parts ...string) {
	for _, s := range parts {
		*t = append(binary.AppendUvarint(*t, uint64(len(s))), s...)
	}
}

func (t *text) count(numbers ...int64) {
	for _, n := range numbers {
		*t = binary.AppendVarint(*t, n)
	}
}

// isRoot reports whether the host runs as the machine's superuser.
func isRoot() bool { return os.Geteuid() == 0 }
