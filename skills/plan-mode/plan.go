package main

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a plan.
const (
	maxPlan  = 256 << 10 // bytes of the file
	maxFront = 64        // lines of front matter
	maxSteps = 500
	maxStep  = 2 << 10 // bytes of a step as it is told
	maxGoal  = 2000    // bytes
)

// A plan is what its file holds.
type plan struct {
	id, goal, status, created, updated string

	more     []string // lines of the front matter that are somebody else's
	body     string   // everything after the front matter, as it is
	steps    []step
	problems []string // what a reader should know
}

// fields are the members of the front matter that are this skill's, in their
// order.
var fields = []string{"id", "goal", "status", "created", "updated"}

func (p *plan) field(name string) *string {
	return map[string]*string{"id": &p.id, "goal": &p.goal, "status": &p.status, "created": &p.created, "updated": &p.updated}[name]
}

// parse reads a plan. It never fails: what is no front matter is text.
func parse(data []byte) plan {
	text := strings.TrimPrefix(string(data), "\ufeff")
	var p plan
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
		p.problems = append(p.problems, "the plan file is not all UTF-8: what is not is shown as \ufffd")
	}
	front, body, ok := cutFront(text)
	switch {
	case ok:
		p.readFront(front)
		p.body = body
	case strings.HasPrefix(text, "---"):
		p.body = text
		p.problems = append(p.problems, "the front matter of the plan file has no end: it is taken for text")
	default:
		p.body = text
	}
	p.readSteps()
	return p
}

// cutFront splits text into the lines of its front matter and the rest.
func cutFront(text string) (front []string, body string, ok bool) {
	line, rest, more := cutLine(text)
	if line != "---" {
		return nil, "", false
	}
	for more && len(front) <= maxFront {
		line, rest, more = cutLine(rest)
		if line == "---" || line == "..." {
			return front, strings.TrimPrefix(strings.TrimPrefix(rest, "\r"), "\n"), true
		}
		front = append(front, line)
	}
	return nil, "", false
}

// cutLine returns the first line of text, without white space at its end.
func cutLine(text string) (line, rest string, more bool) {
	line, rest, more = strings.Cut(text, "\n")
	return strings.TrimRight(line, " \t\r"), rest, more
}

func (p *plan) readFront(lines []string) {
	seen := map[string]bool{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		to := p.field(name)
		switch {
		case !ok || to == nil:
			p.more = append(p.more, line)
		case seen[name]:
			p.problems = append(p.problems, "the front matter says "+name+" twice: the first counts")
		default:
			seen[name] = true
			*to = oneLine(unquote(strings.TrimSpace(value)), maxGoal)
		}
	}
}

// unquote reads a value of YAML that is a plain or a quoted string.
func unquote(v string) string {
	switch {
	case len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"':
		var s string
		if json.Unmarshal([]byte(v), &s) == nil {
			return s
		}
	case len(v) >= 2 && v[0] == '\'' && v[len(v)-1] == '\'':
		return strings.ReplaceAll(v[1:len(v)-1], "''", "'")
	}
	return v
}

// quote writes a string so that readers of YAML and unquote have it back.
func quote(s string) string {
	plain := s != "" && strings.TrimSpace(s) == s && !strings.ContainsAny(s[:1], "!&*-?|>@`\"'%#[]{},:=~") &&
		!strings.Contains(s, ": ") && !strings.Contains(s, " #") && !strings.HasSuffix(s, ":") && !yamlWord(s)
	if plain {
		return s
	}
	b, err := json.Marshal(s)
	if err != nil { // a string: it cannot fail
		return `""`
	}
	return string(b)
}

// yamlWord reports whether readers of YAML may take s for something else than a
// string.
func yamlWord(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return true
	}
	return strings.Trim(s, "0123456789.eE+-_xXoO:") == "" && len(s) < 20
}

// oneLine makes one line of s, of at most n bytes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || !unicode.IsPrint(r) }), " ")
	return clip(s, n)
}

// clip shortens s to n bytes at the end of a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:n], ""), " ")
}

// readSteps finds the check boxes of the body, but for those in blocks of code.
func (p *plan) readSteps() {
	fence := ""
	for line := range strings.Lines(p.body) {
		line = strings.TrimSpace(line)
		if f := fenceOf(line); f != "" && (fence == "" || strings.HasPrefix(f, fence)) {
			if fence == "" {
				fence = f
			} else if strings.Trim(line, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		s, ok := readStep(line)
		if fence != "" || !ok {
			continue
		}
		if len(p.steps) == maxSteps {
			p.problems = append(p.problems, "the plan has more steps than are told: see its file")
			return
		}
		p.steps = append(p.steps, s)
	}
}

// fenceOf is what opens or ends a block of code, or "".
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// readStep reads "- [ ] text" or, if it is done, "- [x] text".
func readStep(line string) (step, bool) {
	rest, ok := "", false
	for _, bullet := range []string{"- ", "* ", "+ "} {
		if rest, ok = strings.CutPrefix(line, bullet); ok {
			break
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if !ok || len(rest) < 4 || rest[0] != '[' || rest[2] != ']' || rest[3] != ' ' && rest[3] != '\t' || !strings.ContainsRune(" xX", rune(rest[1])) {
		return step{}, false
	}
	text := oneLine(rest[4:], maxStep)
	return step{Text: text, Done: rest[1] != ' '}, text != ""
}

// text writes the plan as its file has it.
func (p *plan) text() string {
	var b strings.Builder
	b.WriteString("---\n")
	for _, name := range fields {
		b.WriteString(name + ": " + quote(*p.field(name)) + "\n")
	}
	for _, line := range p.more {
		b.WriteString(line + "\n")
	}
	b.WriteString("---\n\n" + p.body)
	return b.String()
}

// blank reports whether the plan says nothing but its heading.
func (p *plan) blank() bool {
	for line := range strings.Lines(p.body) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// heading is the body of a new plan.
func heading(goal string) string {
	if goal == "" {
		goal = "Plan"
	}
	return "# " + goal + "\n\n"
}
