package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/skillhost/skill/sdk"
)

// paths finds the directories: all beneath SKILL_HOME if that is set, else
// where the XDG Base Directory Specification 0.8 and the platform put them.
func paths(getenv func(string) (string, bool)) (Paths, error) {
	var p Paths
	p.Home, _ = os.UserHomeDir() // a service user may have none
	if home, ok := getenv("SKILL_HOME"); ok && home != "" {
		home, err := filepath.Abs(home)
		if err != nil {
			return p, err
		}
		p.Config, p.State, p.Cache, p.Skills = home, filepath.Join(home, "state"), filepath.Join(home, "cache"), filepath.Join(home, "skills")
		p.Audit, p.Policy = filepath.Join(home, "audit"), filepath.Join(home, "policy.toml")
		return p, nil
	}
	native := nativeDirs(p.Home)
	for _, d := range []struct {
		to       *string
		variable string
		below    string // the variable's directory
		native   func() (string, error)
	}{
		{&p.Config, "XDG_CONFIG_HOME", "skill", native.config},
		{&p.Skills, "XDG_DATA_HOME", "skill/skills", native.skills},
		{&p.State, "XDG_STATE_HOME", "skill", native.state},
		{&p.Cache, "XDG_CACHE_HOME", "skill", native.cache},
	} {
		if v, ok := getenv(d.variable); ok && filepath.IsAbs(v) { // relative ones are to be ignored
			*d.to = filepath.Join(v, filepath.FromSlash(d.below))
			continue
		}
		dir, err := d.native()
		if err != nil {
			return p, &sdk.Error{Kind: sdk.Unavailable, Op: "config.Load", What: "no place for the host's files", Err: err, Hint: "set SKILL_HOME"}
		}
		*d.to = dir
	}
	// No tool may read the host's own directories, but each reads its skill's.
	for dir, name := range map[*string]string{&p.State: "state", &p.Cache: "cache"} {
		if inside(p.Skills, *dir) || *dir == p.Config {
			*dir = filepath.Join(*dir, name)
		}
	}
	p.Audit, p.Policy = filepath.Join(p.State, "audit"), filepath.Join(p.Config, "policy.toml")
	return p, nil
}

// inside reports whether path is dir or below it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// dirs are where a platform keeps the files of a program.
type dirs struct{ config, skills, state, cache func() (string, error) }

func nativeDirs(home string) dirs {
	in := func(base func() (string, error), below string) func() (string, error) {
		return func() (string, error) {
			dir, err := base()
			return filepath.Join(dir, filepath.FromSlash(below)), err
		}
	}
	atHome := func() (string, error) {
		if home == "" {
			return "", errors.New("there is no home directory")
		}
		return home, nil
	}
	switch runtime.GOOS {
	case "windows": // %AppData% follows the user to other machines, %LocalAppData% does not
		return dirs{in(os.UserConfigDir, "skill"), in(os.UserCacheDir, "skill/skills"), in(os.UserCacheDir, "skill/state"), in(os.UserCacheDir, "skill/cache")}
	case "darwin":
		return dirs{in(os.UserConfigDir, "skill"), in(os.UserConfigDir, "skill/skills"), in(os.UserConfigDir, "skill/state"), in(os.UserCacheDir, "skill")}
	}
	return dirs{in(atHome, ".config/skill"), in(atHome, ".local/share/skill/skills"), in(atHome, ".local/state/skill"), in(atHome, ".cache/skill")}
}

// Ensure makes the directories that the host writes to, for this user alone.
// One that others can write to is refused: whoever can write there can change
// the record, the compiled code or what is allowed. The directory of the
// policy, which people make themselves, may be writable by a group.
func (p Paths) Ensure() error {
	for _, dir := range []string{p.State, p.Audit, p.Cache, p.Tmp(), p.Native()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return &sdk.Error{Kind: sdk.Unavailable, Op: "config", What: "the host's directory", Err: err, Hint: "set SKILL_HOME to a directory that you can write to"}
		}
		if err := checkDir(dir, 0o022); err != nil {
			return err
		}
	}
	err := checkDir(filepath.Dir(p.Policy), 0o002)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkDir refuses dir if someone whom mode stands for may write to it.
func checkDir(dir string, mode fs.FileMode) error {
	d, err := os.Open(dir)
	if err != nil {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "config", What: "the host's directory", Err: err}
	}
	defer d.Close()
	if why := distrust(d, mode); why != "" {
		return &sdk.Error{Kind: sdk.Denied, Op: "config", What: fmt.Sprintf("directory %q: %s", dir, why), Hint: "chmod 700 it, or set SKILL_HOME to another one"}
	}
	return nil
}

// Tmp is where the private temporary directories of calls are made.
func (p Paths) Tmp() string { return filepath.Join(p.State, "tmp") }

// Homes is where the private homes of native skills' programs are: what they
// keep there is a cache.
func (p Paths) Homes() string { return filepath.Join(p.Cache, "homes") }

// Native is where native processes have their private directories.
func (p Paths) Native() string { return filepath.Join(p.State, "native") }

// Outputs is where the output of background jobs and long commands is kept.
func (p Paths) Outputs() string { return filepath.Join(p.State, "outputs") }

// Questions is where hosts have the sockets on which "skill answer" asks for
// open questions.
func (p Paths) Questions() string { return filepath.Join(p.State, "questions") }

// AuditKey is the file of the key that digests in the audit log are made with.
func (p Paths) AuditKey() string { return filepath.Join(p.State, "audit.key") }
