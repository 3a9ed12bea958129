package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Bounds of what skills lay over sessions.
const (
	maxLayers = 4    // of a session
	maxScopes = 1000 // sessions of a caller that have layers
	maxName   = 64   // bytes of a layer's name
	maxWhy    = 200  // bytes of what it says to who is refused
)

// forgotten is how long a session that outlives processes keeps its layers when
// none is pushed or popped.
const forgotten = 90 * 24 * time.Hour

// readWithin bounds the look at the store before a call.
const readWithin = 10 * time.Second

// LayerOptions are what NewLayers needs.
type LayerOptions struct {
	Store    store.Store                  // of the layers of sessions that outlive the process
	Realpath func(string) (string, error) // resolves links; fails if the path does not exist
	Vars     capability.Vars              // Home and Account; the workspace is the scope's
	Now      func() time.Time             // nil means time.Now
}

// Layers are those that skills have laid over sessions: lists that narrow what
// every call of the session may touch. Those of a session that ends with this
// process are kept in memory, and those of one that outlives it in the store,
// which is read again for every call, so that all hosts agree. It is safe for
// concurrent use.
type Layers struct {
	o LayerOptions

	mu    sync.RWMutex
	local map[place]*Stack
	read  map[place]*Stack // of the store, as it was when it was read last
}

// A place is a session as layers are kept for it: whatever rights a remote
// caller comes with, it is one.
type place struct{ caller, workspace, session string }

// NewLayers returns a Layers. It does nothing yet.
func NewLayers(o LayerOptions) *Layers {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Layers{o: o, local: map[place]*Stack{}, read: map[place]*Stack{}}
}

// taskPrefix begins the session of calls that have none of a transport's, but
// the id of a task: any host of the user may go on with it.
const taskPrefix = "task:"

var taskID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// Task is the session of the calls of the task with that id.
func Task(id string) (string, error) {
	if !taskID.MatchString(id) {
		return "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("task %.140q", id), Hint: "want at most 128 letters, digits and . _ - :"}
	}
	return taskPrefix + id, nil
}

// durable reports whether the session of p outlives processes.
func (p place) durable() bool { return strings.HasPrefix(p.session, taskPrefix) }

func placeOf(s sdk.Scope) place { return place{s.Caller, s.Workspace, s.Session} }

// A Push is what a skill lays over a session.
type Push struct {
	Owner string          // whose it is: nobody else takes it away
	Skill string          // the name of the skill, for people
	Name  string          // of the layer; a second one of the same name and owner replaces it,
	New   bool            // unless there must be none
	Why   string          // what it says to whoever is refused, or ""
	Lists json.RawMessage // see Narrowing; also "builtin", what it says instead to built-in skills
}

// A Laid is a layer that lies over a session.
type Laid struct {
	ID    string            `json:"id"`
	Owner string            `json:"owner"`
	Skill string            `json:"skill"`
	Name  string            `json:"name"`
	Why   string            `json:"why,omitempty"`
	Lists json.RawMessage   `json:"lists"`
	Pins  map[string]string `json:"pins,omitempty"` // real paths at the time of the push, by what is written
	Since time.Time         `json:"since"`
}

var layerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]*$`)

// Push lays a layer over the session of scope. Errors have kind Invalid if it
// is not well-formed, and Limit if it is too large or one too many.
func (l *Layers) Push(ctx context.Context, scope sdk.Scope, p Push) error {
	laid, err := l.lay(scope, p)
	if err != nil {
		return err
	}
	return l.change(ctx, placeOf(scope), func(rows []Laid) ([]Laid, error) {
		had := len(rows)
		if rows = without(rows, p.Owner, p.Name); p.New && len(rows) < had {
			return nil, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("layer %q lies there already", p.Name)}
		}
		if len(rows) >= maxLayers {
			return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d layers lie over this session already, which is the most", len(rows)), Hint: "layer.list has the skill's own"}
		}
		return append(rows, laid), nil
	})
}

// lay checks a push, and pins its paths to what they lead to now.
func (l *Layers) lay(scope sdk.Scope, p Push) (Laid, error) {
	switch {
	case p.Owner == "" || scope.Caller == "":
		return Laid{}, &sdk.Error{Kind: sdk.Internal, What: "a layer without an owner"}
	case scope.Session == "":
		return Laid{}, &sdk.Error{Kind: sdk.Invalid, What: "a layer", Hint: "this call has no session"}
	case len(p.Name) > maxName || !layerName.MatchString(p.Name):
		return Laid{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("layer name %.80q", p.Name), Hint: fmt.Sprintf("want 1 to %d letters, digits, spaces and . _ -", maxName)}
	case len(p.Why) > maxWhy || capability.Quote(p.Why) != `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.Why)+`"`:
		return Laid{}, &sdk.Error{Kind: sdk.Invalid, What: "why", Hint: fmt.Sprintf("want one line of at most %d bytes", maxWhy)}
	}
	laid := Laid{ID: rand.Text(), Owner: p.Owner, Skill: p.Skill, Name: p.Name, Why: p.Why, Lists: slices.Clone(p.Lists), Since: l.o.Now().UTC()}
	s, err := readScript(laid.Lists, laid.layer())
	if err != nil {
		return Laid{}, err
	}
	laid.Pins = l.pins(s, scope)
	return laid, nil
}

// layer is the layer of r without its lists.
func (r *Laid) layer() capability.Layer {
	return capability.Layer{Name: fmt.Sprintf("layer %q of %s", r.Name, r.Skill), Pushed: true, Why: r.Why}
}

// Pop takes away the owner's layer of that name, and reports whether there was one.
func (l *Layers) Pop(ctx context.Context, scope sdk.Scope, owner, name string) (found bool, err error) {
	err = l.change(ctx, placeOf(scope), func(rows []Laid) ([]Laid, error) {
		n := len(rows)
		rows = without(rows, owner, name)
		found = len(rows) < n
		return rows, nil
	})
	return found && err == nil, err
}

// without is rows without the owner's of that name.
func without(rows []Laid, owner, name string) []Laid {
	return slices.DeleteFunc(slices.Clone(rows), func(r Laid) bool { return r.Owner == owner && r.Name == name })
}

// Of returns what lies over the session of scope now; nil if nothing does. An
// error means that it cannot be told, so that no call may run.
func (l *Layers) Of(scope sdk.Scope) (*Stack, error) {
	p := placeOf(scope)
	if l == nil || p.session == "" {
		return nil, nil
	}
	if p.durable() {
		ctx, cancel := context.WithTimeout(context.Background(), readWithin)
		defer cancel()
		s, _, err := l.load(ctx, p)
		return s, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.local[p], nil
}

// End forgets what lies over a session that has ended for good.
func (l *Layers) End(scope sdk.Scope) {
	if p := placeOf(scope); !p.durable() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.local, p)
	}
}

// change replaces the layers of p by what do makes of them. do may be called
// many times; its error leaves them as they are.
func (l *Layers) change(ctx context.Context, p place, do func([]Laid) ([]Laid, error)) error {
	if p.durable() {
		return l.swap(ctx, p, do)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.local[p]
	rows, err := do(old.rows())
	if err != nil {
		return err
	}
	if old == nil && len(rows) > 0 {
		n := 0
		for other := range l.local {
			if other.caller == p.caller {
				n++
			}
		}
		if n >= maxScopes {
			return tooMany()
		}
	}
	s, err := l.stack(p, rows, old)
	if err != nil {
		return err
	}
	if s == nil {
		delete(l.local, p)
	} else {
		l.local[p] = s
	}
	return nil
}

func tooMany() error {
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("layers lie over %d sessions of this caller already", maxScopes), Hint: "end some of them"}
}
