package config

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// systemFile is the file with settings for all users of the machine, or "".
// Windows has none: everybody may make the directories that would hold it.
func systemFile() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	return "/etc/skill/config.toml"
}

// readFile reads the text of a config.toml. The error of an absent file wraps
// fs.ErrNotExist, as does that of no name.
func readFile(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "config.Load", What: name, Err: err}
	}
	defer f.Close()
	if why := distrust(f, 0o022); why != "" {
		return nil, &sdk.Error{Kind: sdk.Denied, Op: "config.Load", What: fmt.Sprintf("%s: %s", name, why), Hint: "settings are the user's or root's alone: chmod 600 the file"}
	}
	return io.ReadAll(io.LimitReader(f, tomlfile.MaxSize+1))
}

// file applies a config.toml. Relative paths in it are relative to it.
func (c *Config) file(name string, data []byte) error {
	var f struct {
		Policy    *string  `toml:"policy"`
		Skills    []string `toml:"skills"`
		Workspace *string  `toml:"workspace"`
		Discover  *bool    `toml:"discover"`
		Tools     *bool    `toml:"tools"`
		Streaming *bool    `toml:"streaming"`
		Model     *string  `toml:"model"`
		Audit     struct {
			Durability *string `toml:"durability"`
			Params     *string `toml:"params"`
			MaxAge     *string `toml:"max_age"`
			MaxSize    *string `toml:"max_size"`
			Rotate     *string `toml:"rotate"`
		} `toml:"audit"`
		Names struct {
			Separator *string  `toml:"separator"`
			Bare      []string `toml:"bare"`
		} `toml:"names"`
		Store struct {
			Backend *string `toml:"backend"`
		} `toml:"store"`
		WASM struct {
			Warm *bool `toml:"warm"`
		} `toml:"wasm"`
		HTTP     httpFile                  `toml:"http"`
		Tasks    tasksFile                 `toml:"tasks"`
		Question questionsFile             `toml:"questions"`
		Settings map[string]map[string]any `toml:"settings"`
	}
	doc, err := tomlfile.Decode(name, data, &f)
	if err != nil {
		return err
	}
	beside := func(p *string) *string {
		if p == nil || *p == "" || filepath.IsAbs(*p) {
			return p
		}
		abs := filepath.Join(filepath.Dir(name), *p)
		return &abs
	}
	values := map[string]*string{
		"policy": beside(f.Policy), "workspace": beside(f.Workspace),
		"audit.durability": f.Audit.Durability, "audit.params": f.Audit.Params, "audit.max_age": f.Audit.MaxAge,
		"audit.max_size": f.Audit.MaxSize, "audit.rotate": f.Audit.Rotate,
		"names.separator": f.Names.Separator, "store.backend": f.Store.Backend, "model": f.Model,
	}
	if f.Names.Bare != nil {
		bare := strings.Join(f.Names.Bare, " ")
		values["names.bare"] = &bare
	}
	for key, truth := range map[string]*bool{"wasm.warm": f.WASM.Warm, "discover": f.Discover, "tools": f.Tools, "streaming": f.Streaming} {
		if truth != nil {
			v := strconv.FormatBool(*truth)
			values[key] = &v
		}
	}
	f.Tasks.values(values)
	f.Question.values(values)
	f.HTTP.Cert, f.HTTP.Key = beside(f.HTTP.Cert), beside(f.HTTP.Key)
	if err := f.HTTP.values(doc, values); err != nil {
		return err
	}
	if err := c.skillSettings(doc, f.Settings); err != nil {
		return err
	}
	if f.Skills != nil {
		for i := range f.Skills {
			if strings.ContainsRune(f.Skills[i], filepath.ListSeparator) {
				return &sdk.Error{Kind: sdk.Invalid, Op: doc.Pos("skills", strconv.Itoa(i)).String(), What: fmt.Sprintf("skills: %q has a %q in it", f.Skills[i], filepath.ListSeparator)}
			}
			f.Skills[i] = *beside(&f.Skills[i])
		}
		all := strings.Join(f.Skills, string(filepath.ListSeparator))
		values["skills"] = &all
	}
	for _, s := range settings {
		v := values[s.key]
		if v == nil {
			continue
		}
		pos := doc.Pos(strings.Split(s.key, ".")...)
		if err := s.set(c, *v); err != nil {
			if s.key == "http.tokens" {
				return wrong(pos, s.key, err) // the value is no reading for errors
			}
			return &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: fmt.Sprintf("%s = %q: %v", s.key, *v, err)}
		}
		c.Origins[s.key] = pos.String()
	}
	return nil
}

// size reads "64MiB", "1GiB", "500KiB" or a number of bytes.
func size(s string) (int64, error) {
	digits, shift := s, 0
	for suffix, by := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if d, ok := strings.CutSuffix(s, suffix); ok {
			digits, shift = d, by
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("want a size such as \"64MiB\"")
	}
	return int64(n) << shift, nil
}

// age reads a duration in days, "90d", or as Go writes it, "36h".
func age(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("want a duration such as \"90d\" or \"36h\"")
	}
	return d, nil
}
