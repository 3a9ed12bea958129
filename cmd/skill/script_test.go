package main

import (
	"errors"
	"image"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs the transcripts of testdata/script against the binary. Each
// has a SKILL_HOME of its own, $H, and a workspace of its own, its directory.
// Besides testscript's commands there are:
//
//	exits N skill ARGS…     runs the binary and wants exit status N
//	install NAME…           copies example skills into $H/skills
//	replace FILES OLD NEW   replaces the only OLD in the files of that pattern
//	dropfirst FILES         removes the first file of that pattern
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Deadline:            time.Now().Add(5 * time.Minute),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "install": install, "replace": replace, "dropfirst": dropFirst},
		Setup: func(e *testscript.Env) error {
			work, err := filepath.EvalSymlinks(e.WorkDir)
			if err != nil {
				return err
			}
			home := filepath.Join(work, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			// The host refuses settings that others may write, which with some
			// umasks is what the runner extracts.
			err = filepath.WalkDir(work, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.Type()&fs.ModeSymlink != 0 {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				return os.Chmod(path, info.Mode().Perm()&^0o022)
			})
			if err != nil {
				return err
			}
			e.Setenv("H", home)
			e.Setenv("W", work)
			e.Setenv("SKILL_HOME", home)
			e.Setenv("HOME", built.dir) // a workspace must not hold it
			e.Setenv("PATH", built.bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			if err := writePNG(filepath.Join(work, "dot.png")); err != nil {
				return err
			}
			return linkCache(home)
		},
	})
}

func writePNG(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, image.NewGray(image.Rect(0, 0, 4, 3))), f.Close())
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var status *exec.ExitError
	if errors.As(err, &status) {
		got = status.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func install(ts *testscript.TestScript, neg bool, names []string) {
	if neg || len(names) == 0 {
		ts.Fatalf("usage: install NAME...")
	}
	for _, name := range names {
		ts.Check(copyTree(filepath.Join(ts.Getenv("H"), "skills", name), filepath.Join(built.skills, name)))
	}
}

func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	changed := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		ts.Check(err)
		switch n := strings.Count(string(data), args[1]); {
		case n > 1:
			ts.Fatalf("%q is %d times in %s", args[1], n, file)
		case n == 1:
			changed++
			ts.Check(os.WriteFile(file, []byte(strings.Replace(string(data), args[1], args[2], 1)), 0o600))
		}
	}
	if changed != 1 {
		ts.Fatalf("%q is in %d files of %v", args[1], changed, files)
	}
}

func dropFirst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dropfirst FILES")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) < 2 {
		ts.Fatalf("%d files", len(files))
	}
	ts.Check(os.Remove(files[0]))
}
