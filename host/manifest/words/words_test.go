package words

import (
	"strings"
	"testing"
)

func TestJudgements(t *testing.T) {
	https := func(s string) bool { return IsURL(s, "https") }
	file := func(s string) bool { return BadFile(s) == "" }
	seen := func(s string) bool { _, hidden := Invisible(s); return !hidden }
	for _, tc := range []struct {
		name      string
		judge     func(string) bool
		good, bad []string
	}{
		{"skill name", IsSkillName, []string{"a", "a-1", strings.Repeat("a", 64)}, []string{"", "A", "-a", "a-", "a--b", "a_b", "a\n", "ä", strings.Repeat("a", 65)}},
		{"tool name", IsToolName, []string{"a", "A.b-c_d", ".", strings.Repeat("a", 128)}, []string{"", "a b", "a/b", "ä", "a\n", strings.Repeat("a", 129)}},
		{"version", IsVersion, []string{"0.0.0", "1.2.3-beta.1+x"}, []string{"", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3\n", "1234567890.0.0"}},
		{"image", IsImage, []string{"a", "ghcr.io/o/n:1", "a@sha256:" + strings.Repeat("0", 64)}, []string{"", "-v", "A", "a..b", "a@sha256:0", "a b"}},
		{"url", https, []string{"https://a", "https://a/b?c"}, []string{"", "a", "http://a", "https:///a", "https://u:p@a", "javascript:x", "https://" + strings.Repeat("a", 2048)}},
		{"template", IsTemplate, []string{"a://b", "a:b", "a://b/{c}"}, []string{"", "b", "{a}://b", "a://{b", "a://b c", `a:\b`}},
		{"file", file, []string{"a", "a/b.c", ".a", "..a"}, []string{"", ".", "..", "/a", "a/../b", "a/", "a//b", `a\b`, "C:a", "a*", "a?", "a\x00", "a\nb", "\xff"}},
		{"text", seen, []string{"", "a\n\tb", "👩\u200d🚀"}, []string{"a\x00", "\u202e", "\u200b", "\U000E0041", "\x1b[0m"}},
	} {
		for _, s := range tc.good {
			if !tc.judge(s) {
				t.Errorf("%s: %.80q is refused", tc.name, s)
			}
		}
		for _, s := range tc.bad {
			if tc.judge(s) {
				t.Errorf("%s: %.80q is accepted", tc.name, s)
			}
		}
	}
}

func TestMessages(t *testing.T) {
	for got, want := range map[string]string{
		Clip("short"):                             "short",
		Clip(strings.Repeat("ä", 81)):             strings.Repeat("ä", 80) + "…",
		Quoted([]string{"a", "b"}):                `"a", "b"`,
		Near("clal", []string{"call"}, "allowed"): `did you mean "call"? allowed: "call"`,
		Near("x", nil, "allowed"):                 "allowed: none",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
