package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/nearest"
	"github.com/skillhost/skill/sdk"
)

// maxName is the longest name that the strictest model interfaces accept
// (architecture 8.14: ^[a-zA-Z0-9_-]{1,64}$).
const maxName = 64

// names is how tools and prompts of installed skills are called.
type names struct {
	separator string
	bare      []string // skills
}

// offered returns the name under which a tool is listed. Built-in tools and
// those of bare skills have their own names; others are prefixed with their
// skill's. With a separator other than "." the name fits maxName and has no dot.
func offered(skill *manifest.Skill, tool string, as names) string {
	if skill.Home.Builtin {
		return tool
	}
	name := skill.Name + as.separator + tool
	if slices.Contains(as.bare, skill.Name) {
		name = tool
	}
	if as.separator == "." {
		return name
	}
	name = strings.ReplaceAll(name, ".", "_")
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// Canonical is the name that capabilities of kind invoke are about, however a
// call spells it.
func (e *Entry) Canonical() string {
	if e.Hidden || e.Skill.Home.Builtin {
		return e.Name
	}
	return e.Skill.Name + "." + e.Tool.Name
}

// Spellings returns every name by which e may be called. A skill's name has
// neither "." nor "_" nor "/", so that tools of two skills never share one.
func (e *Entry) Spellings() []string {
	if e.Hidden {
		return nil // reached by address only
	}
	return spellings(e.Skill, e.Name, e.Tool.Name)
}

// spellings returns the names of what a skill calls name and offers as offered.
func spellings(skill *manifest.Skill, offered, name string) []string {
	names := []string{offered}
	if !skill.Home.Builtin {
		for _, sep := range []string{".", "_", "__", "/"} {
			names = append(names, skill.Name+sep+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *snapshot) noTool(name string) error {
	e := &sdk.Error{Kind: sdk.NotFound, What: "no tool " + quote(name)}
	var known, same []string
	for _, l := range s.listed {
		known = append(known, l.Name)
		if l.Tool.Name == name || l.Skill.Name == name {
			same = append(same, l.Name)
		}
	}
	for _, l := range s.entriesOf(name) {
		if l.Hidden {
			same = append(same, InvokeSkill+" with skill_name "+quote(name))
		}
	}
	if same != nil {
		e.Hint = "did you mean " + strings.Join(same, " or ")
		return e
	}
	e.Hint = didYouMean(name, known)
	return e
}

func (s *snapshot) entriesOf(skill string) []*Entry {
	if x := s.bySkill[skill]; x != nil {
		return x.entries
	}
	return nil
}

func (s *snapshot) noSkill(name string) error {
	e := &sdk.Error{Kind: sdk.NotFound, What: "no skill " + quote(name)}
	var known []string
	for n := range s.bySkill {
		known = append(known, n)
	}
	slices.Sort(known)
	e.Hint = didYouMean(name, known)
	return e
}

// quote shows at most 80 bytes of a name that a client sent.
func quote(name string) string {
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return `"` + strings.ToValidUTF8(strings.Map(printable, name), "?") + `"`
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

func didYouMean(name string, known []string) string {
	if near := nearest.Names(name, known, 5); len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ")
	}
	if len(known) == 0 {
		return "none is installed"
	}
	return "see skill list"
}
