package native

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/skillhost/skill/host/capability"
)

// followed returns layers with what their deny lists lead to now. Layers are
// bound once for many calls, and links are made meanwhile.
func followed(layers []capability.Layer) []capability.Layer {
	r := resolver{}
	out := make([]capability.Layer, len(layers))
	for i, l := range layers {
		out[i] = l.Followed(r.real)
	}
	return out
}

// A resolver keeps the real paths of directories, "" where there is none: most
// paths that are denied have theirs with others in common.
type resolver map[string]string

// real returns the real path of the absolute slash path p.
func (r resolver) real(p string) (string, error) {
	dir, err := filepath.Dir(filepath.FromSlash(p)), error(nil)
	known, ok := r[dir]
	if !ok {
		if known, err = filepath.EvalSymlinks(dir); err != nil {
			known = ""
		}
		r[dir] = known
	}
	if known == "" {
		return "", fs.ErrNotExist
	}
	p = filepath.Join(known, filepath.Base(filepath.FromSlash(p)))
	info, err := os.Lstat(p)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		p, err = filepath.EvalSymlinks(p)
	}
	return filepath.ToSlash(p), err
}
