package plugin

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks bounds how many scripts run each other.
const maxLinks = 4

// interpreters returns the paths of the programs that run f, if f is a script:
// what its first line names, and if that is env, what env looks for; of a link,
// such as /bin/sh, that and the real one. A program that is not there is left
// out: the start fails, and says so.
func interpreters(f io.ReaderAt) []string {
	var out []string
	words := shebang(f)
	for range maxLinks {
		if len(words) == 0 {
			break
		}
		path, rest := words[0], words[1:]
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) {
			break
		}
		for _, p := range []string{filepath.Clean(path), real} {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		if filepath.Base(path) == "env" {
			words = looked(rest)
			continue
		}
		words = nil
		if g, err := os.Open(real); err == nil { // an interpreter may be a script
			words = shebang(g)
			g.Close()
		}
	}
	return out
}

// shebang returns the words of the first line of a script, or nil.
func shebang(f io.ReaderAt) []string {
	line, err := bufio.NewReader(io.NewSectionReader(f, 0, 256)).ReadString('\n') // as much as Linux reads
	text, ok := strings.CutPrefix(line, "#!")
	if !ok || err != nil {
		return nil
	}
	return strings.Fields(text)
}

// looked returns the path of what env runs when it is given args.
func looked(args []string) []string {
	for _, a := range args {
		if strings.HasPrefix(a, "-") || strings.Contains(a, "=") {
			continue
		}
		path, err := find(a)
		if err != nil {
			return nil
		}
		return []string{path}
	}
	return nil
}

// dirs are where a native guest looks for programs.
var dirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

func find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, d := range dirs {
		if path, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
