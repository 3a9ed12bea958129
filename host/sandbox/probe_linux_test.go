package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/sandbox/stage"
)

func TestProbe(t *testing.T) {
	need(t, Strict)
	r := Probe()
	text := strings.Join(r.Means, ", ")
	for _, part := range []string{"namespaces", "private root", "Landlock ABI", "seccomp"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not among %q", part, text)
		}
	}
	if len(r.Resource) == 0 {
		t.Error("it is not said what bounds memory")
	}
}

// A level of which one part does not hold is not reported: the trial of each
// level fails in the cage of the next lower one, which lacks a part of it.
func TestTrialOfALowerCage(t *testing.T) {
	w := newWorld(t)
	run := func(claimed, caged Level) int {
		p := Program{File: open(t, "/proc/self/exe"), Env: []string{"GOMAXPROCS=1"},
			Args: []string{stage.Trial, string(claimed), strconv.Itoa(os.Getpid()), "/etc"}}
		c := Cage{Level: caged, View: loaderOnly(), Limits: Limits{Memory: unbounded}}
		_, s := w.run(t, c, p)
		return s.Exit
	}
	if got := run(Strict, need(t, Strict)); got != stage.TrialOK {
		t.Errorf("strict in strict: %s", stage.Attempt("strict", got))
	}
	if os.Geteuid() == 0 {
		return // who has no lower ones
	}
	for claimed, caged := range map[Level]Level{Strict: Landlock, Landlock: None} {
		if got := run(claimed, caged); got == stage.TrialOK {
			t.Errorf("the trial of %s passes in a cage of %s", claimed, caged)
		}
		if got := run(caged, caged); got != stage.TrialOK {
			t.Errorf("%s in %s: %s", caged, caged, stage.Attempt(string(caged), got))
		}
	}
	if err := trialError(Strict, State{Exit: 1}); !strings.Contains(err.Error(), "not denied") {
		t.Error(err)
	}
}

func TestCovers(t *testing.T) {
	all := []Level{None, Landlock, Strict}
	for i, have := range all {
		for j, want := range all {
			if got := have.Covers(want); got != (i >= j) {
				t.Errorf("%s covers %s: %v", have, want, got)
			}
		}
		if have.Covers("") || have.Covers("hard") || Level("").Covers(have) || Level("hard").Covers(have) {
			t.Errorf("%s and an unknown level cover one another", have)
		}
	}
}
