// Package config holds the host's own settings: where its files are, how it
// records, how it names tools. What a tool may do is not a setting; that is
// the policy's and the manifest's to say.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/host/nearest"
	"github.com/skillhost/skill/sdk"
)

// A Config is the host's settings, complete and checked.
type Config struct {
	Paths     Paths
	Skills    []string // directories with installed skills, Paths.Skills last
	Discover  bool
	Found     []string // directories where other programs keep skills
	Workspace Workspace
	Audit     Audit
	Names     Names
	Store     Store
	WASM      WASM
	HTTP      HTTP
	Tasks     Tasks
	Offer     Offer
	Questions Questions
	Settings  map[string]SkillSettings // of skills, by their names
	Origins   map[string]string        // where each setting comes from: "default", a flag, a variable or file:line
}

// Paths are where the host keeps its files. All are absolute.
type Paths struct {
	Home   string // the user's home directory, or ""
	Config string // directory of config.toml and policy.toml
	File   string // the user's config.toml, or what --config names; it need not exist
	Policy string // the policy file
	State  string // directory of the store, the audit keys and private temporary directories
	Audit  string // directory of the audit log
	Cache  string // directory of compiled modules
	Skills string // directory of installed skills
}

// Workspace is the directory that the session layer is about.
type Workspace struct {
	Dir      string // absolute
	Explicit bool   // named by the user, not merely the current directory
}

// Audit says how calls are recorded.
type Audit struct {
	Durability string        // "kernel": survives the death of the process; "disk": of the machine
	Params     string        // "shape": types, lengths and keyed digests; "redacted": values but for what looks secret
	MaxAge     time.Duration // older files are removed; 0 keeps them
	MaxSize    int64         // bytes; beyond it the oldest files are removed; 0 keeps them
	Rotate     int64         // bytes of one file
}

// Names says how tools of installed skills are offered.
type Names struct {
	Separator string   // between skill and tool: ".", "_" or "__"
	Bare      []string // skills whose tools and prompts keep their own names
}

// Store says where state is kept.
type Store struct {
	Backend string // "sqlite" or "memory"
}

// WASM says how modules are run.
type WASM struct {
	Warm bool // compile installed modules in the background at start
}

// Flags are the settings that the command line gives. Empty fields say nothing.
type Flags struct {
	Config    string   // the file instead of the user's config.toml
	Policy    string   // the file instead of the user's policy.toml
	Workspace string   //
	Skills    []string // more directories with skills
	HTTP      string   // the address to listen on
	EnvFile   string   // a file with lines KEY=VALUE
}

// Load puts the settings together: a flag outranks a variable, a variable the
// user's file, and that one the system's. getenv is os.LookupEnv, or a test's.
// A file that others may write is refused: it says where the policy is.
func Load(f Flags, getenv func(string) (string, bool)) (Config, error) {
	return load(f, getenv, systemFile())
}

func load(f Flags, getenv func(string) (string, bool), system string) (Config, error) {
	c := Config{Origins: map[string]string{}}
	var err error
	if c.Paths, err = paths(getenv); err != nil {
		return c, err
	}
	for _, s := range settings {
		if err := s.set(&c, s.initial); err != nil {
			return c, err
		}
		c.Origins[s.key] = "default"
	}
	explicit := f.Config // a file that is asked for must exist
	if v, ok := getenv("SKILL_CONFIG"); ok && explicit == "" {
		explicit = v
	}
	c.Paths.File = filepath.Join(c.Paths.Config, "config.toml")
	if explicit != "" {
		if c.Paths.File, err = filepath.Abs(explicit); err != nil {
			return c, err
		}
	}
	for _, name := range []string{system, c.Paths.File} {
		data, err := readFile(name)
		if errors.Is(err, fs.ErrNotExist) && (name == system || explicit == "") {
			continue
		}
		if err != nil {
			return c, err
		}
		if err := c.file(name, data); err != nil {
			return c, err
		}
	}
	if f.EnvFile != "" {
		if err := c.envFile(f.EnvFile); err != nil {
			return c, err
		}
	}
	if err := c.environment(getenv); err != nil {
		return c, err
	}
	return c, c.flags(f)
}

// environment applies the variables SKILL_AUDIT_DURABILITY, SKILL_WORKSPACE …
func (c *Config) environment(getenv func(string) (string, bool)) error {
	for _, s := range settings {
		name := s.variable()
		v, ok := getenv(name)
		if !ok || v == "" {
			continue
		}
		if err := s.set(c, v); err != nil {
			if s.key == "http.tokens" { // the value is no reading for errors
				return &sdk.Error{Kind: sdk.Invalid, Op: name, What: err.Error()}
			}
			return &sdk.Error{Kind: sdk.Invalid, Op: name, What: fmt.Sprintf("%q: %v", v, err)}
		}
		c.Origins[s.key] = name
	}
	return nil
}

func (c *Config) flags(f Flags) (err error) {
	if f.Policy != "" {
		c.Paths.Policy, c.Origins["policy"] = f.Policy, "--policy"
	}
	if f.Workspace != "" {
		c.Workspace, c.Origins["workspace"] = Workspace{f.Workspace, true}, "--workspace"
	}
	if f.HTTP != "" {
		if err := address(f.HTTP); err != nil {
			return &sdk.Error{Kind: sdk.Invalid, Op: "--http", What: fmt.Sprintf("%q: %v", f.HTTP, err)}
		}
		c.HTTP.Addr, c.Origins["http.addr"] = f.HTTP, "--http"
	}
	c.Skills = append(slices.Clone(f.Skills), c.Skills...)
	if len(f.Skills) > 0 {
		c.Origins["skills"] = "--skills"
	}
	c.Skills = append(c.Skills, c.Paths.Skills)
	if c.Workspace.Dir == "" {
		if c.Workspace.Dir, err = os.Getwd(); err != nil {
			return &sdk.Error{Kind: sdk.Unavailable, Op: "config.Load", What: "the current directory", Err: err, Hint: "give --workspace"}
		}
	}
	for _, p := range []*string{&c.Paths.Policy, &c.Workspace.Dir} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	for i := range c.Skills {
		if c.Skills[i], err = filepath.Abs(c.Skills[i]); err != nil {
			return err
		}
	}
	c.Found = c.found()
	return nil
}

// A setting is one key of config.toml, which is a variable as well.
type setting struct {
	key     string
	initial string
	doc     string
	set     func(c *Config, value string) error
}

func (s setting) variable() string {
	return "SKILL_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// settings is the table of all keys; docs/config.md and the JSON Schema are
// checked against it.
var settings = slices.Concat([]setting{
	{"policy", "", "the policy file; default policy.toml in the settings directory", func(c *Config, v string) error {
		if v != "" {
			c.Paths.Policy = v
		}
		return nil
	}},
	{"skills", "", "directories with skills, separated as in PATH (a list in the file)", func(c *Config, v string) error {
		c.Skills = filepath.SplitList(v)
		return nil
	}},
	{"workspace", "", "the directory that tools may write to; default the current directory", func(c *Config, v string) error {
		c.Workspace = Workspace{v, v != ""}
		return nil
	}},
	{"audit.durability", "kernel", `"kernel" survives the death of the process, "disk" of the machine`, oneOf(func(c *Config) *string { return &c.Audit.Durability }, "kernel", "disk")},
	{"audit.params", "shape", `"shape" records types, lengths and keyed digests, "redacted" values but for what looks secret`, oneOf(func(c *Config) *string { return &c.Audit.Params }, "shape", "redacted")},
	{"audit.max_age", "90d", "files older than this are removed; \"0\" keeps them", func(c *Config, v string) (err error) {
		c.Audit.MaxAge, err = age(v)
		return err
	}},
	{"audit.max_size", "1GiB", "when all files together are larger, the oldest are removed; \"0\" keeps them", func(c *Config, v string) (err error) {
		c.Audit.MaxSize, err = size(v)
		return err
	}},
	{"audit.rotate", "64MiB", "size at which a new file is begun", func(c *Config, v string) (err error) {
		if c.Audit.Rotate, err = size(v); err == nil && c.Audit.Rotate < 1<<20 {
			err = fmt.Errorf("want at least 1MiB")
		}
		return err
	}},
	{"names.separator", ".", `between skill and tool in the names that clients see: ".", "_" or "__"; some model interfaces refuse dots`, oneOf(func(c *Config) *string { return &c.Names.Separator }, ".", "_", "__")},
	{"names.bare", "", "skills whose tools and prompts are offered under their own names, which must be nobody else's (a list in the file)", words(func(c *Config) *[]string { return &c.Names.Bare }, visible)},
	{"store.backend", "sqlite", `"sqlite" keeps state in a file, "memory" forgets it`, oneOf(func(c *Config) *string { return &c.Store.Backend }, "sqlite", "memory")},
	{"wasm.warm", "true", "compile allowed modules in the background after the start, so that the first call need not wait", truth(func(c *Config) *bool { return &c.WASM.Warm })},
}, offerSettings, questionSettings, taskSettings, httpSettings)

func oneOf(field func(*Config) *string, allowed ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if !slices.Contains(allowed, v) {
			hint := ""
			if near := nearest.Names(v, allowed, 1); len(near) > 0 {
				hint = ", did you mean " + near[0]
			}
			return fmt.Errorf("want one of %q%s", allowed, hint)
		}
		*field(c) = v
		return nil
	}
}

// A Setting is one setting for people to read.
type Setting struct {
	Key, Variable, Default, Doc string
}

// Settings lists all settings in the order of the documentation.
func Settings() []Setting {
	var all []Setting
	for _, s := range settings {
		all = append(all, Setting{s.key, s.variable(), s.initial, s.doc})
	}
	return all
}
