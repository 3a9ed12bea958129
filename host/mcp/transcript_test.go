package mcp

import (
	"github.com/skillhost/skill/host/mcp/conversation"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The transcripts in testdata are conversations: "> " is what the client
// sends, "< " what it must receive, "# " a remark. "..." in an answer stands
// for anything. In testdata/talk each line is sent when what precedes it was
// answered; in testdata/pipe all lines come at once and the input ends, and
// the answers may come in any order.

func transcripts(t *testing.T, dir string, f func(t *testing.T, lines []string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for l := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n") {
				if len(l) > 2 && strings.Contains("><?!", l[:1]) && l[1] == ' ' {
					lines = append(lines, l)
				} else if l != "" && !strings.HasPrefix(l, "# ") {
					t.Fatalf("not a line of a transcript: %q", l)
				}
			}
			f(t, lines)
		})
	}
}

// matches compares an answer with a pattern in which "..." is anything.
func matches(pattern, got string) bool {
	parts := strings.Split(pattern, "...")
	if !strings.HasPrefix(got, parts[0]) {
		return false
	}
	rest := got[len(parts[0]):]
	for i, p := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(rest, p)
		}
		at := strings.Index(rest, p)
		if at < 0 {
			return false
		}
		rest = rest[at+len(p):]
	}
	return len(parts) > 1 || rest == ""
}

func TestTalk(t *testing.T) {
	transcripts(t, "talk", func(t *testing.T, lines []string) {
		s := serve(t, newHouse(), Options{Options: conversation.Options{Name: "skill", Version: "1"}})
		for _, l := range lines {
			if l[0] == '>' {
				s.send(l[2:])
			} else if got := s.recv(); !matches(l[2:], got) {
				t.Fatalf("got  %s\nwant %s", got, l[2:])
			}
		}
		s.in.Close()
		if rest, _ := s.out.ReadString('\n'); rest != "" {
			t.Fatalf("one answer too many: %s", rest)
		}
	})
}

func TestPipe(t *testing.T) {
	transcripts(t, "pipe", func(t *testing.T, lines []string) {
		var in strings.Builder
		var want []string
		for _, l := range lines {
			if l[0] == '>' {
				in.WriteString(l[2:] + "\n")
			} else {
				want = append(want, l[2:])
			}
		}
		got := piped(t, newHouse(), Options{Options: conversation.Options{Name: "skill", Version: "1"}}, in.String())
		for _, w := range want {
			found := false
			for i, g := range got {
				if matches(w, g) {
					got, found = append(got[:i:i], got[i+1:]...), true
					break
				}
			}
			if !found {
				t.Errorf("missing %s", w)
			}
		}
		if len(got) > 0 {
			t.Errorf("not expected: %s", got)
		}
	})
}
