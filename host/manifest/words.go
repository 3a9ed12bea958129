package manifest

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skillhost/skill/host/nearest"
)

// The values of keys that have a fixed set of them.
var (
	runtimes       = []string{"wasm", "plugin", "exec", "container", "mcp", "instructions"}
	nativeRuntimes = []string{"plugin", "exec", "container"}
	abis           = []string{"skill/1", "command/1"}
	requires       = []string{"strict", "landlock", "none"}
	isolations     = []string{"call", "fresh", "session"}
)

// Bounds of text, in bytes.
const (
	maxText    = 16 << 10 // a title, a description or an example
	maxSkillID = 64
)

const nameRule = "1 to 64 lower-case letters, digits and single hyphens, with a letter or digit at both ends"

var (
	skillName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	version   = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$`)
	image     = regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]{0,254}(@sha256:[0-9a-f]{64})?$`)
	variables = regexp.MustCompile(`\{[A-Za-z0-9_.,:*+#/;?&]+\}`)
)

func validSkillName(s string) bool {
	return len(s) <= maxSkillID && skillName.MatchString(s) && !strings.Contains(s, "--")
}

func validToolName(s string) bool { return toolName.MatchString(s) }
func validVersion(s string) bool  { return version.MatchString(s) }
func validImage(s string) bool    { return image.MatchString(s) && !strings.Contains(s, "..") }

// isURL reports whether s is an absolute URL of one of the schemes, with a
// host and without a user.
func isURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Host != "" && u.User == nil && len(s) <= 2048
}

// validTemplate reports whether s is an absolute URI once its {variables} are
// filled in.
func validTemplate(s string) bool {
	filled := variables.ReplaceAllString(s, "x")
	if strings.ContainsAny(filled, "{} \\") || len(s) > 2048 || strings.HasPrefix(s, "{") {
		return false
	}
	u, err := url.Parse(filled)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Path != "" || u.Opaque != "")
}

// badFile says why name is not a file of the skill's directory, or "".
func badFile(name string) string {
	switch {
	case name == "":
		return "no file is named"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "a control character in a file name"
	case strings.Contains(name, `\`):
		return `a backslash in a path; write "/"`
	case strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':':
		return "an absolute path; files are relative to the skill's directory"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return `".." leaves the skill's directory`
	case strings.ContainsAny(name, "*?"):
		return "a glob; name one file"
	case !fs.ValidPath(name) || name == "." || !utf8.ValidString(name):
		return fmt.Sprintf("not a clean path; write %q", path.Clean(name))
	}
	return ""
}

// text checks a text that people review and models read.
func (r *reader) text(path []string, s string) error {
	if len(s) > maxText {
		return r.fail(path, "", "%s: %d bytes of text are too many: at most %d", strings.Join(path, "."), len(s), maxText)
	}
	if c, ok := invisible(s); ok {
		return r.fail(path, "remove it: a reviewer does not see it, and a model does", "%s: the invisible character %U", strings.Join(path, "."), c)
	}
	return nil
}

// invisible returns the first character of s that changes what is read and is
// not seen: controls, direction marks, tags.
func invisible(s string) (rune, bool) {
	for _, c := range s {
		switch c {
		case '\n', '\t', '\r', '\u200c', '\u200d', '\u00ad': // joiners are part of scripts and emoji
			continue
		}
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return c, true
		}
	}
	return 0, false
}

// texts checks keys of the table at path, given as key and value in turn.
func (r *reader) texts(path []string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := r.text(append(path[:len(path):len(path)], pairs[i]), pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) oneOf(path []string, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return r.fail(path, near(value, known, "allowed"), "%s: unknown value %q", strings.Join(path, "."), clip(value))
}

// near is a hint: the known name that name may have been meant to be, and all
// that are known, each of which what says.
func near(name string, known []string, what string) string {
	hint := what + ": " + quoted(known)
	if len(known) == 0 {
		hint = what + ": none"
	}
	if found := nearest.Names(name, known, 1); found != nil {
		return fmt.Sprintf("did you mean %q? %s", found[0], hint)
	}
	return hint
}

func quoted(list []string) string {
	if len(list) > 20 {
		return fmt.Sprintf("%q and %d more", list[:20], len(list)-20)
	}
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, ", ")
}

// clip shortens a stranger's text for a message.
func clip(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
