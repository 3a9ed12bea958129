package policy

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// Allow returns data, the text of a policy.toml, with "allow = true" and
// digest in [skills.NAME]. Everything else, comments too, stays byte for byte.
func Allow(data []byte, name, digest string) ([]byte, error) {
	yes := true
	return edit(data, []string{"skills", name}, []setting{{"allow", "true"}, {"digest", capability.Quote(digest)}}, func(f *fileDoc) {
		s := f.Skills[name]
		s.Allow, s.Digest = &yes, digest
		f.Skills = with(f.Skills, name, s)
	})
}

// Allowing returns p as it would be with a skill allowed in its file, of which
// the text that p was read from counts: the file may be gone or broken by now.
func (p *Policy) Allowing(name, digest string) (*Policy, error) {
	if p == nil {
		p = &nothing
	}
	data, err := Allow(p.text, name, digest)
	if err != nil {
		return nil, err
	}
	return Read(p.file, data)
}

// Forbid returns data with "allow = false" in [skills.NAME], which refuses
// built-in skills too. Everything else stays byte for byte.
func Forbid(data []byte, name string) ([]byte, error) {
	no := false
	return edit(data, []string{"skills", name}, []setting{{"allow", "false"}}, func(f *fileDoc) {
		s := f.Skills[name]
		s.Allow = &no
		f.Skills = with(f.Skills, name, s)
	})
}

// SetSecret returns data with source and hosts in [secrets.NAME]. Everything
// else stays byte for byte.
func SetSecret(data []byte, name, source string, hosts ...string) ([]byte, error) {
	hosts = append([]string{}, hosts...) // none is a written, empty list, which is refused
	return edit(data, []string{"secrets", name}, []setting{{"source", capability.Quote(source)}, {"hosts", array(hosts)}}, func(f *fileDoc) {
		s := f.Secrets[name]
		s.Source, s.Hosts = source, hosts
		f.Secrets = with(f.Secrets, name, s)
	})
}

func with[T any](m map[string]T, key string, v T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[key] = v
	return m
}

// A setting is one key with its value as TOML.
type setting struct{ key, value string }

// edit writes settings into the table at path. TOML has many ways to write a
// table, and this knows the common ones only; but it returns a text only if
// that reads as the old one changed by want, and is a valid policy.
func edit(data []byte, path []string, settings []setting, want func(*fileDoc)) ([]byte, error) {
	const file = "policy.toml"
	if _, err := Read(file, data); err != nil {
		return nil, err
	}
	var target fileDoc
	if _, err := tomlfile.Decode(file, data, &target); err != nil {
		return nil, err
	}
	want(&target)
	var lines []string
	for _, s := range settings {
		lines = append(lines, s.key+" = "+s.value)
	}
	for _, attempt := range []func(string, []string, []setting) (string, bool){inPlace, appended} {
		text, ok := attempt(string(data), path, settings)
		if !ok {
			continue
		}
		var got fileDoc
		if _, err := tomlfile.Decode(file, []byte(text), &got); err != nil || !reflect.DeepEqual(got, target) {
			continue
		}
		if _, err := Read(file, []byte(text)); err != nil {
			return nil, err
		}
		return []byte(text), nil
	}
	return nil, &sdk.Error{Kind: sdk.Invalid, Op: "policy.edit", What: fmt.Sprintf("cannot change %s without disturbing the file", table(path...)),
		Hint: "write into it by hand: " + strings.Join(lines, ", ")}
}

// inPlace sets the keys in a table that has its own header: the value where
// the key is written, else a new line below the header.
func inPlace(text string, path []string, settings []setting) (string, bool) {
	for i := len(settings) - 1; i >= 0; i-- { // the last first: new lines are put below the header
		doc, err := tomlfile.Decode("", []byte(text), &map[string]any{})
		if err != nil {
			return "", false
		}
		table, key := doc.Pos(path...).Line, doc.Pos(append(path[:len(path):len(path)], settings[i].key)...).Line
		lines := strings.SplitAfter(text, "\n")
		if table == 0 || table > len(lines) || !isHeader(lines[table-1], path) {
			return "", false
		}
		if key == table {
			if !strings.HasSuffix(lines[table-1], "\n") {
				lines[table-1] += newline(text)
			}
			lines[table-1] += settings[i].key + " = " + settings[i].value + newline(text)
			text = strings.Join(lines, "")
			continue
		}
		start := len(strings.Join(lines[:key-1], ""))
		assign := assignment.FindStringSubmatch(text[start:])
		if assign == nil || strings.Trim(assign[1], `"'`) != settings[i].key {
			return "", false
		}
		start += len(assign[0])
		text = text[:start] + settings[i].value + text[start+valueLength(text[start:]):]
	}
	return text, true
}

var (
	assignment = regexp.MustCompile(`^[ \t]*([A-Za-z]+|"[A-Za-z]+"|'[A-Za-z]+')[ \t]*=[ \t]*`)
	header     = regexp.MustCompile(`^[ \t]*\[([^\[\]]*)\][ \t]*(#.*)?\r?\n?$`)
)

// isHeader reports whether line is the header of the table at path, with or
// without quotes and blanks.
func isHeader(line string, path []string) bool {
	m := header.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	rest := m[1]
	for i, k := range path {
		rest = strings.TrimLeft(rest, " \t")
		for _, form := range []string{capability.Quote(k), "'" + k + "'", k} {
			if after, ok := strings.CutPrefix(rest, form); ok {
				rest = strings.TrimLeft(after, " \t")
				break
			}
		}
		if i < len(path)-1 {
			var dot bool
			if rest, dot = strings.CutPrefix(rest, "."); !dot {
				return false
			}
		}
	}
	return rest == ""
}

// valueLength returns the length of the TOML value that s starts with.
func valueLength(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth <= 0 {
				return i + 1
			}
		case '"', '\'':
			i += stringLength(s[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		case '#', '\n', '\r', ' ', '\t':
			if depth == 0 {
				return i
			}
			if end := strings.IndexByte(s[i:], '\n'); c == '#' && end > 0 {
				i += end
			}
		}
	}
	return len(s)
}

// stringLength returns the length of the TOML string that s starts with.
func stringLength(s string) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		if s[i] == '\\' && quote[0] == '"' {
			i++
		} else if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return len(s)
}

// appended sets the keys in a table of its own at the end.
func appended(text string, path []string, settings []setting) (string, bool) {
	var b strings.Builder
	b.WriteString(text)
	nl := newline(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteString(nl)
	}
	if text != "" {
		b.WriteString(nl)
	}
	b.WriteString(table(path...) + nl)
	for _, s := range settings {
		b.WriteString(s.key + " = " + s.value + nl)
	}
	return b.String(), true
}

// newline is how text ends its lines.
func newline(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}
