package codedir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestSecure(t *testing.T) {
	base := t.TempDir()
	fresh := filepath.Join(base, "a", "fresh")
	if !Checked {
		if err := Secure(fresh); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("unchecked: %v, want an error of kind unavailable", err)
		}
		return
	}
	for range 2 { // made, then found
		if err := Secure(fresh); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	shared, readable := filepath.Join(base, "shared"), filepath.Join(base, "readable")
	file, link, below := filepath.Join(base, "file"), filepath.Join(base, "link"), filepath.Join(base, "file", "below")
	if err := errors.Join(
		os.Mkdir(shared, 0o700), os.Chmod(shared, 0o720),
		os.Mkdir(readable, 0o700), os.Chmod(readable, 0o704),
		os.WriteFile(file, nil, 0o600), os.Symlink(fresh, link),
	); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{shared, readable, file, link, below} {
		if err := Secure(dir); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("%s: got %v, want an error of kind unavailable", filepath.Base(dir), err)
		}
	}
	other := filepath.Join(base, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Chown(other, 12345, -1) != nil {
		return // only root can give a directory away
	}
	if err := Secure(other); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("other's: got %v, want an error of kind unavailable", err)
	}
}
