package stage

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Together the rights of a view are all that Landlock has: none that a rule set
// handles is left to everybody, none is in two.
func TestAccesses(t *testing.T) {
	const abi9 = 1<<17 - 1
	all := []uint8{Read, Write, Exec, Socket}
	var sum uint64
	for _, r := range all {
		if sum&accesses(r) != 0 {
			t.Errorf("right %d shares %#x with another", r, sum&accesses(r))
		}
		sum |= accesses(r)
	}
	if sum != abi9 {
		t.Errorf("the rights come to %#x, want %#x", sum, uint64(abi9))
	}
	if accesses(Read)&unix.LANDLOCK_ACCESS_FS_EXECUTE != 0 || accesses(Write)&unix.LANDLOCK_ACCESS_FS_READ_FILE != 0 {
		t.Error("a right grants another")
	}
	if got := unsafe.Offsetof(pathAttr{}.parent); got != 8 {
		t.Errorf("parent_fd is at %d", got)
	}
}

func TestAttempts(t *testing.T) {
	for level, least := range map[string]int{"strict": 8, "landlock": 4, "none": 2} {
		if n := len(attempts(level, "1", "/etc")); n < least {
			t.Errorf("%s is tried by %d attempts", level, n)
		}
	}
	if trial([]string{"hard", "1", "/etc"}) == TrialOK || trial(nil) == TrialOK {
		t.Error("an unknown level passes its trial")
	}
	if Attempt("strict", 1) == Attempt("strict", 2) || Attempt("strict", 99) == "" {
		t.Error("attempts are not told apart")
	}
}

// Outside of a cage the trials fail, or they would prove nothing.
func TestTrialWithoutCage(t *testing.T) {
	for _, level := range []string{"strict", "landlock", "none"} {
		if trial([]string{level, "1", "/etc"}) == TrialOK {
			t.Errorf("the trial of %s passes here", level)
		}
	}
}
