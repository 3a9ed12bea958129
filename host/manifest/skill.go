package manifest

import (
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/skillhost/skill/sdk"
)

// HasInstructions reports whether s has a SKILL.md.
func (s *Skill) HasInstructions() bool { return s.Home.has(InstructionsName) }

// has reports whether the skill has a file of that name.
func (h Home) has(name string) bool {
	if h.Files == nil {
		return false
	}
	st, err := fs.Stat(h.Files, name)
	return err == nil && st.Mode().IsRegular()
}

// read reads a file that is small by its nature.
func (h Home) read(name string) ([]byte, error) {
	f, err := h.Files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "manifest.Open", What: fmt.Sprintf("%q cannot be read", h.shown(name)), Err: err}
	}
	if len(content) > maxManifest {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: h.shown(name), What: "the file is too large", Hint: fmt.Sprintf("at most %d bytes are read", maxManifest)}
	}
	return content, nil
}

// shown is the path of a file as messages have it.
func (h Home) shown(name string) string { return path.Join(path.Dir(h.File), name) }
