package streamable

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// goroutines returns the stacks of all goroutines but those that are not ours.
func goroutines() map[string]bool {
	buf := make([]byte, 4<<20)
	out := map[string]bool{}
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if !strings.Contains(g, "testing.") && !strings.Contains(g, "runtime.ReadTrace") && strings.Contains(g, "skillhost") {
			head, _, _ := strings.Cut(g, " [")
			out[head+g[strings.Index(g, "\n"):]] = true
		}
	}
	return out
}

// leaks fails the test if goroutines of this project are left that were not
// there before.
func leaks(t *testing.T, before map[string]bool) {
	t.Helper()
	var left []string
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left = nil
		for g := range goroutines() {
			if !before[g] {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
}
