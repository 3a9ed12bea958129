// Package capability is the language of permissions: what may be touched, what
// one attempt touches, and whether a stack of layers lets it through. It is
// pure: it resolves no names, opens no files, and knows no callers or tools.
// A file system is consulted only by Layer.Bind, through a function it is given.
package capability

import (
	"fmt"
	"path"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// A Kind is a class of things that a guest may touch.
type Kind string

// The kinds, spelled as in manifests and policies.
const (
	Network    Kind = "network"
	Filesystem Kind = "filesystem"
	Exec       Kind = "exec"
	Env        Kind = "env"
	Secrets    Kind = "secrets"
	Invoke     Kind = "invoke"
	Client     Kind = "client"
)

// Kinds lists every Kind, in the order in which they are documented.
var Kinds = []Kind{Network, Filesystem, Exec, Env, Secrets, Invoke, Client}

// A Verb is what is done to a thing. Every kind but Filesystem has one verb.
type Verb string

// The verbs.
const (
	Connect Verb = "connect" // network
	Read    Verb = "read"    // filesystem, env
	Write   Verb = "write"   // filesystem; implies Read
	Run     Verb = "run"     // exec
	Use     Verb = "use"     // secrets
	Call    Verb = "call"    // invoke
	Ask     Verb = "ask"     // client
)

// Verbs lists the verbs of k.
func Verbs(k Kind) []Verb {
	switch k {
	case Network:
		return []Verb{Connect}
	case Filesystem:
		return []Verb{Read, Write}
	case Exec:
		return []Verb{Run}
	case Env:
		return []Verb{Read}
	case Secrets:
		return []Verb{Use}
	case Invoke:
		return []Verb{Call}
	case Client:
		return []Verb{Ask}
	}
	return nil
}

// A Pos says where something is written. Line is 1-based; 0 means that there
// is no line, as for a command-line flag.
type Pos struct {
	File string
	Line int
}

// String formats p as "file:line".
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// A Capability permits one verb on all targets that its pattern covers. The
// zero Capability covers nothing. Parse makes all others.
type Capability struct {
	Kind    Kind
	Verb    Verb
	Pattern string // canonical; for Filesystem a clean slash path that may start with a variable until Bind
	Pos     Pos

	optional bool // Filesystem: written with "?": may be absent
	asIs     bool // Filesystem: Bind resolves no links in Pattern
	net      *endpoint
}

// AsIs returns c, an entry of a deny list, for the very name of a path: if that
// is a link, it is the link that is denied and not what it leads to.
func (c Capability) AsIs() Capability { c.asIs = true; return c }

// Entry formats c as it is written in a manifest.
func (c Capability) Entry() string {
	if c.Kind == Filesystem {
		s := string(c.Verb) + ":" + c.Pattern
		if c.optional {
			s += "?"
		}
		return s
	}
	return c.Pattern
}

// An Access is one concrete attempt.
type Access struct {
	Kind   Kind
	Verb   Verb
	Target string // Filesystem: a real, clean slash path, or "${tmp}/…"; Network: Net.String(); all others: a name as the lists spell it
	Net    *Net   // Network only
}

// String formats a as "kind.verb target".
func (a Access) String() string {
	return string(a.Kind) + "." + string(a.Verb) + " " + a.Target
}

// Parse reads one entry of the list that the manifest or the policy has for
// kind, such as "read:/data" or "*.example.com". The error says what is
// allowed there and has kind sdk.Invalid.
func Parse(kind Kind, entry string, pos Pos) (Capability, error) {
	c := Capability{Kind: kind, Pos: pos}
	var err error
	switch kind {
	case Filesystem:
		err = c.parsePath(entry)
	case Network:
		c.Verb = Connect
		c.net, err = parseEndpoint(entry)
		if err == nil {
			c.Pattern = c.net.String()
		}
	case Exec:
		c.Verb, c.Pattern = Run, entry
		if !validProgram(entry) {
			err = fmt.Errorf("want a program name, its clean absolute path, or \"*\"")
		}
	case Env:
		c.Verb, c.Pattern = Read, entry
		if !validName(entry, "_") {
			err = fmt.Errorf("want the name of an environment variable, such as \"LANG\"")
		}
	case Secrets:
		c.Verb, c.Pattern = Use, entry
		if !validName(entry, "_-.") {
			err = fmt.Errorf("want the name of a secret, such as \"GITHUB_TOKEN\"")
		}
	case Invoke:
		c.Verb, c.Pattern = Call, entry
		if !validTool(entry) {
			err = fmt.Errorf("want a tool such as \"ReadImage\" or \"hello.greet\", or \"hello.*\"")
		}
	case Client:
		err = c.parseClient(entry)
	default:
		return Capability{}, &sdk.Error{Kind: sdk.Invalid, Op: "capability.Parse", What: fmt.Sprintf("unknown kind %q", kind),
			Hint: "known kinds: network, filesystem, exec, env, secrets, invoke, client"}
	}
	if err != nil {
		return Capability{}, &sdk.Error{Kind: sdk.Invalid, Op: "capability.Parse", What: fmt.Sprintf("%s entry %q: %v", kind, entry, err)}
	}
	return c, nil
}

// validName reports whether s is not empty and made of ASCII letters, digits
// and the characters of extra.
func validName(s, extra string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(extra, c) >= 0) {
			return false
		}
	}
	return s != ""
}

// anyProgram is the exec entry for every program, and as the target of an
// access an attempt to run any.
const anyProgram = "*"

// validProgram reports whether s is anyProgram, a bare program name or a clean
// absolute path. A name that starts with "-" would be an option of whatever
// runs it.
func validProgram(s string) bool {
	if s == anyProgram {
		return true
	}
	rest := s
	if len(s) > 2 && isAbs(s) {
		rest = strings.TrimPrefix(s[1:], ":")
	}
	if !validName(rest, "/._+-@") || s == "." || s == ".." || s[0] == '-' {
		return false
	}
	return !strings.Contains(s, "/") || isAbs(s) && path.Clean(s) == s && s != "/"
}

// validTool reports whether s names a tool or, with "*" as its last part, all
// tools of a skill. "hel*" is none: it would cover "hello" and "helium" alike.
func validTool(s string) bool {
	if rest, ok := strings.CutSuffix(s, "*"); ok {
		if rest == "" {
			return true
		}
		if s = strings.TrimRight(rest, "./"); len(s) != len(rest)-1 {
			return false
		}
	}
	return validName(s, "_-./")
}

// Covers reports whether c permits a. An Access that is malformed, such as one
// to an unclean path, is permitted by nothing.
func (c Capability) Covers(a Access) bool { return a.fault() == "" && c.covers(&a) }

// covers is Covers for an access without fault.
func (c *Capability) covers(a *Access) bool {
	if c.Kind != a.Kind {
		return false
	}
	switch c.Kind {
	case Filesystem:
		return (c.Verb == a.Verb || c.Verb == Write && a.Verb == Read) && Beneath(a.Target, c.Pattern)
	case Network:
		return a.Verb == Connect && c.net != nil && c.net.covers(a.Net)
	case Exec:
		if c.Pattern == anyProgram {
			return c.Verb == a.Verb
		}
	case Invoke:
		if prefix, ok := strings.CutSuffix(c.Pattern, "*"); ok {
			return c.Verb == a.Verb && strings.HasPrefix(a.Target, prefix)
		}
	}
	return c.Verb == a.Verb && c.Pattern == a.Target
}

// denies reports whether c, as an entry of a deny list, refuses a, which has
// no fault. A deny is wide where an allow is narrow: a denied read is a denied
// write too; the scheme and methods of a network entry are not asked; a bare
// program name denies the program in every directory; with one program denied,
// not every program may be run; and names that the platform takes for one are
// one.
func (c *Capability) denies(a *Access) bool {
	if c.Kind != a.Kind {
		return false
	}
	switch c.Kind {
	case Filesystem:
		return (c.Verb == a.Verb || c.Verb == Read) && beneathFold(a.Target, c.Pattern)
	case Network:
		return c.net == nil || c.net.reaches(a.Net)
	case Exec:
		return c.Pattern == anyProgram || a.Target == anyProgram || sameName(a.Target, c.Pattern) || sameName(path.Base(a.Target), c.Pattern)
	case Env:
		return sameName(a.Target, c.Pattern)
	}
	return c.covers(a)
}

// fault says what is malformed in a, or "". Patterns are only ever compared
// with well-formed targets: "/data/../etc" would pass for a path beneath /data.
func (a *Access) fault() string {
	switch a.Kind {
	case Filesystem:
		if !isReal(a.Target) {
			return "the path is not a clean absolute one"
		}
		if a.Verb != Read && a.Verb != Write {
			return "no such verb"
		}
	case Network:
		if a.Net == nil || !a.Net.wellFormed() {
			return "the host or port is not well-formed"
		}
	case Exec, Env, Secrets, Invoke, Client:
		if a.Target == "" {
			return "the name is empty"
		}
	default:
		return "no such kind"
	}
	return ""
}

// A Set is a list of capabilities. The empty Set permits nothing.
type Set []Capability

// Covers reports whether some member of s permits a.
func (s Set) Covers(a Access) bool { return a.fault() == "" && s.covers(&a) }

func (s Set) covers(a *Access) bool {
	for i := range s {
		if s[i].covers(a) {
			return true
		}
	}
	return false
}
