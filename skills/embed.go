// Package skills holds the built-in WASM skills: their manifests and their
// compiled modules, embedded in the binary. It does not read manifests, and it
// does not know what runs a module.
//
// Modules are generated (go run ./skills/build) and not committed. A binary
// built without them lacks those skills, and Missing says which.
package skills

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
)

// Dist has a folder "dist" with one folder for each built-in skill that was
// compiled, such as "dist/read-image", that holds nothing but the skill's files.
//
//go:embed all:dist
var Dist embed.FS

// sources names the skills that there are in the source tree.
//
//go:embed */skill.toml
var sources embed.FS

// Missing lists the built-in skills that are in the source tree, but whose
// modules are not in this binary.
func Missing() []string { return slices.DeleteFunc(all(), built) }

func all() []string {
	paths, err := fs.Glob(sources, "*/skill.toml")
	if err != nil { // a constant pattern: cannot happen
		panic(err)
	}
	names := make([]string, 0, len(paths))
	for _, p := range paths {
		names = append(names, path.Dir(p))
	}
	slices.Sort(names)
	return names
}

// built reports whether the folder of a skill is there. The build puts it in
// place whole.
func built(name string) bool {
	_, err := fs.Stat(Dist, "dist/"+name+"/skill.toml")
	return err == nil
}

// Digests returns the digest of each skill in FS as manifest.Open computes it,
// so that whoever knows these files need not read them all at every start. It
// is empty in a binary without built-in skills.
func Digests() map[string]string {
	digests := map[string]string{}
	if data, err := Dist.ReadFile("dist/digests.json"); err == nil {
		if err := json.Unmarshal(data, &digests); err != nil {
			return map[string]string{}
		}
	}
	return digests
}
