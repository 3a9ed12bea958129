package manifest

import (
	"fmt"

	"github.com/skillhost/skill/host/manifest/frontmatter"
	"github.com/skillhost/skill/sdk"
)

// Instructions reads the SKILL.md of s, at most 1 MiB. front is the
// frontmatter as JSON, with its keys in the order of the file, or {} if there
// is none; body is the text after it. Errors have kind NotFound if s has no
// SKILL.md, and Invalid if it cannot be understood or has changed since Open.
func Instructions(s *Skill) (front Frontmatter, body string, err error) {
	h, body, err := readInstructions(s)
	return h.JSON, body, err
}

func readInstructions(s *Skill) (h frontmatter.Head, body string, err error) {
	if !s.Home.has(InstructionsName) {
		return h, "", &sdk.Error{Kind: sdk.NotFound, Op: "manifest.Instructions", What: fmt.Sprintf("skill %q has no %s", s.Name, InstructionsName)}
	}
	data, err := s.Home.read(InstructionsName)
	if err != nil {
		return h, "", err
	}
	return frontmatter.Read(s.Home.shown(InstructionsName), data)
}
