package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/skillhost/skill/host/policy/disk"
	"github.com/skillhost/skill/sdk"
)

// editWait is how long a command waits for another one that edits the policy,
// which is a matter of milliseconds.
const editWait = 5 * time.Second

// editPolicy changes the policy file, which need not exist yet. Of two edits at
// the same time one waits for the other.
func editPolicy(ctx context.Context, file string, edit func([]byte) ([]byte, error)) error {
	unlock, err := lock(ctx, file+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return &sdk.Error{Kind: sdk.Unavailable, What: "the policy", Err: err}
	}
	if data, err = edit(data); err != nil {
		return err
	}
	return disk.Write(file, data)
}

// lock makes a file that says that somebody edits.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: "the policy", Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, editWait)
	defer cancel()
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(name) }, nil
		}
		removing := runtime.GOOS == "windows" && errors.Is(err, fs.ErrPermission)
		if !errors.Is(err, fs.ErrExist) && !removing {
			return nil, &sdk.Error{Kind: sdk.Unavailable, What: "the policy", Err: err}
		}
		select {
		case <-ctx.Done():
			return nil, &sdk.Error{Kind: sdk.Unavailable, What: "the policy", Err: err, Hint: "another command edits it; if none does, remove " + name}
		case <-time.After(10 * time.Millisecond):
		}
	}
}
