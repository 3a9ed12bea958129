// Plugin-go is one source file that is two skills: built for this machine it is
// a native plugin, built with GOOS=wasip1 GOARCH=wasm a WASM skill.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/plugin"
)

type where struct {
	Dir string `json:"dir,omitempty" doc:"a directory of the workspace; the workspace itself if it is left out"`
	Top int    `json:"top,omitempty" doc:"how many files" min:"1" max:"100" default:"5"`
}

type file struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

type largest struct {
	Files []file `json:"files"`
	Total int64  `json:"total" doc:"bytes of all files"`
}

func (l largest) String() string {
	s := fmt.Sprintf("%d bytes in all\n", l.Total)
	for _, f := range l.Files {
		s += fmt.Sprintf("%d %s\n", f.Bytes, f.Path)
	}
	return s
}

var _ = guest.Tool("largest", "Find the largest files of the workspace", find, guest.Title("Largest files"),
	guest.Annotations{ReadOnly: true, Idempotent: true})

func find(c *guest.Call, in where) (largest, error) {
	root := "/workspace"
	if w := c.Scope().Workspace; w != "" {
		root = w // a plugin has no aliases at every level of confinement
	}
	var out largest
	err := filepath.WalkDir(filepath.Join(root, in.Dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			c.Log("warning", err.Error())
			return nil
		}
		if c.Cancelled() {
			return &sdk.Error{Kind: sdk.Limit, What: "the workspace is too large for the time that there is"}
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out.Files = append(out.Files, file{filepath.ToSlash(rel), info.Size()})
			out.Total += info.Size()
		}
		return nil
	})
	sort.Slice(out.Files, func(i, j int) bool {
		a, b := out.Files[i], out.Files[j]
		return a.Bytes > b.Bytes || a.Bytes == b.Bytes && a.Path < b.Path
	})
	out.Files = out.Files[:min(len(out.Files), in.Top)]
	return out, err
}

func main() { plugin.Serve() }
