// Package timer keeps messages that are to come back to a session later, and
// the inbox in which they wait for it once their time has come. Both are in the
// store, in one row for each session, so that a timer which fires is in the
// inbox by the same write. Firing runs no code.
//
// Several hosts of a user share the store. A timer belongs to the host that set
// it, and ends with that host or its session; a durable one, and what it has
// fired, passes to a host that lives, for the same caller in the same workspace.
//
// It does not know tools, protocols or clients: who listens for a session says
// so with an Ear, and who answers it takes along what waits (Take).
package timer

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks/timer/row"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a timer.
const (
	Slots      = 8 // timers of a skill in a session
	MaxMessage = row.MaxMessage
	MinDelay   = row.MinDelay
	MaxDelay   = row.MaxDelay
	MaxRepeat  = 100_000
	Forever    = row.Forever
)

// Bounds of what is kept.
const (
	maxFamily  = row.MaxTimers       // timers, and sessions with any, of a caller in a workspace
	keepFor    = 30 * 24 * time.Hour // what nobody takes over
	maxRide    = 8                   // entries that are taken at once
	rideBytes  = 8 << 10             // of their messages, unless it is one
	maxPresent = 4096                // callers and sessions that are remembered between calls
)

// Options of New.
type Options struct {
	Store store.Store
	Boots *boot.Boots
	Clock Clock        // nil means the machine's
	Log   *slog.Logger // nil: nobody is told

	// Workspace is that of this host. What was set in others is not its own.
	Workspace string

	// May reports whether what a skill has set may reach scope today. It is
	// asked before anything is handed out; nil: always.
	May func(skill string, scope sdk.Scope) bool
}

// An Owner is whose timers are meant: those of one skill in one session.
type Owner struct{ Caller, Workspace, Session, Skill string }

// A Spec says what a timer is to be.
type Spec struct {
	Message string
	Delay   time.Duration
	Repeat  int // how often it fires, or Forever
	Durable bool
	Slot    *int // the id that is wished for, if it is free
}

// A Timer is what is told of a timer.
type Timer struct {
	ID        int       `json:"id"` // 0 to 7
	Message   string    `json:"message"`
	Delay     int       `json:"delay_seconds"`
	NextFire  time.Time `json:"next_fire_at,omitzero"` // absent of one that fires no more
	Remaining int       `json:"remaining"`             // how often it still fires; -1: for ever
	Delivered int       `json:"delivered"`             // of its fires, those that were handed over
	Pending   int       `json:"pending"`               // and those that wait in the inbox
	Durable   bool      `json:"durable,omitempty"`
}

// An Arrival is a timer that has fired, as often as it did since it was handed
// over last: what comes late comes once.
type Arrival struct {
	ID      int64     `json:"id"`    // of the entry in the inbox
	Timer   int       `json:"timer"` // its id
	Skill   string    `json:"-"`
	Message string    `json:"message"`
	Fire    int       `json:"fire"`             // the number of the last fire
	Count   int       `json:"count"`            // fires that this stands for
	Missed  int       `json:"missed,omitempty"` // intervals that went by beside them, while nobody could fire
	Last    time.Time `json:"at"`
	Told    bool      `json:"told,omitempty"` // an Ear was told of it
}

// Timers keeps timers and inboxes. It is safe for concurrent use.
type Timers struct {
	o       Options
	waiting atomic.Int64 // boxes that are not empty, and families of whom something is left
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{}
	work    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	life  life
	talks map[row.Scope]*talk
	rows
	estate
}

// rows are what this process knows of the store.
type rows struct {
	boxes map[string]*box             // by key
	index map[row.Scope]boxes         // those that are not empty, by whose they are
	blank map[row.Scope]time.Duration // sessions that outlive hosts: when nothing was found
}

// estate is what dead hosts have left, and who may have it.
type estate struct {
	left    map[string]bool      // families of whom they have left something
	seen    map[string]row.Scope // by family: the session that was seen last
	unsaid  map[string]error     // by key: what is wrong with rows that were put aside
	scanned time.Duration        // when the store was looked through; by the clock's Elapsed
}

// A life is how far a Timers has come.
type life int

const (
	young   life = iota // nothing runs yet
	running             // timers run
	serving             // and somebody hands over what they fire
	closed
)

func scopeOf(s sdk.Scope) row.Scope {
	return row.Scope{Caller: s.Caller, Workspace: s.Workspace, Session: s.Session}
}

func (o Owner) scope() row.Scope {
	return row.Scope{Caller: o.Caller, Workspace: o.Workspace, Session: o.Session}
}

// New returns a Timers. It does nothing yet.
func New(o Options) *Timers {
	if o.Clock == nil {
		o.Clock = machine{time.Now()}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Timers{o: o, wake: make(chan struct{}, 1), talks: map[row.Scope]*talk{},
		rows:   rows{map[string]*box{}, map[row.Scope]boxes{}, map[row.Scope]time.Duration{}},
		estate: estate{left: map[string]bool{}, seen: map[string]row.Scope{}, unsaid: map[string]error{}}}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Start says that this process hands over what timers fire, and looks for what
// others have left: now, and every minute.
func (t *Timers) Start() {
	t.mu.Lock()
	t.scanned = -scanEvery
	t.mu.Unlock()
	t.run(serving)
}

// run makes timers run, if they do not yet.
func (t *Timers) run(as life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life == young {
		t.work.Go(t.loop)
	}
	t.life = max(t.life, as)
	t.ring()
}

// ring makes the loop look.
func (t *Timers) ring() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// closeWithin bounds the writing of what is left at the end.
const closeWithin = 5 * time.Second

// Close ends the timers of this process and leaves those that are durable to
// other hosts. It is idempotent.
func (t *Timers) Close() error {
	t.mu.Lock()
	was := t.life
	t.life = closed
	t.mu.Unlock()
	if was == closed {
		return nil
	}
	t.cancel()
	t.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	t.deliver(ctx)
	var failed error
	left := t.held(func(*box) bool { return true })
	defer left.release(t)
	for _, b := range left {
		failed = cmp.Or(failed, t.abandon(ctx, b))
	}
	return failed
}

// over reports whether the process of a boot has ended. "" is nobody's.
func (t *Timers) over(id string) (bool, error) {
	if id == "" {
		return true, nil
	}
	return t.o.Boots.Over(id)
}

// unavailable is the error of a store that does not answer. Its words, such as
// the path of its file, are for the host's log.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "timer", What: "the store does not answer", Err: err}
}
