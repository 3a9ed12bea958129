package shell

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "a\tb\nc", "a\tb\nc"},
		{"colour", "\x1b[1;31mred\x1b[0m!", "red!"},
		{"csi_private", "\x1b[?25lx\x1b[?25h", "x"},
		{"csi_tilde", "\x1b[15~x", "x"},
		{"csi_broken_by_newline", "\x1b[12\nx", "\nx"},
		{"csi_broken_by_text", "\x1b[1éx", "éx"},
		{"csi_broken_by_escape", "\x1b[1\x1b[0mx", "x"},
		{"osc_bell", "\x1b]0;title\x07x", "x"},
		{"osc_st", "\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"osc_unfinished", "\x1b]0;title\nx", "\nx"},
		{"dcs", "\x1bPq#0\x1b\\x", "x"},
		{"apc_pm_sos", "\x1b_a\x1b\\\x1b^b\x1b\\\x1bXc\x1b\\x", "x"},
		{"charset", "\x1b(Bx\x1b)0y", "xy"},
		{"two_bytes", "\x1b7\x1b=x\x1b8", "x"},
		{"escape_at_end", "x\x1b", "x"},
		{"cancelled", "\x1b[12\x18x", "x"},
		{"c1", "a\u009b31mb\u0085c", "a31mbc"},
		{"progress", "1%\r50%\r100%\ndone\n", "100%\ndone\n"},
		{"progress_crlf", "1%\r100%\r\n", "100%\n"},
		{"crlf", "a\r\nb\r\n", "a\nb\n"},
		{"cr_at_end", "50%\r", "50%"},
		{"progress_in_colour", "\x1b[2K\r\x1b[32m1%\x1b[0m\x1b[2K\r\x1b[32m2%\x1b[0m\n", "2%\n"},
		{"overstrike", "a\bab\bb", "ab"},
		{"backspace_wide", "é\be", "e"},
		{"backspace_at_start", "\b\bx\n\by", "x\ny"},
		{"controls", "a\x01\x02\x07\x0b\x0c\x0e\x7fb", "ab"},
		{"nul", "a\x00b", "a\ufffdb"},
		{"not_utf8", "a\xffb\xc3", "a\ufffdb\ufffd"},
		{"half_rune_then_text", "\xe2\x82x", "\ufffd\ufffdx"},
		{"half_rune_then_escape", "\xe2\x82\x1b[1mx", "\ufffd\ufffdx"},
		{"rune", "€😀", "€😀"},
	} {
		for _, size := range []int{len(tt.in), 1, 2, 3} { // however it is cut
			var b strings.Builder
			p := plain{emit: func(line []byte) { b.Write(line) }}
			for rest := []byte(tt.in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				p.write(rest[:min(size, len(rest))])
			}
			p.flush()
			if b.String() != tt.want {
				t.Errorf("%s by %d: got %q, want %q", tt.name, size, b.String(), tt.want)
			}
		}
	}
}

// TestPlainIsBounded: neither a line nor a sequence without an end is kept.
func TestPlainIsBounded(t *testing.T) {
	for name, in := range map[string]string{"line": "x", "osc": "\x1b]0;", "csi": "\x1b[", "backspace": "x\b"} {
		total := 0
		p := plain{emit: func(line []byte) {
			if total += len(line); len(line) > maxLine+utf8.UTFMax {
				t.Fatalf("%s: a line of %d", name, len(line))
			}
		}}
		p.write([]byte(in))
		for range 1 << 10 {
			p.write(bytes.Repeat([]byte("1"), 1<<10))
		}
		p.flush()
		if name != "csi" && total < 1<<20-2*maxEscape || cap(p.line) > 4*maxLine {
			t.Errorf("%s: %d bytes passed, %d are kept", name, total, cap(p.line))
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "\x1b[31mx\x1b]0;t\x07\x1bPq\x1b\\", "\xe2\x82\x1b", "a\b\b\x00\xff\u009b"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		size = max(size, 1)
		render := func(size int) string {
			var b strings.Builder
			p := plain{emit: func(line []byte) { b.Write(line) }}
			for rest := in; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				p.write(rest[:min(size, len(rest))])
			}
			p.flush()
			return b.String()
		}
		out := render(len(in) + 1)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
		}) {
			t.Fatalf("%q", out)
		}
		if len(out) > 3*len(in) {
			t.Fatalf("%d bytes of %d", len(out), len(in))
		}
		if other := render(size); other != out {
			t.Fatalf("cut by %d: %q, whole: %q", size, other, out)
		}
	})
}

// checkClip checks what is shown of a text that was written in pieces.
func checkClip(t *testing.T, all string, c *clip, runes, lines int) {
	t.Helper()
	got, omitted := c.show(runes, lines)
	if utf8.RuneCountInString(all) <= runes && strings.Count(all, "\n") <= lines {
		if got != all || omitted != 0 {
			t.Fatalf("what fits is not shown: %d of %d bytes", len(got), len(all))
		}
		return
	}
	marker := fmt.Sprintf("[... %d bytes left out ...]\n", omitted)
	head, tail, ok := strings.Cut(got, marker)
	if !ok || !utf8.ValidString(got) || omitted <= 0 {
		t.Fatalf("omitted %d, no marker in %d bytes", omitted, len(got))
	}
	if n := utf8.RuneCountInString(got); n > max(runes, room) || strings.Count(got, "\n") > lines+2 {
		t.Fatalf("%d characters and %d lines are shown of %d and %d", n, strings.Count(got, "\n"), runes, lines)
	}
	if !strings.HasPrefix(all, head) { // a line that was cut is ended
		head = strings.TrimSuffix(head, "\n")
	}
	if !strings.HasPrefix(all, head) || !strings.HasSuffix(all, tail) {
		t.Fatalf("not the beginning and the end: %.40q … %.40q", head, tail)
	}
	if sum := int64(len(head)+len(tail)) + omitted; sum != int64(len(all)) && sum != int64(len(all))-1 && sum != int64(len(all))+1 {
		t.Fatalf("%d shown + %d left out of %d", len(head)+len(tail), omitted, len(all))
	}
}

func TestClip(t *testing.T) {
	line := strings.Repeat("x", 79) + "\n"
	for name, all := range map[string]string{
		"empty": "", "short": "a\nb", "full": strings.Repeat("x", maxRunes), "one_more": strings.Repeat("x", maxRunes+1), "wide": strings.Repeat("€", maxRunes), "wide_more": strings.Repeat("😀", 5*maxRunes),
		"lines": strings.Repeat("a\n", maxLines), "lines_more": strings.Repeat("a\n", maxLines+1), "text": strings.Repeat(line, 10_000), "one_line_at_end": "a\n" + strings.Repeat("y", 100_000), "blank": strings.Repeat("\n", 100_000),
		"mixed": strings.Repeat("é\n", 100) + strings.Repeat("z", 1<<20) + strings.Repeat("\nw", 100),
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1 << 30, 16 << 10, 997} {
				var c clip
				for rest := all; rest != ""; {
					n := min(piece, len(rest))
					for n < len(rest) && !utf8.RuneStart(rest[n]) {
						n++
					}
					c.write([]byte(rest[:n]))
					rest = rest[n:]
				}
				if held := cap(c.head) + cap(c.tail); piece == 16<<10 && held > 2<<20 {
					t.Errorf("%d bytes are held", held)
				}
				checkClip(t, all, &c, maxRunes, maxLines)
				checkClip(t, all, &c, maxRunes/2, maxLines/2)
				checkClip(t, all, &c, 1000, 7)
				checkClip(t, all, &c, 0, 0)
			}
		})
	}
}

// TestClipRandom is TestClip for texts that chance makes.
func TestClipRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "é", "€", "😀", "\n", "\n\n", strings.Repeat("b", 300), strings.Repeat("c\n", 50)}
	for range 300 {
		var all strings.Builder
		var c clip
		for range r.IntN(2000) {
			s := letters[r.IntN(len(letters))]
			all.WriteString(s)
			c.write([]byte(s))
		}
		checkClip(t, all.String(), &c, maxRunes, maxLines)
		checkClip(t, all.String(), &c, r.IntN(maxRunes), r.IntN(maxLines))
	}
}

func TestShare(t *testing.T) {
	for _, tt := range [][5]int{ // a, b, all, and who gets what at least
		{10, 10, 100, 10, 10}, {1000, 10, 100, 90, 10}, {10, 1000, 100, 10, 90}, {1000, 1000, 100, 50, 50}, {0, 1000, 100, 0, 100}, {1000, 0, 100, 100, 0},
	} {
		got := share(tt[0], tt[1], tt[2])
		if got[0] < tt[3] || got[1] < tt[4] || got[0]+got[1] > tt[2] {
			t.Errorf("share(%d, %d, %d) = %v", tt[0], tt[1], tt[2], got)
		}
	}
}

func TestExitNote(t *testing.T) {
	for _, tt := range []struct {
		command string
		quiet   bool
		program string // whose exit code 1 is benign, or ""
	}{
		{"grep x f", true, "grep"}, {"grep x f", false, "grep"}, {"/usr/bin/grep x f", true, "grep"}, {"rg x", true, "rg"}, {"diff a b", true, "diff"},
		{"cmp a b", true, "cmp"}, {"test -f x", true, "test"}, {"[ -f x ]", true, "["}, {"LC_ALL=C grep x f", true, "grep"},
		{"cat f | grep x", true, "grep"}, {"echo a; grep x f", true, "grep"}, {"echo a\ngrep x f\n", true, "grep"}, {"a || grep x f", true, "grep"},
		{"cd d && grep x f", true, "grep"}, {"test -f f && grep x f", true, "grep"}, {"make && true; grep x f", true, "grep"},
		{`grep "a b" f`, true, "grep"}, {`grep 'a;b|c&&d' f`, true, "grep"}, {`grep "a\"b" f`, true, "grep"}, {`grep a\;b f`, true, "grep"}, {`grep "$X" f`, true, "grep"}, {"grep $X f", true, "grep"},
		{"grep x <f", true, "grep"}, {"grep x f 2>&1", true, "grep"}, {"grep x f >/dev/null 2>&1", true, "grep"}, {"grep if then", true, "grep"}, {"grep -e exit f", true, "grep"}, {"grep \\\n x f", true, "grep"},

		{"cd d && grep x f", false, ""}, {"false && grep x f", true, ""}, {"make && grep x f", true, ""}, {"false && cat f | grep x", true, ""},
		{"grep x f | wc -l", true, ""}, {"grep x f || false", true, ""}, {"grep x f; false", true, ""}, {"grep x f && false", true, ""},
		{"! grep x f", true, ""}, {"if grep x f; then false; fi", true, ""}, {"for i in a; do grep x f; done", true, ""}, {"set -e; false; grep x f", true, ""}, {"set -o pipefail; false | grep x", true, ""},
		{"exit 1; grep x f", true, ""}, {"(grep x f)", true, ""}, {"{ grep x f; }", true, ""}, {"grep $(false) f", true, ""}, {"grep `false` f", true, ""}, {`grep "$(x)" f`, true, ""},
		{"grep x <<EOF\nfalse\nEOF", true, ""}, {"grep x <(false)", true, ""}, {"grep 'x f", true, ""}, {`grep "x f`, true, ""}, {"echo # ; grep x", true, ""}, {"grep x f &", true, ""},
		{"trap false EXIT; grep x f", true, ""}, {"eval false; grep x f", true, ""}, {"command exit 1; grep x", true, ""}, {"sudo grep x f", true, ""}, {"xargs grep x", true, ""}, {"grepper x", true, ""}, {"time grep x", true, ""},
		{"", true, ""}, {";;", true, ""}, {"&& grep x", true, ""}, {"| grep x", true, ""}, {"A=1", true, ""}, {"false; A=grep", true, ""}, {"make test", true, ""},
	} {
		note, ok := exitNote(tt.command, 1, tt.quiet)
		if want := "exit code 1 of " + tt.program + ": "; ok != (tt.program != "") || ok && !strings.HasPrefix(note, want) || !ok && note != "" {
			t.Errorf("%q (quiet %v): %q, %v", tt.command, tt.quiet, note, ok)
		}
		if _, ok := exitNote(tt.command, 2, tt.quiet); ok {
			t.Errorf("%q: code 2 is benign", tt.command)
		}
	}
	for code, want := range map[int]string{126: "cannot be executed", 127: "not found", 137: "SIGKILL (128+9)", 139: "SIGSEGV", 200: "", 255: "", 2: ""} {
		if note, ok := exitNote("make", code, true); ok || !strings.Contains(note, want) || want == "" && note != "" {
			t.Errorf("%d: %q, %v", code, note, ok)
		}
	}
	if note, ok := exitNote("false", 0, false); !ok || note != "" {
		t.Errorf("0: %q, %v", note, ok)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"a && b || c | d; e\nf", `a "b\"c" 'd' \e`, "a $X 2>&1 <f", "a=b c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		steps, ok := split(s)
		if ok == (len(steps) == 0) {
			t.Fatalf("%q: %v, %v", s, steps, ok)
		}
		for i, st := range steps {
			if len(st.words) == 0 || (st.end == "") != (i == len(steps)-1) && i != len(steps)-1 {
				t.Fatalf("%q: %+v", s, steps)
			}
		}
		deciding(s, true)
	})
}
