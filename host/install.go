package host

import (
	"embed"
	"fmt"
	"path"
	"slices"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/manifests"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/skills"
)

// install fills the catalog with the built-ins, the skill of Options.Folder
// and those of the directories. What is broken is left out and reported.
func (h *Host) install() error {
	digests := skills.Digests()
	for _, root := range []struct {
		files embed.FS
		dir   string
	}{{manifests.FS, "."}, {skills.Dist, "dist"}} {
		names, err := root.files.ReadDir(root.dir)
		if err != nil {
			return err
		}
		for _, n := range names {
			if !n.IsDir() {
				continue
			}
			s, err := manifest.OpenEmbedded(root.files, path.Join(root.dir, n.Name()), digests[n.Name()])
			if err != nil {
				return &sdk.Error{Kind: sdk.Internal, Op: "host.Open", What: "built-in " + n.Name(), Err: err}
			}
			if s.Runtime == "plugin" && !sandbox.Supported {
				continue // a tool that can never run would only lead a model astray
			}
			h.builtin = append(h.builtin, s)
		}
	}
	h.builtin = append(h.builtin, h.options.Extra.Skills...)
	if h.options.Folder != "" {
		s, err := catalog.Open(h.options.Folder)
		if err != nil {
			return err
		}
		if s == nil {
			return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no skill in %q", h.options.Folder), Hint: "a skill has a skill.toml or a SKILL.md"}
		}
		h.Folder, h.folder = s.Name, s
		h.builtin = append(h.builtin, s) // not Builtin: it is found before others of its name, and no more
	}
	for _, err := range missing() {
		fmt.Fprintln(h.options.Log, "skill:", err)
	}
	h.reload()
	return nil
}

// reload reads the skills again and drops the programs of those that are gone.
func (h *Host) reload() {
	before := h.Catalog.Skills()
	found, errs := catalog.Scan(slices.Concat(h.Config.Skills, h.Config.Found), before)
	changed, more := h.Catalog.Replace(append(slices.Clone(h.builtin), found...))
	errs = append(errs, more...)
	for _, err := range errs {
		fmt.Fprintln(h.options.Log, "skill:", err)
	}
	h.changes.problems(errs)
	now := h.Catalog.Skills()
	for _, old := range before {
		if !slices.ContainsFunc(now, func(s *manifest.Skill) bool { return s.Home.Digest == old.Home.Digest }) {
			h.Dispatcher.Forget(old.Home.Digest)
			if err := h.programs.Drop(old.Home.Digest); err != nil {
				fmt.Fprintln(h.options.Log, "skill:", err)
			}
		}
	}
	if changed {
		h.changes.announce()
	}
}

// Problems returns what was wrong with the skills when they were read last.
func (h *Host) Problems() []error {
	return append(missing(), h.changes.list()...)
}

// missing says which built-ins this binary was built without.
func missing() (errs []error) {
	for _, name := range skills.Missing() {
		errs = append(errs, &sdk.Error{Kind: sdk.Unavailable, What: "the built-in " + name + " is not in this binary", Hint: "build it with make build"})
	}
	return errs
}
