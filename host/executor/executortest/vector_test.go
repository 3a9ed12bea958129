package executortest

import (
	"io/fs"
	"strings"
	"testing"
)

// Every vector is well formed, says its promise, and checks something.
func TestVectors(t *testing.T) {
	names, err := fs.Glob(vectors, "testdata/*.txt")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d vectors, %v", len(names), err)
	}
	for _, name := range names {
		text, err := vectors.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := parse(string(text), "/dir")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, c := range v.calls {
			if len(c.want) == 0 {
				t.Errorf("%s: nothing is expected of call %d", name, i+1)
			}
		}
		if !strings.HasSuffix(v.promise, ".") {
			t.Errorf("%s: %q is not a sentence", name, v.promise)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no_promise":        "call say x\ntext x",
		"no_call":           "# Promise.\ndir data",
		"unknown_word":      "# Promise.\ncall say x\nhopes x",
		"want_before_call":  "# Promise.\ntext x\ncall say x",
		"unknown_limit":     "# Promise.\nlimit patience 1s\ncall say x",
		"bad_number":        "# Promise.\nlimit memory much\ncall say x",
		"bad_duration":      "# Promise.\nlimit timeout soon\ncall say x",
		"bad_kind":          "# Promise.\nallow magic x\ncall say x",
		"bad_entry":         "# Promise.\nallow filesystem relative\ncall say x",
		"step_without_verb": "# Promise.\ncall say x ;",
	} {
		if _, err := parse(text, "/dir"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Each expectation can fail.
func TestExpectationsFail(t *testing.T) {
	v := &vector{calls: []call{{}}}
	for _, line := range []string{"text other", "has other", "lacks some", "oneof a | b", "fails guest", "says other", "silent noise", "seen x", "unseen read", "same", "fails limit guest"} {
		word, text, _ := strings.Cut(line, " ")
		if err := v.expect(word, text); err != nil {
			t.Fatal(err)
		}
		want := v.calls[0].want[len(v.calls[0].want)-1]
		if want(outcome{text: "some text", logs: "noise", seen: []string{"filesystem.read /a"}}, "before") == "" {
			t.Errorf("%q holds of everything", line)
		}
	}
	if err := v.expect("seen", "filesystem.read /data/a.txt"); err != nil {
		t.Fatal(err)
	}
	recorded := v.calls[0].want[len(v.calls[0].want)-1]
	for _, c := range []struct {
		seen string
		ok   bool
	}{{"filesystem.read /data", true}, {"filesystem.read /dat", false}, {"filesystem.write /data", false}} {
		if got := recorded(outcome{kernel: true, seen: []string{c.seen}}, "") == ""; got != c.ok {
			t.Errorf("what was granted is %s: %v", c.seen, got)
		}
	}
	if err := v.expect("differs", ""); err != nil {
		t.Fatal(err)
	}
	if v.calls[0].want[len(v.calls[0].want)-1](outcome{text: "before"}, "before") == "" {
		t.Error("differs holds of the same")
	}
}
