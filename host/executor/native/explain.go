package native

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

// Explain adds to a call of p that failed what it was granted and where that
// is written: the kernel tells a process no more than an errno. A failed
// result is explained only if it reads like a refusal by the kernel. At most
// maxLines lines are added, and nothing that is not in the layers.
func Explain(p Plan, r sdk.Result, err error) (sdk.Result, error) {
	if err != nil {
		var e *sdk.Error
		if sdk.KindOf(err) != sdk.Guest || !errors.As(err, &e) {
			return r, err
		}
		told := *e
		told.Hint = strings.Join(append(hints(e.Hint), p.account(err.Error())...), "; ")
		return r, &told
	}
	r = p.made(r)
	if !r.Failed {
		return r, nil
	}
	var text strings.Builder
	for _, c := range r.Content {
		text.WriteString(c.Text + "\n")
	}
	if said := text.String(); p.refused(said) {
		lines := p.account(said)
		r.Content = append(slices.Clip(r.Content), sdk.Content{Type: sdk.TypeText, Text: strings.Join(lines, "\n")})
	}
	return r, nil
}

func hints(h string) []string {
	if h == "" {
		return nil
	}
	return []string{h}
}

const (
	maxLines  = 12
	maxSeen   = 64       // paths that are looked at
	maxExact  = 2        // refused paths that are explained
	maxListed = 6        // roots, programs or lists in one line
	maxText   = 64 << 10 // bytes of a guest's text that are looked at
)

// What programs write when the kernel or the cage's network refuses something.
var (
	refusals = once(`(?i)permission denied|read-only file system|operation not permitted|network is unreachable|could ?n.t resolve|could not resolve|` +
		`connection refused|could ?n.t connect|failed to connect|name or service not known|temporary failure in name resolution|no such host|address family not supported|` +
		`\b(EACCES|EPERM|EROFS|ENETUNREACH|ECONNREFUSED|EAI_AGAIN|ENOTFOUND|EAFNOSUPPORT)\b`)
	absences = once(`(?i)no such file or directory|cannot find|command not found|executable file not found|\bENOENT\b`)
	paths    = once("(?:^|[\\s'\"`:=(\\[])(/[^\\s'\"`:,;()\\[\\]]+)")
)

// once compiles an expression when it is used first.
func once(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// refused reports whether text reads as if a process of p had been refused
// something. What is absent may also just not be there: that counts only if a
// path is named that is not granted.
func (p *Plan) refused(text string) bool {
	text = tail(text)
	return refusals().MatchString(text) || absences().MatchString(text) && len(p.exact(text)) > 0
}

func tail(text string) string { return text[max(0, len(text)-maxText):] }

// account says what p grants.
func (p *Plan) account(text string) []string {
	lines := []string{"this tool is confined by the kernel, which gives no reasons; it is granted:"}
	var read, write, run []string
	for _, r := range view.Granted(p.layers) {
		switch shown := show(r.Path); {
		case r.Name == "*":
			run = append(run, "any that it may read")
		case r.Name != "":
			run = append(run, show(r.Name))
		case r.Path == capability.VarTmp: // every process has that
		case r.Rights&view.Write != 0:
			write = append(write, shown)
		default:
			read = append(read, shown)
		}
	}
	lines = append(lines, "read: "+listed(read), "write: "+listed(append(write, tmpPath+" (its own)")), "programs: "+listed(run))
	switch {
	case p.Note != "":
		lines = append(lines, "network: "+p.Note)
	case p.out:
		lines = append(lines, "network: the granted hosts, by the proxy of HTTP_PROXY")
	default:
		lines = append(lines, "network: none")
	}
	switch denied := p.denials(); {
	case len(denied) > maxListed: // skill explain lists them
		lines = append(lines, fmt.Sprintf("denied in any case: %d paths", len(denied)))
	case len(denied) > 0:
		lines = append(lines, "denied in any case: "+listed(denied))
	}
	lines = append(lines, p.pushed()...)
	lines = append(lines, p.exact(tail(text))...)
	if lists := p.lists(); len(lists) > 0 {
		lines = append(lines, "all of these lists must allow it: "+listed(lists))
	}
	return lines[:min(len(lines), maxLines)]
}

// pushed says what skills have laid over the session: those lists end without
// the operator.
func (p *Plan) pushed() (lines []string) {
	for _, l := range p.layers {
		if !l.Pushed {
			continue
		}
		line := l.Name + " narrows this session"
		if l.Why != "" {
			line += ", and says " + capability.Quote(l.Why)
		}
		lines = append(lines, line)
	}
	if p.owner != "" && p.homeStays() {
		lines = append(lines, "$HOME can be read and not written")
	}
	return lines
}

// exact returns why paths that text names are refused, in the words of the
// grant, which name the line that would allow them.
func (p *Plan) exact(text string) []string {
	g := capability.NewGrant(p.layers, nil)
	var out, seen []string
	for _, m := range paths().FindAllStringSubmatch(complaints(text), -1) {
		target := p.host(path.Clean(m[1]))
		if target == "" || slices.Contains(seen, target) {
			continue
		}
		if seen = append(seen, target); len(seen) > maxSeen {
			break
		}
		a := capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: target}
		switch {
		case slices.Contains(strings.Split(searchPath, ":"), path.Dir(target)):
			a = capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: target}
			if g.Allows(a) || g.Allows(capability.Access{Kind: a.Kind, Verb: a.Verb, Target: path.Base(target)}) {
				continue
			}
		case g.Allows(a) && refusals().MatchString(text):
			a.Verb = capability.Write
		}
		if err := g.Check(a); err != nil {
			if out = append(out, err.Error()); len(out) == maxExact {
				break
			}
		}
	}
	return out
}

// complaints returns the lines of text that complain: others name paths as well.
func complaints(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if refusals().MatchString(line) || absences().MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// host returns the real path that a process of p calls guest, or "" if it is
// one of its own.
func (p *Plan) host(guest string) string {
	for _, alias := range [][2]string{{"/workspace", p.place}, {"/skill", p.skillDir}} {
		if name, dir := alias[0], filepath.ToSlash(alias[1]); dir != "" && capability.Beneath(guest, name) {
			return path.Join(dir, guest[len(name):])
		}
	}
	if p.place != "" && capability.Beneath(guest, filepath.ToSlash(p.place)) { // it may be beneath /tmp
		return guest
	}
	for _, own := range []string{tmpPath, "/proc", "/dev", "/run"} {
		if capability.Beneath(guest, own) {
			return ""
		}
	}
	return guest
}

// denials are the entries of the deny lists beneath what is granted.
func (p *Plan) denials() []string {
	var out []string
	for _, h := range capability.NewGrant(p.layers, nil).Holes() {
		verb := "write:"
		if h.Read {
			verb = "read:"
		}
		out = append(out, verb+show(h.Path))
	}
	return out
}

// lists names the lists that hold for p, each by its table and place.
func (p *Plan) lists() []string {
	var out []string
	for _, l := range p.layers {
		if l.Table == "" {
			continue
		}
		s := l.Table
		if !strings.Contains(s, " of ") && l.Pos.File != "" {
			s += " of " + l.Pos.String()
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// listed joins names, but not too many.
func listed(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "nothing"
	case n > maxListed:
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n-maxListed)
	}
	return strings.Join(names, ", ")
}

// show returns p as a word of a sentence.
func show(p string) string {
	if rest, ok := strings.CutPrefix(p, capability.VarTmp); ok {
		return tmpPath + rest
	}
	if strings.ContainsFunc(p, func(r rune) bool { return r == ',' || r == ';' || !unicode.IsPrint(r) }) {
		return capability.Quote(p)
	}
	return p
}
