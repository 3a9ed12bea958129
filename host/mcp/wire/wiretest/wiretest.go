// Package wiretest has the lines that fuzzers of the protocol begin with. It
// knows nothing of what they mean.
package wiretest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines returns every line that a client sends in the transcripts below dir,
// and some that are JSON only just, or not quite.
func Lines(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", dir, err)
	}
	var lines []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(l), "> "); ok {
				lines = append(lines, line)
			}
		}
	}
	return append(lines, `{"a":[1,-0.5e+3,true,false,null,"\u00e9\n"]}`, `[]`, `{}`, "\"\xff\"", `1.e3`, `-`, strings.Repeat("[", 1001)+strings.Repeat("]", 1001))
}
