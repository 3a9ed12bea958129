package capability

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The variables that a filesystem entry may start with. ${tmp} stays symbolic
// for ever: every call has a private one, and "/tmp" is another spelling of it.
const (
	VarWorkspace = "${workspace}"
	VarSkillDir  = "${skill_dir}"
	VarHome      = "${home}"
	VarTmp       = "${tmp}"
)

// variables are those that Bind and Parse know.
var variables = [...]string{VarWorkspace, VarSkillDir, VarHome, VarTmp}

var errPath = errors.New(`want "read:PATH" or "write:PATH" with a clean absolute path, or one that starts with ${workspace}, ${skill_dir}, ${home} or ${tmp}; no globs; a trailing "?" lets it be absent`)

func (c *Capability) parsePath(entry string) error {
	verb, p, ok := strings.Cut(entry, ":")
	c.Verb = Verb(verb)
	if !ok || c.Verb != Read && c.Verb != Write {
		return errPath
	}
	if q, ok := strings.CutSuffix(p, "?"); ok {
		p, c.optional = q, true
	}
	if strings.ContainsAny(p, `*?[]\`) || !printable(p) {
		return errPath
	}
	if p == "/tmp" || strings.HasPrefix(p, "/tmp/") {
		p = VarTmp + strings.TrimPrefix(p, "/tmp")
	}
	abs := p
	for _, v := range variables {
		if rest, ok := strings.CutPrefix(p, v); ok && (rest == "" || rest[0] == '/') {
			abs = "/v" + rest
		}
	}
	if !isAbs(abs) || path.Clean(abs) != abs && !isRootDir(abs) || strings.Contains(abs, "$") {
		return errPath
	}
	c.Pattern = p
	return nil
}

// isAbs reports whether p is absolute: "/x", or on Windows "C:/x".
func isAbs(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && p[2] == '/' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// Beneath reports whether target is dir or lies beneath it. Both are clean
// slash paths. Nothing lies beneath the empty path.
func Beneath(target, dir string) bool {
	if !strings.HasPrefix(target, dir) || dir == "" {
		return false
	}
	return len(target) == len(dir) || dir[len(dir)-1] == '/' || target[len(dir)] == '/'
}

// isReal reports whether p may be the target of an access: absolute or
// beneath ${tmp}, and without empty, "." and ".." components.
func isReal(p string) bool {
	rest, ok := strings.CutPrefix(p, VarTmp)
	switch {
	case ok && rest == "":
		return true
	case ok:
	case isAbs(p):
		if rest = p; p[0] != '/' {
			rest = p[2:]
		}
	default:
		return false
	}
	if rest == "/" {
		return !ok
	}
	for i := 0; i < len(rest); {
		if rest[i] != '/' {
			return false
		}
		i++
		start := i
		for i < len(rest) && rest[i] != '/' {
			if c := rest[i]; c == 0 || windows && (c == ':' || c == '\\') {
				return false // ':' opens an alternate data stream
			}
			i++
		}
		switch s := rest[start:i]; {
		case s == "", s == ".", s == "..", windows && strings.TrimRight(s, ". ") != s:
			return false
		}
	}
	return true
}

// Whether the platform takes names for one that differ in case or in their
// Unicode normalization.
const (
	windows = runtime.GOOS == "windows"
	folds   = windows || runtime.GOOS == "darwin"
)

// fold returns the form in which a folding platform compares names.
func fold(s string) string { return norm.NFC.String(strings.ToLower(strings.ToUpper(s))) }

// sameName compares two names as the platform does.
func sameName(a, b string) bool { return a == b || folds && fold(a) == fold(b) }

// beneathFold is Beneath as the platform compares names.
func beneathFold(target, dir string) bool {
	return Beneath(target, dir) || folds && Beneath(fold(target), fold(dir))
}

// printable reports whether s is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Vars are the values of a scope's path variables: real, clean slash paths.
// An empty value means that there is no such directory, and entries that name
// it are left out.
type Vars struct {
	Workspace string
	SkillDir  string
	Home      string // of the user who runs the host
	Account   string // the home that the user's account has: entries that deny something of Home deny it there as well
}

// Bind returns l with every filesystem entry replaced by the real path it
// names (architecture 8.2: layer entries are resolved once). realpath resolves
// links and reports whether the path exists; Bind asks it about ${tmp} never.
// An allowed path that does not exist is an error unless it was written with
// "?", which leaves it out. In the layer "call" and in those that skills
// push it is always left out, without a word: an error would tell a caller what
// exists where it may not look. A denied one is kept twice: as it is written, and
// with the part of it that exists resolved.
func (l Layer) Bind(v Vars, realpath func(string) (string, error)) (Layer, error) {
	var err error
	if l.written == nil {
		l.written = l.Allow
	}
	l.vars = v
	called := l.Name == "call" || l.Pushed
	if l.Allow, err = l.Allow.bind(v, realpath, false, called); err != nil {
		return Layer{}, err
	}
	l.Deny, err = l.Deny.bind(v, realpath, true, called)
	return l, err
}

func (s Set) bind(v Vars, realpath func(string) (string, error), deny, called bool) (Set, error) {
	out := make(Set, 0, len(s))
	for _, c := range s {
		if c.Kind != Filesystem || strings.HasPrefix(c.Pattern, VarTmp) {
			out = append(out, c)
			continue
		}
		if deny {
			out = c.bindDeny(out, v, realpath)
			continue
		}
		p, ok := v.expand(c.Pattern)
		if !ok {
			continue
		}
		real, err := realpath(p)
		switch {
		case err == nil && !isReal(real) && !called:
			return nil, invalid(c.Pos, fmt.Sprintf("filesystem entry %q leads to %q, which is not a clean absolute path", c.Entry(), real), "")
		case err == nil && isReal(real):
			c.Pattern = real
			out = append(out, c)
		case !c.optional && !called:
			return nil, invalid(c.Pos, fmt.Sprintf("filesystem entry %q: %v", c.Entry(), err), `write "?" after a path that may be absent`)
		}
	}
	return out, nil
}

// bindDeny appends what c, an entry of a deny list, denies: names, and what
// they lead to.
func (c Capability) bindDeny(out Set, v Vars, realpath func(string) (string, error)) Set {
	pattern, homes := c.Pattern, []string{v.Home}
	if strings.HasPrefix(pattern, VarHome) && v.Account != v.Home {
		homes = append(homes, v.Account)
	}
	for _, v.Home = range homes {
		p, ok := v.expand(pattern)
		if !ok {
			continue
		}
		c.Pattern = p
		out = append(out, c)
		if c.asIs {
			continue
		}
		if real := resolveDeepest(p, realpath); real != p {
			c.Pattern = real
			out = append(out, c)
		}
	}
	return out
}

// expand replaces the variable at the start of p. It reports false if there is
// no such directory.
func (v Vars) expand(p string) (string, bool) {
	if rest, ok := strings.CutPrefix(p, VarWorkspace); ok {
		return path.Join(v.Workspace, rest), v.Workspace != ""
	}
	if rest, ok := strings.CutPrefix(p, VarSkillDir); ok {
		return path.Join(v.SkillDir, rest), v.SkillDir != ""
	}
	if rest, ok := strings.CutPrefix(p, VarHome); ok {
		return path.Join(v.Home, rest), v.Home != ""
	}
	return p, true
}

// resolveDeepest resolves the part of p that exists: a denied file that is not
// there yet must be denied under its real name when somebody makes it.
func resolveDeepest(p string, realpath func(string) (string, error)) string {
	for dir, rest := p, ""; ; {
		if real, err := realpath(dir); err == nil {
			return path.Join(real, rest)
		}
		parent, base := path.Split(dir)
		if parent = path.Clean(parent); parent == dir || base == "" || !isAbs(parent) {
			return p
		}
		dir, rest = parent, path.Join(base, rest)
	}
}
