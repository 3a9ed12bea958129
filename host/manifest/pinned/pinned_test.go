package pinned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/skillhost/skill/sdk"
)

// folder writes files into a new directory called hello.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func pin(dir string) (*Folder, error) { return Pin(os.DirFS(dir), dir) }

func TestIsAFileSystem(t *testing.T) {
	p, err := pin(folder(t, map[string]string{"a": "x", "b/c": "", "b/d/e": "y", ".git/HEAD": "ref"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(p, "a", "b/c", "b/d/e"); err != nil {
		t.Error(err)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(p.Digest()) {
		t.Errorf("digest %q", p.Digest())
	}
	if names := p.Names(); len(names) != 3 || names[0] != "a" || names[2] != "b/d/e" || p.Has(".git/HEAD") || p.Has("b") {
		t.Errorf("names %q", names)
	}
}

// A device cannot be made by everybody, so the tree says that it is one.
func TestPinDevice(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeCharDevice | fs.ModeDevice, fs.ModeIrregular, fs.ModeSymlink} {
		if _, err := Pin(fstest.MapFS{"a": {}, "b": {Mode: mode}}, ""); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

// Every change of a file changes the digest, and nothing else does.
func TestDigest(t *testing.T) {
	base := map[string]string{"skill.toml": "name = 1", "hello.wasm": "abc", "a/b": "x", "a/c": ""}
	digest := func(files map[string]string) string {
		p, err := pin(folder(t, files))
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest()
	}
	with := func(name, content string) map[string]string {
		m := map[string]string{}
		for k, v := range base {
			m[k] = v
		}
		if m[name] = content; content == "-" {
			delete(m, name)
		}
		return m
	}
	seen := map[string]string{digest(base): "base"}
	for name, files := range map[string]map[string]string{
		"content": with("hello.wasm", "abd"), "longer": with("hello.wasm", "abc "), "added": with("new", ""), "added_hidden": with(".hidden", ""), "removed": with("a/c", "-"),
		"moved": func() map[string]string { m := with("a/b", "-"); m["ab"] = "x"; return m }(), "git_file": with(".git", "x"), "git_inside": with("a/.git/x", "x"), "swapped": func() map[string]string { m := with("a/b", ""); m["a/c"] = "x"; return m }(),
	} {
		d := digest(files)
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
	if d := digest(with(".git/HEAD", "ref")); seen[d] != "base" {
		t.Error("the folder .git counts")
	}
	dir := folder(t, base)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o755), os.Chmod(filepath.Join(dir, "hello.wasm"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if p, err := pin(dir); err != nil || seen[p.Digest()] != "base" {
		t.Errorf("an empty folder or a mode counts: %v", err)
	}
}

// What was approved by its digest is what is read.
func TestFilesArePinned(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"content_swapped": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "hello.wasm"), []byte("\x00ASM"), 0o644)
		},
		"content_appended": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "hello.wasm"), []byte("\x00asm!"), 0o644)
		},
		"content_truncated": func(dir string) error { return os.WriteFile(filepath.Join(dir, "hello.wasm"), nil, 0o644) },
		"removed":           func(dir string) error { return os.Remove(filepath.Join(dir, "hello.wasm")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"hello.wasm": "\x00asm", "schema/a.json": "{}"})
			p, err := pin(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if content, err := fs.ReadFile(p, "hello.wasm"); err == nil {
				t.Errorf("read %q", content)
			}
		})
	}
	dir := folder(t, map[string]string{"skill.toml": "x", "hello.wasm": "x", ".git/x": "y"})
	p, err := pin(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", ".git/x", ".git", "../hello/hello.wasm", "/etc/passwd"} {
		if _, err := p.Open(name); err == nil {
			t.Errorf("%s can be opened", name)
		}
	}
	list, err := fs.ReadDir(p, ".")
	if err != nil || len(list) != 2 {
		t.Errorf("listed: %v, %v", list, err)
	}
}
