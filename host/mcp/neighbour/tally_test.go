package neighbour

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// told notes what a tally tells.
type told struct {
	mu sync.Mutex
	n  []int
}

func (t *told) tell(_ string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n = append(t.n, n)
}

func (t *told) all() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.n)
}

func within(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// log_flood: who is turned away often fills no log, and is counted.
func TestTally(t *testing.T) {
	var heard told
	x := tally{every: time.Hour, tell: heard.tell}
	for range 1000 {
		x.add("user 7")
	}
	if got := heard.all(); !slices.Equal(got, []int{1}) {
		t.Errorf("told at once: %v", got)
	}
	x.ring()
	x.ring() // nothing came: the next is told at once
	x.add("user 7")
	x.add("user 7")
	if got := heard.all(); !slices.Equal(got, []int{1, 999, 1}) {
		t.Errorf("told after a while: %v", got)
	}
	x.close()
	x.close()
	x.add("user 7")
	if got := heard.all(); !slices.Equal(got, []int{1, 999, 1, 1}) {
		t.Errorf("told in the end: %v", got)
	}
}

// The timer rings by itself.
func TestTallyRings(t *testing.T) {
	var heard told
	x := tally{every: time.Millisecond, tell: heard.tell}
	defer x.close()
	for range 50 {
		x.add("user 7")
	}
	within(t, func() bool {
		sum := 0
		for _, n := range heard.all() {
			sum += n
		}
		return sum == 50
	})
	within(t, func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.next == nil })
}

// neighbours_flood: while as many as may be are being told why they are turned
// away, others are so without a word, and the user is served.
func TestTurnedAwayAreFew(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var heard told
	only := Only(inner, 1000, "go away", heard.tell).(*listener)
	t.Cleanup(func() { only.Close() })
	whose := []int{1001, 1001, 1000, 1001, 1000}
	only.owner = func(net.Conn) (who int, _ error) { // in the order in which they come
		who, whose = whose[0], whose[1:]
		return who, nil
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	said := func(c net.Conn) string {
		t.Helper()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatal("it is still open")
		}
		return string(b)
	}
	serve := func() {
		t.Helper()
		c, err := only.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for range maxAnswered {
		only.answered <- struct{}{}
	}
	first, second := dial(), dial()
	dial()
	serve()
	for i, c := range []net.Conn{first, second} {
		if got := said(c); got != "" {
			t.Errorf("stranger %d: %q", i, got)
		}
	}
	<-only.answered
	third := dial()
	dial()
	serve()
	if got := said(third); got != "go away" {
		t.Errorf("once there is room: %q", got)
	}
	only.Close()
	sum := 0
	for _, n := range heard.all() {
		sum += n
	}
	if sum != 3 {
		t.Errorf("told of %d", sum)
	}
}
