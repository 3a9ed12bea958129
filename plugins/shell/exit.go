package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
)

// benign are programs that say something with exit code 1 that is no failure.
var benign = map[string]string{
	"grep": "no line matched", "egrep": "no line matched", "fgrep": "no line matched", "rg": "no line matched",
	"diff": "the files differ", "cmp": "the files differ",
	"test": "the condition is false", "[": "the condition is false",
}

// exitNote says what an exit code means where it is not simply a failure, and
// whether it is none at all. quiet says that nothing was written to stderr.
func exitNote(command string, code int, quiet bool) (note string, ok bool) {
	switch {
	case code == 0:
		return "", true
	case code == 1:
		if name := deciding(command, quiet); name != "" {
			return fmt.Sprintf("exit code 1 of %s: %s", name, benign[name]), true
		}
	case code == 126:
		return "exit code 126: a program was found and cannot be executed", false
	case code == 127:
		return "exit code 127: a program was not found", false
	case code > 128 && code < 128+65:
		if name := signalName(syscall.Signal(code - 128)); name != "" {
			return fmt.Sprintf("exit code %d: the shell says that the last program was ended by %s (128+%d)", code, name, code-128), false
		}
	}
	return "", false
}

// unclear are words in the place of a program after which it cannot be told
// from a command line which program an exit code is of.
var unclear = []string{"!", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function", "coproc", "time", "[[",
	"set", "shopt", "trap", "exit", "return", "exec", "eval", "source", ".", "alias", "break", "continue", "wait", "command", "builtin"}

// deciding returns the benign program whose exit code 1 is surely that of the
// command line, or "".
func deciding(command string, quiet bool) string {
	steps, ok := split(command)
	if !ok || slices.ContainsFunc(steps, func(s step) bool { return slices.Contains(unclear, s.name()) }) {
		return ""
	}
	last := steps[len(steps)-1]
	if benign[last.name()] == "" {
		return ""
	}
	// What comes before "&&" may have ended the chain with an exit code of its
	// own.
	for i := len(steps) - 2; i >= 0 && steps[i].end != ";"; i-- {
		if s := steps[i]; s.end == "&&" && benign[s.name()] == "" && !(s.name() == "cd" && quiet) {
			return ""
		}
	}
	return last.name()
}

// A step is one simple command and what ends it: "|", "||", "&&", ";", or ""
// at the end of the line.
type step struct {
	words []string
	end   string
}

// name is the program of s without its directory.
func (s step) name() string {
	for _, w := range s.words {
		if name, _, ok := strings.Cut(w, "="); ok && variable(name) {
			continue // an assignment before the program
		}
		return path.Base(w)
	}
	return ""
}

// split divides a command line into its steps. It reports false for whatever
// it is not sure to understand: substitutions, groups, here-documents.
func split(command string) (steps []step, ok bool) {
	var (
		now   step
		word  strings.Builder
		begun bool // a word, which may be empty
	)
	endWord := func() {
		if begun {
			now.words = append(now.words, word.String())
			word.Reset()
			begun = false
		}
	}
	endStep := func(by string) bool {
		endWord()
		if len(now.words) == 0 {
			return by == ";" // an empty line
		}
		now.end = by
		steps, now = append(steps, now), step{}
		return true
	}
	for s := strings.TrimSpace(command); s != ""; {
		c := s[0]
		switch {
		case c == '\'' || c == '"':
			text, n := quoted(s)
			if n == 0 {
				return nil, false
			}
			word.WriteString(text)
			begun, s = true, s[n:]
		case c == '\\' && len(s) > 1:
			if s[1] != '\n' {
				word.WriteByte(s[1])
				begun = true
			}
			s = s[2:]
		case c == '$' && len(s) > 1 && variable(s[1:2]): // its value is not run
			word.WriteByte(c)
			begun, s = true, s[1:]
		case strings.IndexByte("`$\\(){}#", c) >= 0, strings.HasPrefix(s, "<<"):
			return nil, false
		case c == ' ' || c == '\t':
			endWord()
			s = s[1:]
		case strings.HasPrefix(s, "&&"), strings.HasPrefix(s, "||"):
			if !endStep(s[:2]) {
				return nil, false
			}
			s = s[2:]
		case strings.HasPrefix(s, ">&"), strings.HasPrefix(s, "&>"): // redirections
			word.WriteString(s[:2])
			begun, s = true, s[2:]
		case c == '|' || c == ';' || c == '\n':
			if c == '\n' {
				c = ';'
			}
			if !endStep(string(c)) {
				return nil, false
			}
			s = s[1:]
		case c == '&':
			return nil, false
		default:
			word.WriteByte(c)
			begun, s = true, s[1:]
		}
	}
	if len(now.words) > 0 || begun {
		endStep("")
	}
	return steps, len(steps) > 0
}

// quoted returns the text of the quoted string that s begins with, and its
// length with the quotes; 0 if it does not end or runs something.
func quoted(s string) (text string, n int) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return s[1:i], i + 1
		case s[0] == '\'':
		case s[i] == '\\':
			i++
		case s[i] == '`', strings.HasPrefix(s[i:], "$("):
			return "", 0
		}
	}
	return "", 0
}
