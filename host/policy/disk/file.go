// Package disk keeps the operator's policy: it reads the file if nobody else can
// have written it, reads it again when it changes, and replaces it whole. It does
// not know what the rules mean.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// Load reads the policy at path. If there is no such file the operator has
// said nothing, and the Policy is that of an empty one: built-in skills run as
// shipped, all others are refused. A file that others may write is refused,
// because it would not be the operator's word; so is a link that leads nowhere,
// because whoever made it has said something.
func Load(path string) (*policy.Policy, error) {
	p, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	if _, linked := os.Lstat(path); linked == nil {
		return nil, err
	}
	return policy.Read(path, nil)
}

// load is Load of what exists: otherwise the error is fs.ErrNotExist.
func load(path string) (*policy.Policy, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: path, What: "not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unavailable(path, "cannot be read", err)
	}
	defer f.Close()
	if err := trusted(f); err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: path, What: "not trusted", Err: err, Hint: "a policy is the operator's alone: chmod 600 it, and let the user or root own it"}
	}
	data, err := io.ReadAll(io.LimitReader(f, tomlfile.MaxSize+1))
	if err != nil {
		return nil, unavailable(path, "cannot be read", err)
	}
	return policy.Read(path, data)
}

// Write replaces the file at path by data, whole or not at all, readable
// by its owner only. If path is a link, the file that it leads to is replaced.
func Write(path string, data []byte) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unavailable(path, "cannot be written", err)
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // 0600
	if err != nil {
		return unavailable(path, "cannot be written", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = unavailable(path, "cannot be written", err)
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func unavailable(path, what string, err error) error {
	// The path is in err already, unless err is about another file.
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: path, What: fmt.Sprintf("the policy %s", what), Err: err}
}
