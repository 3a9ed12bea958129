package catalog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// maxSkills bounds how many skills one directory may hold.
const maxSkills = 2000

// Scan reads every skill in the directories dirs: each of their folders that
// holds a skill.toml or a SKILL.md. A directory that does not exist is empty.
// A broken skill is reported and left out. Earlier is reused for skills whose
// digest is the same, so that a reload costs only what has changed.
func Scan(dirs []string, earlier []*manifest.Skill) (skills []*manifest.Skill, errs []error) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			errs = append(errs, &sdk.Error{Kind: sdk.Unavailable, Op: "catalog.Scan", What: dir, Err: err})
			continue
		}
		if len(entries) > maxSkills {
			errs = append(errs, &sdk.Error{Kind: sdk.Limit, Op: "catalog.Scan", What: fmt.Sprintf("%s holds %d entries", dir, len(entries)), Hint: fmt.Sprintf("at most %d are read", maxSkills)})
			entries = entries[:maxSkills]
		}
		for _, e := range entries {
			s, err := Open(filepath.Join(dir, e.Name()))
			switch {
			case err != nil:
				errs = append(errs, err)
			case s != nil:
				skills = append(skills, reuse(s, earlier))
			}
		}
	}
	return skills, errs
}

// Open reads the skill in the folder dir. It returns nil if dir is not a
// folder or holds no skill.
func Open(dir string) (*manifest.Skill, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "catalog.Open", What: dir, Err: err}
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "catalog.Open", What: dir, Err: err}
	}
	fsys := os.DirFS(real)
	if !isFile(fsys, manifest.FileName) && !isFile(fsys, manifest.InstructionsName) {
		return nil, nil
	}
	return manifest.Open(fsys, real)
}

func isFile(fsys fs.FS, name string) bool {
	st, err := fs.Stat(fsys, name)
	return err == nil && st.Mode().IsRegular()
}

func reuse(s *manifest.Skill, earlier []*manifest.Skill) *manifest.Skill {
	i := slices.IndexFunc(earlier, func(o *manifest.Skill) bool {
		return o.Name == s.Name && o.Home.Dir == s.Home.Dir && o.Home.Digest == s.Home.Digest
	})
	if i < 0 {
		return s
	}
	return earlier[i]
}
