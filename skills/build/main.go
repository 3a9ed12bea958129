// Build compiles the WASM skills of this repository: the built-in ones into
// skills/dist, where the binary embeds them, and the examples beside their
// sources. The same sources and the same Go give the same bytes, on every
// machine.
//
//	go run ./skills/build
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/skillhost/skill/host/manifest"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "skills/build:", err)
		os.Exit(1)
	}
}

// run builds everything and reports on w.
func run(w io.Writer) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if err := builtins(root, filepath.Join(root, "skills", "dist"), w); err != nil {
		return err
	}
	return examples(root, w)
}

// moduleRoot is the directory of go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("not in a Go module: run it in the repository")
	}
	return filepath.Dir(mod), nil
}

// builtins compiles every skill of the folder skills into a folder of dist,
// and writes their digests.
func builtins(root, dist string, w io.Writer) error {
	dirs, err := skillsIn(filepath.Join(root, "skills"), manifest.ReadBuiltin)
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, dir := range dirs {
		s, err := pack(dir, dist)
		if err != nil {
			return err
		}
		digests[s.Name] = s.Home.Digest
		report(w, filepath.Join(dist, s.Name, s.Source))
	}
	if err := sweep(dist, digests); err != nil {
		return err
	}
	data, err := json.MarshalIndent(digests, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, "digests.json"), append(data, '\n'), 0o644)
}

// sweep removes the folders of dist that no skill has: those of skills that are
// gone, and of builds that were killed.
func sweep(dist string, skills map[string]string) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := skills[e.Name()]; e.IsDir() && !ok {
			if err := os.RemoveAll(filepath.Join(dist, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// skillsIn lists the directories in dir that hold a WASM skill, as read finds
// its manifest.
func skillsIn(dir string, read reader) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", manifest.FileName))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, f := range files {
		s, err := readManifest(f, read)
		if err != nil {
			return nil, err
		}
		if s.Runtime == "wasm" {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	return dirs, nil
}

// A reader is manifest.Read, or manifest.ReadBuiltin.
type reader func(file string, data []byte) (manifest.Skill, error)

func readManifest(file string, read reader) (manifest.Skill, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return manifest.Skill{}, err
	}
	return read(file, data)
}

// pack puts the skill of dir into dist: its module and what the host reads,
// not its sources. The folder appears whole or not at all.
func pack(dir, dist string) (*manifest.Skill, error) {
	s, err := readManifest(filepath.Join(dir, manifest.FileName), manifest.ReadBuiltin)
	if err != nil {
		return nil, err
	}
	if s.Name != filepath.Base(dir) {
		return nil, fmt.Errorf("%s: the skill is called %q", dir, s.Name)
	}
	tmp, err := os.MkdirTemp(dist, ".building-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{manifest.FileName, manifest.InstructionsName} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) && name != manifest.FileName {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), data, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := compile(dir, &s, filepath.Join(tmp, s.Source)); err != nil {
		return nil, err
	}
	packed, err := manifest.OpenBuiltin(os.DirFS(tmp))
	if err != nil {
		return nil, err
	}
	final := filepath.Join(dist, s.Name)
	if err := os.RemoveAll(final); err != nil {
		return nil, err
	}
	return packed, os.Rename(tmp, final)
}

func report(w io.Writer, file string) {
	if info, err := os.Stat(file); err == nil {
		fmt.Fprintf(w, "%s  %.1f MB\n", file, float64(info.Size())/1e6)
	}
}

// examples compiles the examples beside their sources. One that needs a
// compiler which is not here is left out, loudly, but not in CI.
func examples(root string, w io.Writer) error {
	dirs, err := skillsIn(filepath.Join(root, "examples"), manifest.Read)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		s, err := readManifest(filepath.Join(dir, manifest.FileName), manifest.Read)
		if err != nil {
			return err
		}
		out := filepath.Join(dir, s.Source)
		switch err := compile(dir, &s, out); {
		case errors.Is(err, errNoClang) && os.Getenv("CI") != "true":
			fmt.Fprintf(w, "LEFT OUT %s: %v\n", dir, err)
		case err != nil:
			return err
		default:
			report(w, out)
		}
	}
	return nil
}
