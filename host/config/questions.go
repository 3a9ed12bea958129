package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Questions says which ways beside the client a question of a tool may take to
// the user.
type Questions struct {
	Page     bool // a page of the loopback, whose address is told
	Terminal bool // "skill answer"
	TTY      bool // the terminal that the host itself was started in
}

var questionSettings = []setting{
	{"questions.channels", "page terminal tty", `ways beside the client on which the user of this machine may be asked what a tool wants to know: "page", "terminal" (skill answer) and "tty", or "none" (a list in the file)`, func(c *Config, v string) error {
		ways := strings.Fields(v)
		if i := slices.IndexFunc(ways, func(w string) bool { return !slices.Contains([]string{"page", "terminal", "tty", "none"}, w) }); i >= 0 {
			return fmt.Errorf(`%q: want "page", "terminal", "tty" or "none"`, ways[i])
		}
		if slices.Contains(ways, "none") && len(ways) > 1 {
			return errors.New(`"none" stands alone`)
		}
		c.Questions = Questions{slices.Contains(ways, "page"), slices.Contains(ways, "terminal"), slices.Contains(ways, "tty")}
		return nil
	}},
}

// questionsFile is [questions] of a config.toml.
type questionsFile struct {
	Channels []string `toml:"channels"`
}

func (f *questionsFile) values(values map[string]*string) {
	if f.Channels == nil {
		return
	}
	ways := strings.Join(f.Channels, " ")
	if len(f.Channels) == 0 {
		ways = "none"
	}
	values["questions.channels"] = &ways
}
