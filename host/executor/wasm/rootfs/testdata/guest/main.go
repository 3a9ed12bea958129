// Command guest does to its file system what a Go tool would, and some of what
// it should not, and prints what came of it.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	say("read", read("/workspace/a.txt"))
	say("read relative", read("sub/b.txt"))
	say("read host path", read(os.Args[1]+"/ro/r.txt"))
	say("read link", read("/workspace/in"))
	say("write", os.WriteFile("out.txt", []byte("made by the guest"), 0o644))
	say("append", appendTo("out.txt", " and more"))
	say("reread", read("out.txt"))
	say("mkdirall", os.MkdirAll("/workspace/x/y/z", 0o755))
	say("mkdirall host path", os.MkdirAll(os.Args[1]+"/ws/x/y/w", 0o755))
	say("rename", os.Rename("out.txt", "x/y/renamed.txt"))
	say("symlink", os.Symlink("../y/renamed.txt", "/workspace/x/y/link"))
	say("through symlink", read("/workspace/x/y/link"))
	say("hard link", os.Link("x/y/renamed.txt", "x/hard"))
	say("chtimes", os.Chtimes("x/hard", time.Unix(1, 0), time.Unix(2, 0)))
	st, err := os.Stat("x/y/renamed.txt")
	say("stat", err)
	say("mtime", st.ModTime().Unix())
	say("temp", temp())
	say("list", list("/workspace/x"))
	say("list root", slices.Contains(list("/"), "workspace") && !slices.Contains(list("/"), "etc"))
	say("walk", walk("/workspace/x"))
	say("removeall", os.RemoveAll("/workspace/x"))
	say("gone", read("/workspace/x/hard"))
	say("dir handle", dirHandle())

	say("dotdot", read("../out/secret"))
	say("outside", read(os.Args[1]+"/out/secret"))
	say("passwd", read("/etc/passwd"))
	say("link out", read("/workspace/out-rel"))
	say("dir link out", list("/workspace/out-dir"))
	say("truncate read-only", os.Truncate(os.Args[1]+"/ro/r.txt", 0))
	say("create read-only", os.WriteFile(os.Args[1]+"/ro/new", nil, 0o600))
	say("evil symlink", os.Symlink("../out/secret", "/workspace/evil"))
	say("evil symlink abs", os.Symlink("/etc/passwd", "/workspace/evil"))
	_, err = os.Readlink("/workspace/out-abs")
	say("evil readlink", err)
	say("evil rename", os.Rename("/workspace/out-dir/secret", "/workspace/stolen"))
	say("evil dir handle", evilDirHandle())
	say("fd cap", fill())
}

func say(what string, result any) {
	var errno syscall.Errno
	if err, ok := result.(error); ok && errors.As(err, &errno) {
		result = errno
	}
	fmt.Printf("%s: %v\n", what, result)
}

func read(p string) any {
	data, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	return string(data)
}

func appendTo(p, s string) error {
	f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(s)
	return err
}

func temp() any {
	f, err := os.CreateTemp("/tmp", "x")
	if err != nil {
		return err
	}
	defer f.Close()
	return strings.HasPrefix(f.Name(), "/tmp/x")
}

func list(p string) []string {
	entries, err := os.ReadDir(p)
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func walk(p string) (n int) {
	filepath.WalkDir(p, func(string, fs.DirEntry, error) error { n++; return nil })
	return n
}

// dirHandle opens a file by a directory that it has open.
func dirHandle() any {
	root, err := os.OpenRoot("/workspace")
	if err != nil {
		return err
	}
	defer root.Close()
	data, err := root.ReadFile("sub/b.txt")
	if err != nil {
		return err
	}
	return string(data)
}

func evilDirHandle() any {
	f, err := os.Open("/workspace/sub")
	if err != nil {
		return err
	}
	defer f.Close()
	fd, err := syscall.Open("/workspace/sub/../out-dir", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err == nil {
		return fd
	}
	return err
}

// fill opens files until it may not.
func fill() any {
	for n := 0; ; n++ {
		if _, err := syscall.Open("/workspace/a.txt", syscall.O_RDONLY, 0); err != nil {
			return n
		}
	}
}
