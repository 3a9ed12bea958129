package manifest

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/pinned"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// maxManifest bounds skill.toml and SKILL.md, in bytes.
const maxManifest = 1 << 20

// Open reads the skill whose directory is the root of fsys: its skill.toml
// with the schemas it names, or, if it has only a SKILL.md, that. dir is the
// real directory, or "" if the skill is embedded in the binary; whether it is
// granted as shipped (Home.Builtin) only the caller knows.
//
// Open reads every file once, for the digest. A symbolic link, a device or a
// pipe anywhere in the directory is an error: what it leads to would not be in
// the digest. Errors have kind Invalid, or Unavailable if a file cannot be read.
func Open(fsys fs.FS, dir string) (*Skill, error) {
	files, err := pinned.Pin(fsys, filepath.ToSlash(dir))
	if err != nil {
		return nil, err
	}
	return openFiles(files, dir, false)
}

// OpenBuiltin is Open for a skill that is to be part of the binary, while it is
// built and tested.
func OpenBuiltin(fsys fs.FS) (*Skill, error) {
	files, err := pinned.Pin(fsys, "")
	if err != nil {
		return nil, err
	}
	return openFiles(files, "", true)
}

// OpenEmbedded reads a skill that is part of this binary: it is granted as
// shipped. digest is what Open would compute, as the binary's build found it.
// Of a plugin, Source is not a file but what the binary is to run as.
func OpenEmbedded(fsys embed.FS, dir, digest string) (*Skill, error) {
	files, err := pinned.Embedded(fsys, dir, digest)
	if err != nil {
		return nil, err
	}
	s, err := openFiles(files, "", true)
	if err == nil {
		s.Needs.Table = "" // nobody can edit it, so no error is to say how
	}
	return s, err
}

func openFiles(files *pinned.Folder, dir string, builtin bool) (*Skill, error) {
	shown := filepath.ToSlash(dir)
	home := Home{Files: files, Dir: dir, File: path.Join(shown, FileName), Digest: files.Digest(), Builtin: builtin}
	switch {
	case files.Has(FileName):
		return openManifest(home, files)
	case files.Has(InstructionsName):
		home.File = path.Join(shown, InstructionsName)
		return openInstructions(home)
	}
	return nil, &sdk.Error{Kind: sdk.Invalid, Op: "manifest.Open", What: fmt.Sprintf("%q holds no skill", shown), Hint: "a skill has a " + FileName + " or a " + InstructionsName}
}

func openManifest(home Home, files *pinned.Folder) (*Skill, error) {
	data, err := home.read(FileName)
	if err != nil {
		return nil, err
	}
	r, err := read(home.File, data, home.Builtin)
	if err != nil {
		return nil, err
	}
	s := &r.out
	if home.Dir == "" { // an embedded skill is shown by its name
		if r, err = read(path.Join(s.Name, FileName), data, home.Builtin); err != nil {
			return nil, err
		}
		s = &r.out
		home.File = s.Home.File
	}
	s.Home = home
	names := files.Names()
	for _, ref := range r.refs {
		if err := ref.resolve(s, names); err != nil {
			return nil, err
		}
	}
	if err := r.bind(); err != nil { // the schemas are all there now
		return nil, err
	}
	if s.HasInstructions() {
		front, _, err := readInstructions(s)
		if err != nil {
			return nil, err
		}
		if front.Name != "" && front.Name != s.Name {
			s.Home.Warnings = append(front.Warnings, fmt.Sprintf("%s calls the skill %q, %s %q", InstructionsName, front.Name, FileName, s.Name))
		} else {
			s.Home.Warnings = front.Warnings
		}
	}
	return s, nil
}

// resolve finds the file of ref among names, and reads it if its content is
// wanted.
func (ref reference) resolve(s *Skill, names []string) error {
	if _, ok := slices.BinarySearch(names, ref.file); !ok {
		hint := words.Near(ref.file, names, "files of the skill")
		return &sdk.Error{Kind: sdk.Invalid, Op: ref.pos.String(), What: fmt.Sprintf("no file %q in the skill's directory", ref.file), Hint: hint}
	}
	if ref.set == nil {
		return nil
	}
	content, err := s.Home.read(ref.file)
	if err != nil {
		return err
	}
	return ref.set(s, content)
}

func openInstructions(home Home) (*Skill, error) {
	s := &Skill{Runtime: "instructions", Source: InstructionsName, Limits: DefaultLimits, Sandbox: Sandbox{Isolation: "call"}, Home: home}
	front, _, err := readInstructions(s)
	if err != nil {
		return nil, err
	}
	pos := capability.Pos{File: home.File, Line: 1}
	base := ""
	if home.Dir != "" {
		base = filepath.Base(home.Dir)
	}
	s.Home.Warnings = front.Warnings
	warn := func(format string, args ...any) {
		s.Home.Warnings = append(s.Home.Warnings, fmt.Sprintf(format, args...))
	}
	s.Name = front.Name
	switch {
	case words.IsSkillName(s.Name) && (base == "" || s.Name == base):
	case words.IsSkillName(s.Name):
		warn("the name %q is not that of the directory, %q", s.Name, base)
	case words.IsSkillName(base):
		warn("the name %q is missing or malformed: the directory's is taken, %q (%s)", words.Clip(s.Name), base, words.NameRule)
		s.Name = base
	default:
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: fmt.Sprintf("bad skill name %q", words.Clip(s.Name)), Hint: words.NameRule}
	}
	if strings.TrimSpace(front.Description) == "" {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: "the frontmatter has no description", Hint: "say what the skill does and when to use it"}
	}
	s.Description, s.License, s.Version = front.Description, front.License, front.Version
	if !words.IsVersion(s.Version) {
		s.Version = "0.0.0" // the format has no version; only a well-formed one under metadata counts
	}
	own, err := capability.Parse(capability.Filesystem, "read:"+capability.VarSkillDir, pos)
	if err != nil {
		return nil, err
	}
	s.Needs = capability.Layer{Name: "manifest", Pos: pos, Closed: true, Allow: capability.Set{own}}
	return s, nil
}
