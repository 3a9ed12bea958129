package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/sdk"
)

// What a guest says of its content names no file.
func TestSaveTraversal(t *testing.T) {
	for mime, want := range map[string]string{
		"image/png":                       "content-0.png",
		"image/PNG; charset=x":            "content-0.png",
		"image/x/../../../evil.desktop":   "content-0.bin",
		"image/../evil":                   "content-0.bin",
		"image/desktop":                   "content-0.bin",
		`image/..\..\evil`:                "content-0.bin",
		"image/png\x00.sh":                "content-0.bin",
		"image/" + strings.Repeat("a", 9): "content-0.bin",
		"":                                "content-0.bin",
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "a", "b", "content-0.x")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r := sdk.Result{Content: []sdk.Content{{Type: sdk.TypeImage, MIME: mime, Data: []byte("x")}}}
		if err := saveContent(&bytes.Buffer{}, filepath.Dir(dir), r); err != nil {
			t.Errorf("%q: %v", mime, err)
		}
		var found []string
		err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, path)
			}
			return err
		})
		if err != nil || len(found) != 1 || found[0] != filepath.Join(top, "a", "b", want) {
			t.Errorf("%q: %v %v", mime, found, err)
		}
	}
}

// A link that waits where the file would be is not followed.
func TestSaveLink(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "out"), filepath.Join(top, "in", "content-0.png")); err != nil {
		t.Skip(err)
	}
	r := sdk.Result{Content: []sdk.Content{{Type: sdk.TypeImage, MIME: "image/png", Data: []byte("x")}}}
	if err := saveContent(&bytes.Buffer{}, filepath.Join(top, "in"), r); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("%v, want an error of kind invalid", err)
	}
	if _, err := os.Lstat(filepath.Join(top, "out")); err == nil {
		t.Error("written through a link")
	}
}

// A tool that asks has done nothing: that is no success.
func TestQuestion(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		cmd := new(cobra.Command)
		cmd.SetOut(&out)
		g := &globals{json: asJSON}
		err := g.answer(cmd, sdk.Result{Questions: map[string]sdk.Question{"q": {Message: "Really?", Schema: []byte(`{}`)}}}, "")
		if exitCode(err) != 1 || err == nil || !strings.Contains(err.Error(), "elicitation") || !strings.Contains(out.String(), "Really?") {
			t.Errorf("json %v: %v\n%s", asJSON, err, out.String())
		}
	}
}
