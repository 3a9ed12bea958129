package bound

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// One caller has its share, all callers have what there is, and nobody is
// remembered who has nothing open.
func TestCount(t *testing.T) {
	c := Count{What: "doors", All: 3, Each: 2}
	take := func(who, want string) {
		t.Helper()
		if err := c.Take(who); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", who, err, want)
		}
	}
	take("a", "")
	take("a", "")
	take("a", "its share is 2")
	take("b", "")
	take("b", "too many doors are open")
	c.Leave("a")
	take("b", "")
	take("a", "too many doors are open")
	c.Leave("b")
	c.Leave("b")
	c.Leave("a")
	if c.Len() != 0 || len(c.by) != 0 {
		t.Errorf("%d open, of %v", c.Len(), c.by)
	}
	same := Count{What: "doors", All: 2}
	for range 2 {
		if err := same.Take("a"); err != nil {
			t.Error(err)
		}
	}
	if err := same.Take("a"); err == nil || same.Len() != 2 {
		t.Errorf("%v, %d", err, same.Len())
	}
}

// limiters_full: who comes when there is no room is not without a limit.
func TestRatesOfTheCrowd(t *testing.T) {
	r := Rates{Rate: 0.01, Burst: 1}
	for i := range maxRates {
		if _, ok := r.Take(fmt.Sprint("n", i), 1); !ok {
			t.Fatal(i)
		}
	}
	if wait := r.Spent("a"); wait != 0 {
		t.Errorf("before anybody of the crowd came: %v", wait)
	}
	if _, ok := r.Take("a", 1); !ok {
		t.Error("the first of the crowd")
	}
	if wait, ok := r.Take("b", 1); ok || wait <= 0 {
		t.Errorf("the second of the crowd: %v %v", wait, ok)
	}
	if r.Spent("c") <= 0 || r.Spent("n1") <= 0 {
		t.Error("they are not spent")
	}
	if r.Len() > maxRates+1 {
		t.Errorf("%d are remembered", r.Len())
	}
}

func TestRates(t *testing.T) {
	r := Rates{Rate: 1000, Burst: 4}
	if wait, ok := r.Take("a", 5); ok || wait != 0 {
		t.Errorf("more than may ever come: %v %v", wait, ok)
	}
	for i := range maxRates { // as good as new after 4 ms: there is always room, sooner or later
		r.Take(fmt.Sprint(i), 1)
	}
	for end := time.Now().Add(20 * time.Second); r.Len() > maxRates/2; time.Sleep(time.Millisecond) {
		r.Take("b"+fmt.Sprint(time.Now().UnixNano()), 1)
		if time.Now().After(end) {
			t.Fatalf("%d are remembered", r.Len())
		}
	}
	var none Rates
	if wait, ok := none.Take("a", 100); !ok || wait != 0 || none.Spent("a") != 0 || none.Len() != 0 {
		t.Error("the zero value bounds")
	}
}

func TestSeen(t *testing.T) {
	var s Seen
	if s.Has("a") {
		t.Error("never seen")
	}
	for i := range 3 * maxSeen {
		s.Add(fmt.Sprint(i))
	}
	if !s.Has(fmt.Sprint(3*maxSeen-1)) || !s.Has(fmt.Sprint(2*maxSeen+1)) || s.Has("0") {
		t.Error("the last are to be remembered, the first not")
	}
	if n := len(s.now) + len(s.old); n > 2*maxSeen {
		t.Errorf("%d are remembered", n)
	}
}
