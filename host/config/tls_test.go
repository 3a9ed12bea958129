package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// key_readable: a key that others can read is none.
func TestReadKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "key.pem"), "secret")
	mine := os.Getuid() != 0 // a file of root may be for a group
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o644: false, 0o604: false, 0o602: false, 0o620: false, 0o640: !mine, 0o660: false} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		b, err := ReadKey(name)
		if want && (err != nil || string(b) != "secret") {
			t.Errorf("mode %o: %v", mode, err)
		}
		if !want && (sdk.KindOf(err) != sdk.Denied || !strings.Contains(err.Error(), "others can read") || !strings.Contains(err.Error(), "chmod 600") || b != nil) {
			t.Errorf("mode %o: %q %v", mode, b, err)
		}
	}
	if !mine {
		if err := os.Chmod(name, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(name, 1507, 1507); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKey(name); sdk.KindOf(err) != sdk.Denied || !strings.Contains(err.Error(), "another user") {
			t.Errorf("another user's: %v", err)
		}
	}
	for _, name := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := ReadKey(name); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
