package native

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// removeTree removes the directory dir and all that is in it, whatever a guest
// made of it: directories without permission, very deep ones, links. No link is
// followed.
func removeTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	name := filepath.Base(dir)
	if err := open(parent, name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	top, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	err = flatten(top)
	return errors.Join(err, top.Close(), parent.Remove(name))
}

// flatten empties top. Directories are moved up into top before they are
// emptied, so that neither the depth of the tree nor the length of its paths
// matters: a guest may nest deeper than a path can say.
func flatten(top *os.Root) error {
	moved := 0
	for {
		names, err := list(top, ".")
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := drop(top, name, &moved); err != nil {
				return err
			}
		}
	}
}

// drop removes name from top. The directories in it come to lie in top.
func drop(top *os.Root, name string, moved *int) error {
	info, err := top.Lstat(name)
	if err != nil {
		return gone(err)
	}
	if !info.IsDir() {
		return gone(top.Remove(name))
	}
	if err := open(top, name); err != nil {
		return gone(err)
	}
	for {
		names, err := list(top, name)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return gone(top.Remove(name))
		}
		for _, n := range names {
			inner := path.Join(name, n)
			info, err := top.Lstat(inner)
			switch {
			case err != nil:
			case !info.IsDir():
				err = top.Remove(inner)
			default:
				err = raise(top, inner, moved)
			}
			if gone(err) != nil {
				return err
			}
		}
	}
}

// raise moves the directory inner up into top, under a name that is free.
func raise(top *os.Root, inner string, moved *int) error {
	if err := open(top, inner); err != nil { // a directory must be writable to get another parent
		return err
	}
	for {
		*moved++
		name := ".moved-" + strconv.Itoa(*moved)
		if _, err := top.Lstat(name); err == nil {
			continue
		}
		return top.Rename(inner, name)
	}
}

// open gives the owner of the directory name, which is no link, every
// permission.
func open(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	if err == nil && info.Mode().Perm()&0o700 != 0o700 {
		err = dir.Chmod(name, 0o700)
	}
	return err
}

// list returns some of the names in the directory name, or none if it is empty.
func list(dir *os.Root, name string) ([]string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(1024)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// gone is err, unless that says that there is nothing to remove any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
