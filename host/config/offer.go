package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

// Offer says what clients get to see.
type Offer struct {
	Tools     bool   // serve tools at all
	Streaming bool   // pass on what tools write before their result
	Model     string // the model that a client is asked to use for a tool that samples, or ""
}

// maxModel bounds the name of a model, bytes.
const maxModel = 200

var offerSettings = []setting{
	{"discover", "true", "find skills in `.agents/skills` and `.claude/skills` of the home directory and the workspace, too; as any skill, each is refused until it is allowed", truth(func(c *Config) *bool { return &c.Discover })},
	{"tools", "true", "serve tools to MCP clients; without them there are resources and prompts", truth(func(c *Config) *bool { return &c.Offer.Tools })},
	{"streaming", "true", "pass on to clients what a tool writes before its result, as progress and as log messages", truth(func(c *Config) *bool { return &c.Offer.Streaming })},
	{"model", "", "the model, or a part of its name, that clients are asked to use for tools that need one", func(c *Config, v string) error {
		if len(v) > maxModel || !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("want the name of a model, of at most %d bytes", maxModel)
		}
		c.Offer.Model = v
		return nil
	}},
}

func truth(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		if v != "true" && v != "false" {
			return fmt.Errorf("want true or false")
		}
		*field(c) = v == "true"
		return nil
	}
}

// found returns the directories where other programs keep skills, in the order
// in which they are looked at. The workspace comes last: what somebody has put
// into a project does not take the place of a skill that the user has chosen.
func (c *Config) found() (dirs []string) {
	if !c.Discover {
		return nil
	}
	for _, root := range []string{c.Paths.Home, c.Workspace.Dir} {
		if root == "" {
			continue
		}
		for _, sub := range []string{".agents", ".claude"} {
			if dir := filepath.Join(root, sub, "skills"); !slices.Contains(dirs, dir) && !slices.Contains(c.Skills, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// envKeys are the keys of an environment file that are settings of this host.
var envKeys = map[string]string{"TOOLS": "tools", "STREAMING": "streaming", "MODEL": "model"}

// maxEnvFile bounds an environment file, bytes.
const maxEnvFile = 1 << 20

// envFile applies the lines KEY=VALUE of the file called name. Such a file is
// another program's as well: keys that are not settings here are passed over.
func (c *Config) envFile(name string) error {
	data, err := readEnvFile(name)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, Op: "--env-file", What: fmt.Sprintf("%q", name), Err: err}
	}
	n := 0
	for line := range strings.Lines(string(bytes.TrimPrefix(data, []byte("\ufeff")))) {
		n++
		key, value, ok := envLine(line)
		if !ok {
			continue
		}
		at := fmt.Sprintf("%s:%d", name, n)
		s := settings[slices.IndexFunc(settings, func(s setting) bool { return s.key == envKeys[key] })]
		switch {
		case value == "": // the setting stays as it is
			continue
		case s.initial == "true" || s.initial == "false":
			value = plainTruth(value)
		}
		if err := s.set(c, value); err != nil {
			return &sdk.Error{Kind: sdk.Invalid, Op: at, What: fmt.Sprintf("%s=%s: %v", key, value, err)}
		}
		c.Origins[s.key] = at
	}
	return nil
}

func readEnvFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("is not a file"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if len(data) > maxEnvFile {
		err = fmt.Errorf("is larger than %d bytes", maxEnvFile)
	}
	return data, err
}

// envLine reads a line as shells do: "export" before it, quotes around the
// value and a comment after it do not count. ok is false if it says nothing
// about a setting.
func envLine(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(strings.TrimSpace(line), "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
	if _, known := envKeys[key]; !ok || !known {
		return "", "", false
	}
	value = strings.TrimSpace(value)
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		if end := strings.IndexByte(value[1:], value[0]); end >= 0 {
			return key, value[1 : 1+end], true
		}
	}
	if strings.HasPrefix(value, "#") {
		return key, "", true
	}
	for i := 1; i < len(value); i++ {
		if value[i] == '#' && (value[i-1] == ' ' || value[i-1] == '\t') {
			value = value[:i]
		}
	}
	return key, strings.TrimSpace(value), true
}

// plainTruth returns "true" or "false" for the other words that are used for
// them, and any other word as it is.
func plainTruth(v string) string {
	switch strings.ToLower(v) {
	case "true", "1", "yes", "on":
		return "true"
	case "false", "0", "no", "off":
		return "false"
	}
	return v
}
