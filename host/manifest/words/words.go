// Package words judges the single words of a manifest: names, versions, URLs,
// file names and the text that people review. It says what is wrong with one;
// it does not know where the word stands or what it is for.
package words

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/skillhost/skill/host/nearest"
)

// Bounds of text, in bytes.
const (
	MaxText    = 16 << 10 // a title, a description or an example
	maxSkillID = 64
)

// NameRule is what IsSkillName wants, for messages.
const NameRule = "1 to 64 lower-case letters, digits and single hyphens, with a letter or digit at both ends"

// Long bounds are not written as repetitions, which are slow to compile: this
// is done whenever the program starts.
var (
	skillName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	version   = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	image     = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]{0,254}(@sha256:[0-9a-f]{64})?$`)
	})
	variables = regexp.MustCompile(`\{[A-Za-z0-9_.,:*+#/;?&]+\}`)
)

// IsSkillName reports whether s can be the name of a skill.
func IsSkillName(s string) bool {
	return len(s) <= maxSkillID && skillName.MatchString(s) && !strings.Contains(s, "--")
}

// IsToolName reports whether s can be the name of a tool, a resource, a prompt
// or an argument.
func IsToolName(s string) bool { return len(s) <= 128 && toolName.MatchString(s) }

// IsVersion reports whether s is a semantic version.
func IsVersion(s string) bool { return len(s) <= 128 && version.MatchString(s) }

// IsImage reports whether s is the name of a container image.
func IsImage(s string) bool { return image().MatchString(s) && !strings.Contains(s, "..") }

// IsURL reports whether s is an absolute URL of one of the schemes, with a
// host and without a user.
func IsURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Host != "" && u.User == nil && len(s) <= 2048
}

// IsTemplate reports whether s is an absolute URI once its {variables} are
// filled in.
func IsTemplate(s string) bool {
	filled := variables.ReplaceAllString(s, "x")
	if strings.ContainsAny(filled, "{} \\") || len(s) > 2048 || strings.HasPrefix(s, "{") {
		return false
	}
	u, err := url.Parse(filled)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Path != "" || u.Opaque != "")
}

// BadFile says why name is not a file of the skill's directory, or "".
func BadFile(name string) string {
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

// Invisible returns the first character of s that changes what is read and is
// not seen: controls, direction marks, tags.
func Invisible(s string) (rune, bool) {
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

// Near is a hint: the known name that name may have been meant to be, and all
// that are known, each of which what says.
func Near(name string, known []string, what string) string {
	hint := what + ": " + Quoted(known)
	if len(known) == 0 {
		hint = what + ": none"
	}
	if found := nearest.Names(name, known, 1); found != nil {
		return fmt.Sprintf("did you mean %q? %s", found[0], hint)
	}
	return hint
}

// Quoted lists up to 20 words for a message.
func Quoted(list []string) string {
	if len(list) > 20 {
		return fmt.Sprintf("%q and %d more", list[:20], len(list)-20)
	}
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, ", ")
}

// Clip shortens a stranger's text for a message.
func Clip(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
