package journal

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// RemovedName is the file with the heads that wait for the next boot line.
const RemovedName = "removed.json"

// keySize is the size of a key in bytes.
const keySize = 32

// Removed returns the heads that wait for the next boot line.
func Removed(dir string) ([]Head, error) {
	b, err := os.ReadFile(filepath.Join(dir, RemovedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var heads []Head
	if err := json.Unmarshal(b, &heads); err != nil {
		return nil, fmt.Errorf("%s: %w", RemovedName, err)
	}
	return heads, nil
}

// SetRemoved replaces the heads that wait. The caller holds the directory's lock.
func SetRemoved(dir string, heads []Head) error {
	path := filepath.Join(dir, RemovedName)
	if len(heads) == 0 {
		return os.Remove(path)
	}
	b, err := json.Marshal(heads)
	if err != nil {
		return err
	}
	return writeFile(path, b)
}

// LoadKey returns the key in the file, which it makes if it is not there.
func LoadKey(path string) ([]byte, error) {
	if err := private(path, 0o600); err == nil {
		key, err := os.ReadFile(path)
		if err == nil && len(key) != keySize {
			err = fmt.Errorf("%d bytes instead of %d", len(key), keySize)
		}
		return key, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	return key, writeFile(path, key)
}

// writeFile puts a file in place whole, for its owner alone.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
