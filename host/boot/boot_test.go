package boot

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

func TestOver(t *testing.T) {
	broken := errors.New("broken")
	asked := map[string]int{}
	b := New(func() (string, error) { return "me", nil }, func(boot string) (bool, error) {
		asked[boot]++
		switch boot {
		case "lives":
			return true, nil
		case "broken":
			return false, broken
		}
		return false, nil
	})
	for range 3 {
		for boot, want := range map[string]bool{"me": false, "lives": false, "broken": false, "gone": true, "": true} {
			over, err := b.Over(boot)
			if over != want || (boot == "broken") != errors.Is(err, broken) {
				t.Errorf("%q: %v, %v", boot, over, err)
			}
		}
	}
	if asked["me"] != 0 || asked["lives"] != 3 || asked["broken"] != 3 || asked["gone"] != 1 {
		t.Errorf("asked %v", asked)
	}
}

// Who cannot tell who it is, says of nobody that it has ended: it may be itself.
func TestWithoutSelf(t *testing.T) {
	broken := errors.New("broken")
	b := New(func() (string, error) { return "", broken }, nil)
	if over, err := b.Over("x"); over || !errors.Is(err, broken) {
		t.Errorf("%v, %v", over, err)
	}
	if _, err := b.Self(); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	a, b := New(nil, nil), New(nil, nil)
	mine, err := a.Self()
	if err != nil || mine == "" {
		t.Fatalf("%q, %v", mine, err)
	}
	if other, _ := b.Self(); other == mine {
		t.Error("two processes are one boot")
	}
	if over, err := a.Over(mine); over || err != nil {
		t.Errorf("its own: %v, %v", over, err)
	}
	if over, err := b.Over(mine); !over || err != nil {
		t.Errorf("another's: %v, %v", over, err)
	}
}

// What is remembered is bounded, and many may ask at once.
func TestMany(t *testing.T) {
	b := New(nil, nil)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range maxEnded {
				if over, err := b.Over(fmt.Sprint(g, "/", i)); !over || err != nil {
					t.Errorf("%v, %v", over, err)
				}
			}
		})
	}
	all.Wait()
	if len(b.ended) > maxEnded {
		t.Errorf("%d are remembered", len(b.ended))
	}
}
