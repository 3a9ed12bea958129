package command

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/skillhost/skill/sdk"
)

// searchPath is where a program without a path is looked for, in this order. It
// is the guests' own PATH; that of the host does not count.
var searchPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// maxProgram bounds the size of a program, in bytes: it is hashed.
const maxProgram = 1 << 30

// A binary is the file of a program as it was when the skill was loaded.
type binary struct {
	name string // as the manifest has it
	path string // without links
	sum  [sha256.Size]byte

	mu   sync.Mutex
	file *os.File // nil once closed
	id   identity
}

// find finds the program name, which is a path or is looked for in dirs, and
// opens it.
func find(name string, dirs []string) (*binary, error) {
	candidates := []string{name}
	if !path.IsAbs(name) {
		candidates = nil
		for _, d := range dirs {
			candidates = append(candidates, path.Join(d, name))
		}
	}
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		if err != nil {
			continue
		}
		b := &binary{name: name, path: real}
		if b.file, b.id, err = openProgram(real); err != nil {
			return nil, err
		}
		if b.sum, err = digest(b.file); err != nil {
			b.file.Close()
			return nil, unreadable(real, err)
		}
		return b, nil
	}
	hint := "install it"
	if !path.IsAbs(name) {
		hint += "; it is looked for in " + strings.Join(dirs, ", ")
	}
	return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "command.Load", What: fmt.Sprintf("the program %q is not on this machine", name), Hint: hint}
}

// openProgram opens the file at real and checks that it is a program that only
// root and the host's user could have written.
func openProgram(real string) (*os.File, identity, error) {
	f, err := os.OpenFile(real, os.O_RDONLY|nonblock, 0) // a pipe must not make the host wait
	if err != nil {
		return nil, identity{}, unreadable(real, err)
	}
	info, err := f.Stat()
	var id identity
	if err == nil {
		id, err = identify(f)
	}
	why := ""
	switch {
	case err != nil:
		f.Close()
		return nil, id, unreadable(real, err)
	case !info.Mode().IsRegular():
		why = "it is no file"
	case info.Mode().Perm()&0o111 == 0:
		why = "it is not executable"
	case info.Mode().Perm()&0o022 != 0:
		why = "others than its owner may write to it"
	case !id.trusted():
		why = "it belongs to another user"
	case info.Size() > maxProgram:
		why = "it is too large"
	}
	if why == "" {
		return f, id, nil
	}
	f.Close()
	return nil, id, &sdk.Error{Kind: sdk.Invalid, Op: "command.Load", What: fmt.Sprintf("the program %q must not be run: %s", real, why)}
}

func digest(f *os.File) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if _, err = io.Copy(h, io.NewSectionReader(f, 0, maxProgram)); err == nil {
		h.Sum(sum[:0])
	}
	return sum, err
}

// open returns the file to be executed, which the caller closes. The error has
// kind Unavailable if what is there is no longer what was loaded. A file that
// was merely replaced by its equal, as a package manager does, is taken.
func (b *binary) open() (*os.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := func(err error) error {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "command.Run", What: fmt.Sprintf("the program %q has changed since the skill was loaded", b.path), Err: err,
			Hint: "if it was you who updated it, restart the host"}
	}
	if b.file == nil {
		return nil, changed(os.ErrClosed)
	}
	if now, err := identifyPath(b.path); err != nil {
		return nil, changed(err)
	} else if now != b.id {
		f, id, err := openProgram(b.path)
		if err != nil {
			return nil, changed(err)
		}
		if sum, err := digest(f); err != nil || sum != b.sum {
			f.Close()
			return nil, changed(err)
		}
		b.file.Close()
		b.file, b.id = f, id
	}
	f, err := duplicate(b.file)
	if err != nil {
		return nil, unreadable(b.path, err)
	}
	return f, nil
}

func (b *binary) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}

func unreadable(path string, err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "command.Load", What: fmt.Sprintf("the program %q cannot be read", path), Err: err}
}
