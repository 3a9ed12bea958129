package browser

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/skillhost/skill/sdk"
)

// names are what browsers that can be used are called, the lightest first.
var names = []string{"chromium-headless-shell", "chrome-headless-shell", "headless_shell", "headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"}

// homes are where the program behind a start script is, by the script's name.
var homes = []string{"/usr/lib/chromium", "/usr/lib64/chromium", "/usr/lib64/chromium-browser", "/usr/lib/chromium-browser", "/opt/google/chrome", "/opt/chromium.org/chromium"}

// ErrNone is the error of Find if there is no browser.
var ErrNone = &sdk.Error{Kind: sdk.NotFound, Op: "browser", What: "no headless browser is installed",
	Hint: `install chromium-headless-shell or chromium, or name one: [settings.web] browser = "/path" in config.toml`}

// Find returns the program of a browser: what asked names, a path or a name, or
// if it is "" the first known one on PATH. A start script is skipped for the
// program beside it, where that is known: all that it would do is to cost time.
func Find(asked string) (string, error) {
	if asked != "" {
		path, err := exec.LookPath(asked)
		if err != nil {
			return "", &sdk.Error{Kind: sdk.NotFound, Op: "browser", What: "the browser " + asked + " cannot be run here", Err: errors.Unwrap(err),
				Hint: "the skill web must be allowed to read it and to run it; see docs/readdocs.md"}
		}
		return behind(path), nil
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return behind(path), nil
		}
	}
	return "", ErrNone
}

// behind returns the program that the start script at path would run.
func behind(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return path
	}
	defer f.Close()
	var magic [2]byte
	if _, err := f.Read(magic[:]); err != nil || string(magic[:]) != "#!" {
		return path
	}
	base := filepath.Base(path)
	for _, home := range homes {
		for _, name := range []string{base, "chrome"} {
			if info, err := os.Stat(filepath.Join(home, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return filepath.Join(home, name)
			}
		}
	}
	return path
}
