package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxFile bounds the file, bytes.
const maxFile = 20 << 20

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A place is where a file lies: as the caller knows it, and as it is opened.
type place struct {
	path string
	at   string
}

// resolve makes an absolute path of what the caller wrote.
func resolve(workspace, p string) (place, error) {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, `~\`):
		return place{}, problemf("%q: \"~\" is not expanded here (write the whole path, such as /home/you/picture.png)", p)
	case strings.Contains(p, "://"):
		return place{}, problemf("%q is a URL: this tool reads files (give the path of a file)", p)
	case strings.ContainsRune(p, 0):
		return place{}, problemf("%q: a path has no NUL", p)
	}
	if filepath.IsAbs(p) {
		p = filepath.Clean(p)
	} else if !beneath(p, workspace) { // else absolute on the host, which may be Windows
		p = filepath.Join(cmp.Or(workspace, mount), p)
	}
	if runtime.GOOS == "wasip1" && beneath(p, workspace) {
		// In the cage the workspace has this name too, wherever it lies; its
		// own may be hidden, as that of a folder in /tmp is.
		return place{p, path.Join(mount, strings.ReplaceAll(p[len(workspace):], `\`, "/"))}, nil
	}
	return place{p, p}, nil
}

// mount is the workspace in the cage.
const mount = "/workspace"

// beneath reports whether p is the folder dir or lies in it.
func beneath(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, strings.TrimRight(dir, `/\`))
	return ok && dir != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\')
}

// readFile reads a whole file, or says in words why not.
func readFile(p place) ([]byte, error) {
	path := p.path
	info, err := os.Stat(p.at)
	switch {
	case err != nil:
		return nil, unreadable(p, err)
	case info.IsDir():
		return nil, problemf("%q is a directory (give the path of an image file in it)", path)
	case !info.Mode().IsRegular():
		return nil, problemf("%q is not a regular file", path)
	case info.Size() > maxFile:
		return nil, problemf("%q is too large: %s, and at most %d MiB are read (make a smaller copy first)", path, amount(int(info.Size())), maxFile>>20)
	}
	f, err := os.Open(p.at)
	if err != nil {
		return nil, unreadable(p, err)
	}
	defer f.Close()
	data := make([]byte, 0, info.Size()+512)
	for len(data) <= maxFile {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, unreadable(p, err)
		}
		data = slices.Grow(data, 512)
	}
	switch {
	case len(data) > maxFile:
		return nil, problemf("%q grew past %d MiB while it was read", path, maxFile>>20)
	case len(data) == 0:
		return nil, problemf("%q is empty: it has 0 bytes", path)
	}
	return data, nil
}

func unreadable(p place, err error) error {
	path := p.path
	why := err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		why = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := ""
		if near := similar(p.at); len(near) > 0 {
			hint = " (similar names there: " + strings.Join(near, ", ") + ")"
		}
		return problemf("%q: no such file%s", path, hint)
	case errors.Is(err, fs.ErrPermission):
		return problemf("%q: %v: this tool may not read there (copy the image into the workspace, or ask the operator)", path, why)
	}
	return problemf("%q cannot be read: %v", path, why)
}

// similar returns up to three names beside path that path may have meant.
func similar(path string) []string {
	dir, want := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, e := range entries[:min(len(entries), 2000)] {
		d := distance(strings.ToLower(e.Name()), strings.ToLower(want))
		if !e.IsDir() && d <= max(2, len(want)/3) {
			near = append(near, candidate{e.Name(), d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, c := range near[:min(len(near), 3)] {
		names = append(names, `"`+c.name+`"`)
	}
	return names
}

// distance is the number of edits (Levenshtein) that make b of a.
func distance(a, b string) int {
	if len(a) > 255 || len(b) > 255 {
		return 255
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
