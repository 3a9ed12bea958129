package ask

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A display is a terminal under test.
type display struct {
	mu    sync.Mutex
	owned bool
	reply func(ctx context.Context, v View, give func(Reply) error) error
}

func (d *display) Owned() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owned
}

func (d *display) Ask(ctx context.Context, v View, give func(Reply) error) error {
	return d.reply(ctx, v, give)
}

func TestAlone(t *testing.T) {
	r := newRoom(Options{})
	a := put(t, r, call("T"), "?")
	want(t, waits(a, true), false) // nobody is there: it does not hang
	if r.Attached(alice) {
		t.Error("attached")
	}
	detach := r.Attach()
	if !r.Attached(alice) {
		t.Error("not attached")
	}
	ch := waits(a, true)
	if err := r.Answer(a.view.ID, Terminal, accept("0")); err != nil {
		t.Fatal(err)
	}
	want(t, ch, true)
	detach()
	if r.Attached(alice) {
		t.Error("attached after he left")
	}
}

func TestDisplay(t *testing.T) {
	d := &display{}
	r := newRoom(Options{Display: d})
	a := put(t, r, call("T"), "?")
	want(t, waits(a, true), false) // it is not ours to draw on
	d.owned = true
	d.reply = func(_ context.Context, v View, give func(Reply) error) error { return give(accept("1")) }
	want(t, waits(a, true), true)
	if x := a.Take(nil)["user"]; x.Channel != "tty" || string(x.Content) != `{"n":"b"}` {
		t.Errorf("%+v", x)
	}
	// The terminal is told when another way is faster, and left.
	b := put(t, r, call("T"), "b")
	left, drawn := make(chan error, 1), make(chan bool, 1)
	d.reply = func(ctx context.Context, _ View, give func(Reply) error) error {
		drawn <- true
		<-ctx.Done()
		left <- give(accept("0"))
		return ctx.Err()
	}
	ch := waits(b, true)
	<-drawn
	if err := r.Answer(b.view.ID, Page, accept("1")); err != nil {
		t.Fatal(err)
	}
	want(t, ch, true)
	if err := <-left; !errors.Is(err, ErrOver) {
		t.Errorf("%v", err)
	}
	if b.Take(nil)["user"].Channel != "page" {
		t.Error("the first answer did not count")
	}
	// A terminal that breaks is no reason to wait.
	c := put(t, r, call("T"), "c")
	d.reply = func(context.Context, View, func(Reply) error) error { return errors.New("hung up") }
	want(t, waits(c, true), false)
}

// One question is shown at a time.
func TestDisplayTurns(t *testing.T) {
	var at, most atomic.Int32
	d := &display{owned: true}
	d.reply = func(_ context.Context, v View, give func(Reply) error) error {
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond)
		at.Add(-1)
		return give(accept("0"))
	}
	r := newRoom(Options{Display: d})
	var all []chan bool
	for i := range 8 {
		all = append(all, waits(put(t, r, call("T"), fmt.Sprint(i)), true))
	}
	for _, ch := range all {
		want(t, ch, true)
	}
	if most.Load() != 1 {
		t.Errorf("%d questions at once", most.Load())
	}
}
