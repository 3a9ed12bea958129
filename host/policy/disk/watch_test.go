package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

var digestA = "sha256:" + strings.Repeat("a", 64)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func allows(p *policy.Policy, skill string) bool {
	return p.Authorize(policy.Request{Caller: "local:bob", Skill: skill, Digest: digestA, Tool: "x"}).Allowed
}

const allowHello = "[skills.hello]\nallow = true\ndigest = \"*\"\n"

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.toml")
	p, err := Load(path)
	if err != nil || allows(p, "hello") {
		t.Fatalf("no file: %v", err)
	}
	if d := p.Authorize(policy.Request{Skill: "hello"}); d.Pos.File != path {
		t.Errorf("the refusal does not say which file would allow: %+v", d)
	}
	write(t, path, allowHello)
	if p, err = Load(path); err != nil || !allows(p, "hello") {
		t.Fatalf("%v", err)
	}
	write(t, path, "[skills.hello]\nallow = maybe\n")
	if p, err = Load(path); p != nil || sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), path+":2: ") {
		t.Errorf("a broken file: %v", err)
	}
	if p, err = Load(filepath.Dir(path)); p != nil || err == nil {
		t.Errorf("a directory: %v", err)
	}
	write(t, path, strings.Repeat("#", 2<<20))
	if p, err = Load(path); p != nil || err == nil {
		t.Error("a file of 2 MiB is read")
	}
}

func TestLoadDistrusts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	path := filepath.Join(t.TempDir(), "policy.toml")
	write(t, path, allowHello)
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o400: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "lets others write it") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Log("only root can give a file away: the check of the owner is left out")
		return
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "user 12345 owns it") {
		t.Errorf("another user's file: %v", err)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	path := filepath.Join(dir, "policy.toml")
	for _, text := range []string{"# one\n", "# two\n"} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Write(filepath.Join(path, "x"), nil); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("below a file: %v", err)
	}
	link := filepath.Join(dir, "link.toml")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no links here:", err)
	}
	if err := Write(link, []byte("# three\n")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "# three\n" {
		t.Errorf("through a link: %q", got)
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.toml")
	write(t, path, allowHello)
	events := make(chan Event, 16)
	s, err := Watch(path, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := s.Policy()
	if !allows(first, "hello") {
		t.Fatal("the first snapshot")
	}
	// An editor renames over the file.
	tmp := filepath.Join(dir, "policy.toml~")
	write(t, tmp, allowHello+"[skills.other]\nallow = true\ndigest = \"*\"\n")
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Err != nil || e.Missing || e.Policy != s.Policy() || !allows(s.Policy(), "other") {
		t.Fatalf("%+v", e)
	}
	if allows(first, "other") {
		t.Error("a snapshot has changed")
	}
	// A broken file leaves the old rules in force, loudly.
	second := s.Policy()
	write(t, path, "[skills.hello]\nalow = true\n")
	if e := <-events; e.Err == nil || e.Policy != second || s.Policy() != second || !strings.Contains(e.Err.Error(), `unknown key "alow"`) {
		t.Fatalf("%+v", e)
	}
	// So does one that others may write.
	write(t, path, "")
	<-events
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
		if e := <-events; e.Err == nil {
			t.Fatalf("%+v", e)
		}
	}
	// A file that vanishes takes no rule with it.
	kept := s.Policy()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if e := <-events; sdk.KindOf(e.Err) != sdk.NotFound || !e.Missing || e.Policy != kept || s.Policy() != kept {
		t.Fatalf("%+v", e)
	}
	write(t, path, allowHello)
	if e := <-events; e.Err != nil || e.Missing || !allows(s.Policy(), "hello") {
		t.Fatalf("%+v", e)
	}
	if first, again := s.Close(), s.Close(); first != nil || again != nil || !allows(s.Policy(), "hello") {
		t.Error("after Close")
	}
}

// Where the operating system gives no notice, looking at the file must do: the
// directory does not exist when watching begins.
func TestWatchPolls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later", "policy.toml")
	events := make(chan Event, 1)
	s, err := Watch(path, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := Write(path, []byte(allowHello)); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Err != nil || !allows(s.Policy(), "hello") {
		t.Fatalf("%+v", e)
	}
}

// A policy that vanishes, or cannot be looked at, while the host runs must not
// set free what it denies: built-in skills need no word of the operator's.
func TestVanishedPolicyKeepsDenying(t *testing.T) {
	builtin := policy.Request{Caller: "local:bob", Skill: "run-command", Digest: digestA, Builtin: true, Tool: "x"}
	const forbids = "[skills.run-command]\nallow = false\n"
	vanish := map[string]func(dir, path string) error{
		"removed":         func(_, path string) error { return os.Remove(path) },
		"moved_away":      func(_, path string) error { return os.Rename(path, path+".old") },
		"folder_moved":    func(dir, _ string) error { return os.Rename(dir, dir+".old") },
		"dangling_link":   func(_, path string) error { return errors.Join(os.Remove(path), os.Symlink(path+".nowhere", path)) },
		"looping_link":    func(_, path string) error { return errors.Join(os.Remove(path), os.Symlink(path, path)) },
		"folder_replaced": func(dir, _ string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"folder_instead":  func(_, path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	}
	for name, how := range vanish {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("a watched folder cannot be moved, and links need a privilege")
			}
			dir := filepath.Join(t.TempDir(), "skill")
			path := filepath.Join(dir, "policy.toml")
			if err := Write(path, []byte(forbids)); err != nil {
				t.Fatal(err)
			}
			events := make(chan Event, 16)
			s, err := Watch(path, func(e Event) { events <- e })
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := how(dir, path); err != nil {
				t.Fatal(err)
			}
			e := <-events
			if e.Err == nil || e.Policy.Authorize(builtin).Allowed || s.Policy().Authorize(builtin).Allowed {
				t.Errorf("%+v", e)
			}
			if gone := errors.Is(e.Err, fs.ErrNotExist); e.Missing != gone {
				t.Errorf("missing: %v, %v", e.Missing, e.Err)
			}
		})
	}
	// A host that starts is given no more than the file system has, but a link
	// is somebody's word even if what it leads to is not there.
	path := filepath.Join(t.TempDir(), "policy.toml")
	if p, err := Load(path); err != nil || !p.Authorize(builtin).Allowed {
		t.Errorf("no file: %v", err)
	}
	if err := os.Symlink(path+".nowhere", path); err != nil {
		t.Skip("no links here:", err)
	}
	if p, err := Load(path); p != nil || err == nil {
		t.Errorf("a dangling link: %v, %v", p, err)
	}
}

func TestWatchRefusesToStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.toml")
	write(t, path, "[")
	s, err := Watch(path, nil)
	var e *sdk.Error
	if s != nil || !errors.As(err, &e) || e.Kind != sdk.Invalid {
		t.Errorf("%v", err)
	}
}
