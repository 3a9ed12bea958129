package native

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/sandbox/view"
	"github.com/skillhost/skill/sdk"
)

// unmade returns the denied paths that could come to exist: nothing is there,
// and the directory around it may be written. Nothing can be mounted over them,
// so whoever makes one is found out afterwards.
func unmade(layers []capability.Layer) (paths []string) {
	var write []string
	for _, r := range view.Granted(layers) {
		if r.Rights&view.Write != 0 {
			write = append(write, r.Path)
		}
	}
	for i := range layers {
		for _, c := range layers[i].Deny {
			beneath := func(root string) bool { return capability.Beneath(c.Pattern, root) }
			if c.Kind == capability.Filesystem && slices.ContainsFunc(write, beneath) && !slices.Contains(paths, c.Pattern) && !there(c.Pattern) {
				paths = append(paths, c.Pattern)
			}
		}
	}
	return paths
}

func there(path string) bool {
	_, err := os.Lstat(filepath.FromSlash(path))
	return !errors.Is(err, fs.ErrNotExist)
}

// made adds to the result of a call of p which denied paths exist since: they
// are what programs outside of the cage run or obey.
func (p *Plan) made(r sdk.Result) sdk.Result {
	var now []string
	for _, path := range p.absent {
		if there(path) {
			now = append(now, show(path))
		}
	}
	if len(now) == 0 {
		return r
	}
	text := "note: since this call began there is " + strings.Join(now, ", ") + ", which this tool may not write; look at it before a program outside of the cage uses it"
	r.Content = append(slices.Clip(r.Content), sdk.Content{Type: sdk.TypeText, Text: text})
	return r
}
