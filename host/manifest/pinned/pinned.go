// Package pinned holds a skill's directory as it was when its digest was taken.
// A file that has changed since, or was not there, cannot be opened: what was
// approved by its digest is what runs. Nothing in the directory may lead out of
// it.
//
// It does not know what the files mean, or which of them a skill needs.
package pinned

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

// Bounds of a skill's directory.
const (
	MaxFiles   = 2048
	MaxContent = 256 << 20 // bytes, of all files
	maxPath    = 512       // bytes, of a path in the directory
)

// A Folder is a skill's directory as it was when Pin read it: an fs.FS whose
// errors have kind Invalid for what has changed, and Unavailable for what cannot
// be read.
type Folder struct {
	fsys  fs.FS
	shown string // the directory, for messages
	names []string
	files map[string]file
	known string // the digest, if the files were not read for it
}

type file struct {
	size int64
	sum  [sha256.Size]byte
}

// Pin reads every file of fsys, which messages call shown. Only the folder .git
// at its root is left out, and then nothing in it can be opened either. Errors
// have kind Invalid, for example for a symbolic link, or Unavailable.
func Pin(fsys fs.FS, shown string) (*Folder, error) { return pinAs(fsys, shown, "") }

// Embedded is Pin for files that are part of this binary, whose digest its build
// has computed: they cannot change, and reading megabytes of them at every start
// would tell nothing new.
func Embedded(fsys embed.FS, dir, digest string) (*Folder, error) {
	sub, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, err
	}
	return pinAs(sub, "", digest)
}

func pinAs(fsys fs.FS, shown, known string) (*Folder, error) {
	p := &Folder{fsys: fsys, shown: shown, files: map[string]file{}, known: known}
	var total int64
	entries := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return p.unreadable(name, err)
		}
		if entries++; entries > 4*MaxFiles {
			return p.bad(name, "the directory has too many folders", fmt.Sprintf("at most %d files in a skill", MaxFiles))
		}
		switch {
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case name != "." && (!utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || len(name) > maxPath):
			return p.bad(name, "a control character in the name, or more than 512 bytes", "rename it")
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			return p.bad(name, "a symbolic link", "put the file itself here: the skill's digest covers files, not what links lead to")
		case !d.Type().IsRegular():
			return p.bad(name, "neither a file nor a folder", "remove it: a skill holds no devices, pipes or sockets")
		case len(p.names) == MaxFiles:
			return p.bad(name, "the directory has too many files", fmt.Sprintf("at most %d in a skill", MaxFiles))
		}
		f, err := p.measure(name, d, MaxContent-total)
		if err != nil {
			return err
		}
		total += f.size
		p.names = append(p.names, name)
		p.files[name] = f
		return nil
	})
	slices.Sort(p.names)
	return p, err
}

// measure is hash, or only the size of a file whose content is known.
func (p *Folder) measure(name string, d fs.DirEntry, most int64) (f file, err error) {
	if p.known == "" {
		return p.hash(name, most)
	}
	info, err := d.Info()
	if err != nil {
		return f, p.unreadable(name, err)
	}
	f.size = info.Size()
	return f, nil
}

// hash reads one file, of at most most bytes.
func (p *Folder) hash(name string, most int64) (f file, err error) {
	r, err := p.fsys.Open(name)
	if err != nil {
		return f, p.unreadable(name, err)
	}
	defer r.Close()
	if st, err := r.Stat(); err != nil || !st.Mode().IsRegular() {
		return f, p.bad(name, "no longer a file", "")
	}
	h := sha256.New()
	if f.size, err = io.Copy(h, io.LimitReader(r, most+1)); err != nil {
		return f, p.unreadable(name, err)
	}
	if f.size > most {
		return f, p.bad(name, "the directory is too large", fmt.Sprintf("at most %d MiB in a skill", MaxContent>>20))
	}
	h.Sum(f.sum[:0])
	return f, nil
}

// Digest is the skill's, as "sha256:" and 64 hex digits: over path, size and content of every file. Times,
// modes and empty folders do not count.
func (p *Folder) Digest() string {
	if p.known != "" {
		return p.known
	}
	h := sha256.New()
	io.WriteString(h, "skill files 1\n")
	for _, name := range p.names {
		f := p.files[name]
		fmt.Fprintf(h, "%s\x00%d\x00%x\n", name, f.size, f.sum)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Names lists the files, sorted, with slashes between folders.
func (p *Folder) Names() []string { return slices.Clone(p.names) }

// Has reports whether a file of that name was pinned.
func (p *Folder) Has(name string) bool {
	_, ok := p.files[name]
	return ok
}

// Open opens a file as it was pinned, or a folder.
func (p *Folder) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if p.Has(name) {
		content, err := p.ReadFile(name)
		if err != nil {
			return nil, err
		}
		return &openFile{bytes.NewReader(content), fileInfo{path.Base(name), int64(len(content))}}, nil
	}
	list, err := p.ReadDir(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	info, err := p.Stat(name)
	return &openDir{list, info}, err
}

// isDir reports whether name is a folder that holds a pinned file.
func (p *Folder) isDir(name string) bool {
	if name == "." {
		return true
	}
	i, _ := slices.BinarySearch(p.names, name+"/")
	return i < len(p.names) && strings.HasPrefix(p.names[i], name+"/")
}

// ReadFile reads a file and checks that it is still the one that was pinned.
func (p *Folder) ReadFile(name string) ([]byte, error) {
	want, ok := p.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	r, err := p.fsys.Open(name)
	if err != nil {
		return nil, p.unreadable(name, err)
	}
	defer r.Close()
	content := make([]byte, want.size)
	n, err := io.ReadFull(r, content)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, p.unreadable(name, err)
	}
	more, _ := r.Read(make([]byte, 1))
	if int64(n) != want.size || more != 0 || p.known == "" && sha256.Sum256(content) != want.sum {
		return nil, p.bad(name, "the file has changed since the skill was loaded", "reload the skill")
	}
	return content, nil
}

func (p *Folder) bad(name, why, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: "manifest.Open", What: fmt.Sprintf("%q: %s", path.Join(p.shown, name), why), Hint: hint}
}

func (p *Folder) unreadable(name string, err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "manifest.Open", What: fmt.Sprintf("%q cannot be read", path.Join(p.shown, name)), Err: err}
}

// ReadDir lists the files and folders that were pinned.
func (p *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	if !p.isDir(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	list, err := fs.ReadDir(p.fsys, name)
	var out []fs.DirEntry
	for _, d := range list {
		at := path.Join(name, d.Name())
		if f, ok := p.files[at]; ok {
			out = append(out, fs.FileInfoToDirEntry(fileInfo{d.Name(), f.size}))
		} else if p.isDir(at) {
			out = append(out, d)
		}
	}
	return out, err
}

// openFile is a pinned file that has been opened: its content is at hand.
type openFile struct {
	*bytes.Reader
	info fileInfo
}

// Stat describes the file.
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close does nothing: the content is in memory.
func (f *openFile) Close() error { return nil }

// openDir is a folder that has been opened.
type openDir struct {
	rest []fs.DirEntry
	info fs.FileInfo
}

// Stat describes the folder.
func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read fails: a folder has no content.
func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: fs.ErrInvalid}
}

// Close does nothing.
func (d *openDir) Close() error { return nil }

// ReadDir lists up to n entries, or all if n is not positive.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	list := d.rest[:min(n, len(d.rest))]
	d.rest = d.rest[len(list):]
	return list, nil
}

// fileInfo describes a pinned file: what the digest does not cover, it does
// not say.
type fileInfo struct {
	name string
	size int64
}

// Stat describes a file without reading it, or a folder.
func (p *Folder) Stat(name string) (fs.FileInfo, error) {
	if f, ok := p.files[name]; ok {
		return fileInfo{path.Base(name), f.size}, nil
	}
	if !p.isDir(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fs.Stat(p.fsys, name)
}

func (f fileInfo) Name() string     { return f.name }
func (f fileInfo) Size() int64      { return f.size }
func (fileInfo) Mode() fs.FileMode  { return 0o444 }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (fileInfo) IsDir() bool        { return false }
func (fileInfo) Sys() any           { return nil }
