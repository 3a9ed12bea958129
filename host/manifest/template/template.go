// Package template is the language in which a manifest says how a program is
// run: an array of words in which {name} stands for an argument of the call.
// It parses the words, checks them against the tool's input schema, and fills
// them in, so that no argument becomes an option, a second word or a part of
// the program's name. There is no shell, and nothing is ever quoted.
//
// It does not know which programs may be run, and it runs none.
package template

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// The names that stand for directories of the call and not for arguments.
const (
	Workspace = "workspace"
	SkillDir  = "skill_dir"
)

// maxWords bounds the words of one command.
const maxWords = 256

// A Command says how a program is run. Parse makes one, and Bind makes it fit
// to be filled in.
type Command struct {
	Words   []string // as they are written, the program first
	Program string   // a name, or an absolute path
	Input   string   // what is written to the program, as it is written; "" is nothing
	Success []int    // the exit statuses that are no failure

	args   []word
	stdin  *word // nil: nothing is written to the program
	inputs map[string]input
}

// A word is one word of a command. It is either a row of parts or a spread.
type word struct {
	parts  []part
	spread string // the array argument whose elements are words, or ""
}

// A part is a text, or stands for an argument.
type part struct{ text, name string }

// literal reports whether w is text only, and which.
func (w word) literal() (string, bool) {
	var b strings.Builder
	for _, p := range w.parts {
		if p.name != "" {
			return "", false
		}
		b.WriteString(p.text)
	}
	return b.String(), w.spread == ""
}

// names lists what w stands for.
func (w word) names() (names []string) {
	if w.spread != "" {
		return []string{w.spread}
	}
	for _, p := range w.parts {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// whole returns the one argument that w is, or "".
func (w word) whole() string {
	if len(w.parts) == 1 {
		return w.parts[0].name
	}
	return ""
}

// Parse parses the words of a command. The error has kind Invalid and no Op;
// at is the index of the word that it is about.
func Parse(list []string) (c *Command, at int, err error) {
	if len(list) == 0 {
		return nil, 0, invalid("the command is empty", `for example command = ["git", "log", "--max-count={count}"]`)
	}
	if len(list) > maxWords {
		return nil, 0, invalid(fmt.Sprintf("%d words are too many", len(list)), fmt.Sprintf("at most %d", maxWords))
	}
	c = &Command{Words: slices.Clone(list), Program: list[0], Success: []int{0}}
	if strings.ContainsAny(c.Program, "{}") {
		return nil, 0, invalid(fmt.Sprintf("the program %q is not a fixed one", words.Clip(c.Program)), "what is run is the manifest's to say: a name such as \"git\", or an absolute path")
	}
	for i, text := range list[1:] {
		w, err := parseWord(text, true)
		if err != nil {
			return nil, i + 1, err
		}
		c.args = append(c.args, w)
	}
	return c, 0, nil
}

// ParseStdin parses what is written to the program. The error is as Parse's.
func (c *Command) ParseStdin(text string) error {
	w, err := parseWord(text, false)
	if err != nil {
		return err
	}
	c.Input, c.stdin = text, &w
	return nil
}

// name is what can stand between braces, and what a property that is used in a
// command can be called.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

const maxName = 128

func parseWord(text string, spread bool) (w word, err error) {
	if len(text) > words.MaxText {
		return w, invalid(fmt.Sprintf("%d bytes are too many for one word", len(text)), fmt.Sprintf("at most %d", words.MaxText))
	}
	if c, bad := words.Invisible(text); bad {
		return w, invalid(fmt.Sprintf("the invisible character %U", c), "remove it: a reviewer does not see it")
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			w.parts = append(w.parts, part{text: lit.String()})
			lit.Reset()
		}
	}
	for rest := text; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			lit.WriteString(rest)
			break
		}
		lit.WriteString(rest[:i])
		brace := rest[i]
		rest = rest[i+1:]
		if rest != "" && rest[0] == brace { // doubled: the brace itself
			lit.WriteByte(brace)
			rest = rest[1:]
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if brace == '}' || !closed {
			return w, invalid(fmt.Sprintf("a brace without its counterpart in %q", words.Clip(text)), `{name} stands for an argument; write "{{" and "}}" for the braces themselves`)
		}
		rest = after
		flush()
		inside, all := strings.CutSuffix(inside, "...")
		switch {
		case len(inside) > maxName || !name.MatchString(inside):
			return w, invalid(fmt.Sprintf("bad name %q in braces", words.Clip(inside)), `write the name of an argument, such as {path}; write "{{" and "}}" for the braces themselves`)
		case !all:
			w.parts = append(w.parts, part{name: inside})
		case !spread || len(w.parts) > 0 || rest != "":
			return w, invalid(fmt.Sprintf("{%s...} does not stand alone", inside), "the elements of an array are words of a command: nothing can stand before or after them in the same word")
		default:
			w.spread = inside
		}
	}
	flush()
	return w, nil
}

func invalid(what, hint string) *sdk.Error {
	return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint}
}
