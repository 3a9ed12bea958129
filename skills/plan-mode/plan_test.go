package main

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		text     string
		id, goal string
		steps    string // "x" for one that is done
		body     string
		problem  string
	}{
		"empty":            {},
		"plain":            {text: "# Plan\n- [ ] one\n", steps: "one", body: "# Plan\n- [ ] one\n"},
		"whole":            {text: "---\nid: a\ngoal: to do: it\nstatus: open\n---\n\n# P\n- [ ] one\n- [x] two\n", id: "a", goal: "to do: it", steps: "one xtwo", body: "# P\n- [ ] one\n- [x] two\n"},
		"crlf":             {text: "---\r\nid: a\r\n---\r\n\r\n- [ ] one\r\n", id: "a", steps: "one", body: "- [ ] one\r\n"},
		"bom":              {text: "\ufeff---\nid: a\n---\nx", id: "a", body: "x"},
		"quoted":           {text: "---\nid: \"a\\nb\"\ngoal: 'it''s'\n---\n", id: "a b", goal: "it's"},
		"badly_quoted":     {text: "---\nid: \"a\\q\"\n---\n", id: `"a\q"`},
		"twice":            {text: "---\nid: a\nid: b\n---\n", id: "a", problem: "says id twice"},
		"no_end":           {text: "---\nid: a\n# P\n", body: "---\nid: a\n# P\n", problem: "no end"},
		"no_end_long":      {text: "---\n" + strings.Repeat("x\n", maxFront+1) + "---\n", body: "---\n" + strings.Repeat("x\n", maxFront+1) + "---\n", problem: "no end"},
		"dots":             {text: "---\nid: a\n...\nx", id: "a", body: "x"},
		"only_front":       {text: "---\nid: a\n---", id: "a"},
		"rule":             {text: "text\n---\nid: a\n---\n", body: "text\n---\nid: a\n---\n"},
		"not_utf8":         {text: "- [ ] \xff", steps: "\ufffd", body: "- [ ] \ufffd", problem: "not all UTF-8"},
		"fence":            {text: "```\n- [ ] no\n```\n- [ ] yes\n~~~~\n- [ ] no\n~~~\n- [ ] no\n~~~~\n* [X] too", steps: "yes xtoo", body: "```\n- [ ] no\n```\n- [ ] yes\n~~~~\n- [ ] no\n~~~\n- [ ] no\n~~~~\n* [X] too"},
		"fence_with_words": {text: "```sh\n- [ ] no\n``` sh\n- [ ] no\n```\n+ [ ] yes", steps: "yes", body: "```sh\n- [ ] no\n``` sh\n- [ ] no\n```\n+ [ ] yes"},
		"indented":         {text: "  - [ ] one\n\t* [x]  two \n", steps: "one xtwo", body: "  - [ ] one\n\t* [x]  two \n"},
		"no_boxes":         {text: "- [] a\n- [y] b\n- [ ]c\n[ ] d\n-[ ] e\n- [ ]\n- [ ] \n", body: "- [] a\n- [y] b\n- [ ]c\n[ ] d\n-[ ] e\n- [ ]\n- [ ] \n"},
		"control":          {text: "---\ngoal: a\x1b[2Jb\n---\n- [ ] c\x07d\n", goal: "a [2Jb", steps: "c d", body: "- [ ] c\x07d\n"},
		"many":             {text: strings.Repeat("- [ ] s\n", maxSteps+1), steps: strings.TrimSpace(strings.Repeat("s ", maxSteps)), body: strings.Repeat("- [ ] s\n", maxSteps+1), problem: "more steps"},
	} {
		p := parse([]byte(tt.text))
		var steps []string
		for _, s := range p.steps {
			if s.Done {
				s.Text = "x" + s.Text
			}
			steps = append(steps, s.Text)
		}
		problems := strings.Join(p.problems, "; ")
		if p.id != tt.id || p.goal != tt.goal || strings.Join(steps, " ") != tt.steps || p.body != tt.body || (tt.problem == "") != (problems == "") || !strings.Contains(problems, tt.problem) {
			t.Errorf("%s: %q, %q, %q, %q, %q", name, p.id, p.goal, steps, p.body, problems)
		}
	}
}

func TestText(t *testing.T) {
	p := plan{id: "a", goal: `He said: "do #1"`, status: "open", created: "2026-11-25T09:00:00Z", updated: "2026-11-25T09:00:00Z", more: []string{"tags:", "  - x", "# remark"}, body: "# P\n"}
	const want = "---\nid: a\ngoal: \"He said: \\\"do #1\\\"\"\nstatus: open\ncreated: 2026-11-25T09:00:00Z\nupdated: 2026-11-25T09:00:00Z\ntags:\n  - x\n# remark\n---\n\n# P\n"
	if got := p.text(); got != want {
		t.Errorf("%q", got)
	}
	for _, s := range []string{"", "true", "No", "1.5", "0x1F", "- a", "a: b", "a #b", "a:", "'a", "[a]", "{a}", "!a", "~", "a\\b", "ä", "12:30"} {
		q := quote(s)
		if got := unquote(q); got != s {
			t.Errorf("%q is written as %s and read as %q", s, q, got)
		}
	}
	for s, plain := range map[string]bool{"true": false, "12:30": false, "": false, "a": true, "Login with OAuth": true, "a: b": false} {
		if (quote(s) == s) != plain {
			t.Errorf("%q is written as %s", s, quote(s))
		}
	}
}

// FuzzParse: whatever a plan file holds, it is read, and what is written is read
// as the same again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "---\nid: a\ngoal: \"x\"\n---\n\n- [ ] one\n", "---\n", "---\r\n---\r\n\r\n", "\ufeff---\nid: 'a'\nx\n---\r\rbody", "```\n- [ ] a", "---\n---\n\n---\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parse(data)
		text := p.text()
		if !utf8.ValidString(text) {
			t.Fatalf("%q is written as %q", data, text)
		}
		again := parse([]byte(text))
		again.problems, p.problems = nil, nil
		if !reflect.DeepEqual(again, p) {
			t.Fatalf("%q:\n%+v\nis written as %q:\n%+v", data, p, text, again)
		}
		if len(p.steps) > maxSteps {
			t.Fatal(len(p.steps))
		}
		for _, s := range append(p.steps, step{Text: p.goal}, step{Text: p.id}) {
			if strings.ContainsAny(s.Text, "\n\r\x1b") {
				t.Fatalf("%q", s.Text)
			}
		}
	})
}

func TestSlug(t *testing.T) {
	for goal, want := range map[string]string{
		"": "plan", "!!!": "plan", "Login with OAuth 2.0!": "login-with-oauth-2-0", "  a  b ": "a-b", "Добавить вход": "добавить-вход", "認証を追加": "認証を追加",
		"../../etc/passwd": "etc-passwd", strings.Repeat("ab ", 40): strings.TrimSuffix(strings.Repeat("ab-", 13), "-") + "-a", "\x00\xff": "plan",
	} {
		if got := slug(goal); got != want {
			t.Errorf("%q: %q, want %q", goal, got, want)
		}
		if got := slug(goal); len(got) > maxID || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\.") {
			t.Errorf("%q: %q", goal, got)
		}
	}
}
