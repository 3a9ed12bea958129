package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

type env map[string]string

func (e env) get(name string) (string, bool) { v, ok := e[name]; return v, ok }

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	home := t.TempDir()
	c, err := load(Flags{}, env{"SKILL_HOME": home}.get, "")
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if c.Audit != (Audit{"kernel", "shape", 90 * 24 * time.Hour, 1 << 30, 64 << 20}) || c.Names.Separator != "." || c.Store.Backend != "sqlite" || !c.WASM.Warm {
		t.Errorf("%+v", c)
	}
	if c.Workspace != (Workspace{cwd, false}) {
		t.Errorf("workspace %+v", c.Workspace)
	}
	in := func(p string) string { return filepath.Join(home, p) }
	p := c.Paths
	if p.Config != home || p.File != in("config.toml") || p.Policy != in("policy.toml") || p.State != in("state") || p.Audit != in("audit") || p.Cache != in("cache") || p.Skills != in("skills") {
		t.Errorf("paths %+v", p)
	}
	if !reflect.DeepEqual(c.Skills, []string{in("skills")}) {
		t.Errorf("skills %v", c.Skills)
	}
	for _, s := range Settings() {
		if c.Origins[s.Key] != "default" {
			t.Errorf("%s comes from %q", s.Key, c.Origins[s.Key])
		}
	}
}

// Each source outranks those before it, and every subset of them works.
func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	system := write(t, filepath.Join(dir, "etc", "config.toml"), "policy = \"system.toml\"\n")
	for mask := range 16 {
		home := filepath.Join(dir, "home")
		e, f, sys := env{"SKILL_HOME": home}, Flags{}, ""
		want, origin := filepath.Join(home, "policy.toml"), "default"
		if mask&1 != 0 {
			sys, want, origin = system, filepath.Join(dir, "etc", "system.toml"), system+":1"
		}
		user := filepath.Join(home, "config.toml")
		if err := os.RemoveAll(user); err != nil {
			t.Fatal(err)
		}
		if mask&2 != 0 {
			write(t, user, "# mine\npolicy = \"user.toml\"\n")
			want, origin = filepath.Join(home, "user.toml"), user+":2"
		}
		if mask&4 != 0 {
			want, origin = filepath.Join(dir, "env.toml"), "SKILL_POLICY"
			e["SKILL_POLICY"] = want
		}
		if mask&8 != 0 {
			want, origin = filepath.Join(dir, "flag.toml"), "--policy"
			f.Policy = want
		}
		c, err := load(f, e.get, sys)
		if err != nil {
			t.Fatalf("%04b: %v", mask, err)
		}
		if c.Paths.Policy != want || c.Origins["policy"] != origin {
			t.Errorf("%04b: got %q from %q, want %q from %q", mask, c.Paths.Policy, c.Origins["policy"], want, origin)
		}
	}
}

// Every setting can be given in a file and as a variable, and is checked.
func TestEverySetting(t *testing.T) {
	good := map[string][2]string{ // as a variable, and in the file
		"policy": {"/p.toml", `"/p.toml"`}, "skills": {"/a" + string(filepath.ListSeparator) + "/b", `["/a", "/b"]`}, "workspace": {"/w", `"/w"`},
		"audit.durability": {"disk", `"disk"`}, "audit.params": {"redacted", `"redacted"`}, "audit.max_age": {"36h", `"36h"`},
		"audit.max_size": {"0", `"0"`}, "audit.rotate": {"1MiB", `"1MiB"`}, "names.separator": {"__", `"__"`}, "names.bare": {"a b", `["a", "b"]`},
		"store.backend": {"memory", `"memory"`}, "wasm.warm": {"false", "false"},
		"questions.channels": {"tty page", `["tty", "page"]`},
	}
	maps.Copy(good, goodHTTP)
	maps.Copy(good, goodOffer)
	maps.Copy(good, goodTasks)
	bad := map[string][2]string{
		"audit.durability": {"none", `"none"`}, "audit.params": {"full", `"full"`}, "audit.max_age": {"-1h", `"ninety"`}, "audit.max_size": {"1GB", `"1e9"`},
		"audit.rotate": {"1KiB", `"1KiB"`}, "names.separator": {"/", `"-"`}, "names.bare": {"a a", `["a", "a"]`}, "store.backend": {"redis", `"redis"`}, "wasm.warm": {"yes", `"true"`},
		"questions.channels": {"page none", `["post"]`},
	}
	maps.Copy(bad, badHTTP)
	maps.Copy(bad, badOffer)
	maps.Copy(bad, badTasks)
	for _, s := range Settings() {
		g, ok := good[s.Key]
		if !ok {
			t.Fatalf("no example of %s", s.Key)
		}
		if s.Doc == "" || s.Variable != "SKILL_"+strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_")) {
			t.Errorf("%+v", s)
		}
		home := t.TempDir()
		byEnv, err := load(Flags{}, env{"SKILL_HOME": home, s.Variable: g[0]}.get, "")
		if err != nil || byEnv.Origins[s.Key] != s.Variable {
			t.Errorf("%s: %v, from %q", s.Variable, err, byEnv.Origins[s.Key])
		}
		file := write(t, filepath.Join(home, "config.toml"), s.Key+" = "+g[1]+"\n")
		byFile, err := load(Flags{}, env{"SKILL_HOME": home}.get, "")
		if err != nil || byFile.Origins[s.Key] != file+":1" {
			t.Errorf("%s: %v, from %q", s.Key, err, byFile.Origins[s.Key])
		}
		byEnv.Origins, byFile.Origins = nil, nil
		if !reflect.DeepEqual(byEnv, byFile) {
			t.Errorf("%s: the variable gives %+v, the file %+v", s.Key, byEnv, byFile)
		}
		b, ok := bad[s.Key]
		if !ok {
			continue
		}
		if _, err := load(Flags{}, env{"SKILL_HOME": t.TempDir(), s.Variable: b[0]}.get, ""); sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), s.Variable+": ") {
			t.Errorf("%s=%s: %v", s.Variable, b[0], err)
		}
		write(t, file, "\n"+s.Key+" = "+b[1]+"\n")
		if _, err := load(Flags{}, env{"SKILL_HOME": home}.get, ""); sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), file+":2: ") {
			t.Errorf("%s = %s: %v", s.Key, b[1], err)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	home := env{"SKILL_HOME": dir}
	tests := []struct{ name, text, want string }{
		{"unknown_key", "[audit]\ndurabilty = \"disk\"", `:2: unknown key "durabilty" in [audit] (did you mean "durability"?`},
		{"unknown_table", "[policy2]\nx = 1", `unknown key "policy2"`},
		{"near_value", "[audit]\ndurability = \"dsk\"", `did you mean disk`},
		{"two_paths_in_one", "skills = [\"/a" + string(filepath.ListSeparator) + "/b\"]", `:1: skills: "/a`},
		{"wrong_type", "workspace = 1", `:1: workspace: want a string`},
	}
	for _, tt := range tests {
		file := write(t, filepath.Join(dir, "config.toml"), tt.text)
		if _, err := load(Flags{}, home.get, ""); err == nil || !strings.HasPrefix(err.Error(), file) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	for name, f := range map[string]Flags{"absent": {Config: filepath.Join(dir, "nowhere.toml")}, "directory": {Config: dir}} {
		if _, err := load(f, home.get, ""); err == nil {
			t.Errorf("%s: a settings file that was asked for may be missing", name)
		}
	}
	other := write(t, filepath.Join(dir, "other", "c.toml"), "skills = [\"../mine\", \"/abs\"]\nworkspace = \".\"\n")
	c, err := load(Flags{Config: other, Skills: []string{"/flag"}}, env{"SKILL_HOME": dir, "SKILL_CONFIG": "/ignored"}.get, "")
	if err != nil {
		t.Fatal(err)
	}
	abs := func(p string) string { a, _ := filepath.Abs(p); return a }
	if want := []string{abs("/flag"), filepath.Join(dir, "mine"), abs("/abs"), filepath.Join(dir, "skills")}; !reflect.DeepEqual(c.Skills, want) {
		t.Errorf("skills %v, want %v", c.Skills, want)
	}
	if c.Workspace != (Workspace{filepath.Join(dir, "other"), true}) || c.Paths.File != other {
		t.Errorf("%+v, %+v", c.Workspace, c.Paths)
	}
}

func TestDistrust(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	home := filepath.Join(t.TempDir(), "home")
	e := env{"SKILL_HOME": home}
	file := write(t, filepath.Join(home, "config.toml"), "")
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o664: false, 0o606: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := load(Flags{}, e.get, ""); (err == nil) != ok {
			t.Errorf("file of mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(Flags{}, e.get, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Paths.Ensure(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{c.Paths.State, c.Paths.Audit, c.Paths.Cache, c.Paths.Tmp()} {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
		for mode, ok := range map[os.FileMode]bool{0o755: true, 0o775: false, 0o777 | os.ModeSticky: false, 0o700: true} {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if err := c.Paths.Ensure(); (err == nil) != ok || !ok && sdk.KindOf(err) != sdk.Denied {
				t.Errorf("%s of mode %v: %v", dir, mode, err)
			}
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for mode, ok := range map[os.FileMode]bool{0o775: true, 0o777: false, 0o777 | os.ModeSticky: true, 0o700: true} {
		if err := os.Chmod(home, mode); err != nil {
			t.Fatal(err)
		}
		if err := c.Paths.Ensure(); (err == nil) != ok {
			t.Errorf("directory of the policy, mode %v: %v", mode, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Log("only root can give a directory away: the check of the owner is left out")
		return
	}
	if err := os.Chown(c.Paths.Cache, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if err := c.Paths.Ensure(); err == nil || !strings.Contains(err.Error(), "it belongs to another user, 12345") {
		t.Errorf("%v", err)
	}
}

func TestXDG(t *testing.T) {
	x := t.TempDir()
	in := func(p string) string { return filepath.Join(x, filepath.FromSlash(p)) }
	p, err := paths(env{"XDG_CONFIG_HOME": in("c"), "XDG_STATE_HOME": in("s"), "XDG_CACHE_HOME": in("k"), "XDG_DATA_HOME": in("d")}.get)
	if err != nil {
		t.Fatal(err)
	}
	home := p.Home
	if want := (Paths{Home: home, Config: in("c/skill"), Policy: in("c/skill/policy.toml"), State: in("s/skill"), Audit: in("s/skill/audit"), Cache: in("k/skill"), Skills: in("d/skill/skills")}); p != want {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
	// One place for everything: what no tool may read must not hold the skills.
	p, err = paths(env{"XDG_CONFIG_HOME": x, "XDG_STATE_HOME": x, "XDG_CACHE_HOME": x, "XDG_DATA_HOME": x}.get)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{p.State, p.Cache, p.Audit} {
		if inside(p.Skills, private) || inside(p.Config, private) {
			t.Errorf("%s holds what tools may read: %+v", private, p)
		}
	}
	// Relative ones are to be ignored, says the specification.
	t.Setenv("HOME", x)
	p, err = paths(env{"XDG_CONFIG_HOME": "relative"}.get)
	if err != nil || !filepath.IsAbs(p.Config) || strings.Contains(p.Config, "relative") {
		t.Errorf("%+v, %v", p, err)
	}
	if runtime.GOOS == "linux" && (p.Config != in(".config/skill") || p.State != in(".local/state/skill") || p.Cache != in(".cache/skill") || p.Skills != in(".local/share/skill/skills")) {
		t.Errorf("%+v", p)
	}
}

func TestNoHome(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the variables that name the home directory differ")
	}
	t.Setenv("HOME", "")
	if _, err := load(Flags{}, env{}.get, ""); sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "set SKILL_HOME") {
		t.Errorf("%v", err)
	}
	if _, err := load(Flags{}, env{"SKILL_HOME": t.TempDir()}.get, ""); err != nil {
		t.Error(err)
	}
}

func TestSizeAndAge(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "12": 12, "1KiB": 1 << 10, "64MiB": 64 << 20, "4294967295GiB": 4294967295 << 30, "1GB": -1, "": -1, "-1": -1, "+1": -1, "1.5GiB": -1, "GiB": -1, "4294967296": -1, " 1": -1} {
		got, err := size(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("size(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]time.Duration{"0": 0, "1d": 24 * time.Hour, "36h": 36 * time.Hour, "-1h": -1, "65536d": -1, "d": -1, "": -1, "1": -1, "-1d": -1} {
		got, err := age(in)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("age(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("policy = \"p\"\nskills = [\"a\"]\n[audit]\nmax_age = \"1d\"\nmax_size = \"1GiB\"\n[wasm]\nwarm = true"))
	f.Add([]byte("audit = {durability = \"disk\"}\nnames.separator = \"_\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Config{Origins: map[string]string{}}
		if err := c.file("/d/config.toml", data); err != nil {
			if sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), "/d/config.toml") {
				t.Fatal(err)
			}
			return
		}
		if c.Audit.MaxAge < 0 || c.Audit.MaxSize < 0 || c.Audit.Rotate < 0 {
			t.Fatalf("%+v", c.Audit)
		}
	})
}
