// Package ops is every operation that a guest may ask of the host: one table,
// each line with what it needs to be granted and what it costs. A guest of any
// runtime reaches the host only through it (executor.Job.Ops).
//
// It does not know runtimes, the catalog or the dispatcher: invoking a tool is
// a function that it is given. It records nothing itself; whoever made the
// Grant is told of each access.
package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/host/tasks/timer"
	"github.com/skillhost/skill/sdk"
)

// Budget is what the operations of one call may cost together, in units of
// Op.Cost.
const Budget = 10_000

// An Op is one operation as docs/ops.md lists it.
type Op struct {
	Name  string           // "http.request"
	Needs capability.Topic // what the grant is asked for; zero: nothing
	Audit string           // the access in the audit log; "": not recorded
	Cost  int              // of Budget
	About string           // one line

	do func(context.Context, *job, sdk.Frame) ([]byte, error)
}

// table lists the operations. Adding one is a line here and a section in
// docs/ops.md; none is ever removed or given another meaning.
func table() []Op {
	topic := func(k capability.Kind, v capability.Verb) capability.Topic { return capability.Topic{Kind: k, Verb: v} }
	return []Op{
		{"announce", capability.Topic{}, "", 20, "say that something which the skill serves has changed", announce},
		{"http.request", topic(capability.Network, capability.Connect), "network.connect", 10, "make an HTTP request", httpRequest},
		{"inbox.ack", capability.Topic{}, "", 10, "take what timers have fired out of the inbox", inboxAck},
		{"inbox.read", capability.Topic{}, "", 5, "read what timers have fired and nobody has", inboxRead},
		{"invoke", topic(capability.Invoke, capability.Call), "invoke.call", 20, "call another tool", invoke},
		{"job.kill", capability.Topic{}, "", 5, "stop a background job", jobKill},
		{"job.list", capability.Topic{}, "", 10, "list the skill's background jobs", jobList},
		{"job.read", capability.Topic{}, "", 2, "read what a job has written", jobRead},
		{"job.start", capability.Topic{}, "", 50, "run the call's tool again in the background", jobStart},
		{"kv.delete", capability.Topic{}, "", 2, "delete a key of the skill's own state", kvDelete},
		{"kv.get", capability.Topic{}, "", 1, "read a key of the skill's own state", kvGet},
		{"kv.list", capability.Topic{}, "", 5, "list keys of the skill's own state", kvList},
		{"kv.put", capability.Topic{}, "", 2, "write a key of the skill's own state", kvPut},
		{"layer.list", capability.Topic{}, "", 2, "list what the skill has laid over the session", layerList},
		{"layer.pop", capability.Topic{}, "", 20, "take a layer of the skill's own off the session", layerPop},
		{"layer.push", capability.Topic{}, "", 20, "narrow what every call of the session may touch", layerPush},
		{"output.link", capability.Topic{}, "", 5, "keep what the call has written", outputLink},
		{"output.write", capability.Topic{}, "", 0, "write to the output of the call or job", outputWrite},
		{"secret.exists", topic(capability.Secrets, capability.Use), "secrets.use", 1, "learn whether a secret is set", secretExists},
		{"time", capability.Topic{}, "", 1, "read the clock", clock},
		{"timer.cancel", capability.Topic{}, "", 10, "end timers of the skill", timerCancel},
		{"timer.list", capability.Topic{}, "", 5, "list the skill's timers", timerList},
		{"timer.set", topic(capability.Client, capability.Ask), "client.ask", 50, "put a message before the client's model later", timerSet},
	}
}

// Deps are what the operations reach.
type Deps struct {
	Store  store.Store
	Broker *egress.Broker
	Now    func() time.Time // nil means time.Now
}

// A Table performs operations. It is safe for concurrent use.
type Table struct {
	deps  Deps
	start time.Time
	list  []Op
	ops   map[string]*Op
	locks [64]chan struct{} // by bucket: writers of this process take turns
}

// New returns the Table.
func New(d Deps) *Table {
	if d.Now == nil {
		d.Now = time.Now
	}
	t := &Table{deps: d, start: d.Now(), list: table(), ops: map[string]*Op{}}
	for i := range t.list {
		t.ops[t.list[i].Name] = &t.list[i]
	}
	for i := range t.locks {
		t.locks[i] = make(chan struct{}, 1)
	}
	return t
}

// Ops lists the operations by name. The list must not be changed.
func (t *Table) Ops() []Op { return t.list }

// A Binding says for whom operations are performed: one call of one skill.
type Binding struct {
	Grant  capability.Grant
	Scope  sdk.Scope
	Skill  string          // its name: the owner of its state
	Limits manifest.Limits // HTTPBody

	// Secrets returns those of the skill as they are now: what the operator
	// takes back is not added to the next request. nil means that it has none.
	// It may be asked by several operations at once, as may Live.
	Secrets func() egress.Secrets

	// Live says why the call may go on no longer, before each operation: not
	// every one has something of its own to ask a grant for. nil means that it
	// always may.
	Live func() error

	// Invoke calls a tool for the guest, under this call's grant, deadline and
	// depth. nil means that this call may invoke nothing.
	Invoke func(ctx context.Context, tool string, args json.RawMessage) (sdk.Result, error)

	// Announce tells clients that a list of the skill, or a resource of its own,
	// has changed. nil means that nobody listens.
	Announce func(kind, uri string) error

	// Jobs keeps the jobs of the skill and the session. nil means that there
	// are none.
	Jobs *tasks.Tasks

	// StartJob runs the call's tool again, in the background, and returns the
	// longest time it may take. nil means that this call may start nothing.
	StartJob func(context.Context, JobStart) (tasks.Job, time.Duration, error)

	// Output is what the call writes; nil: nobody keeps it.
	Output *tasks.Output

	// Timers keeps what comes back to the session later. nil means that nobody
	// does.
	Timers *timer.Timers

	// Layers are those of the call's session. nil means that nobody keeps any.
	Layers Layers
}

// Bind returns the operations of one call. It does no work of its own, and
// there is nothing to close: connections are let go when the first request's
// ctx is done, and by themselves soon after the last request.
func (t *Table) Bind(b Binding) executor.Ops { return &job{Binding: b, table: t} }

// A job is the operations of one call.
type job struct {
	Binding
	table *Table
	spent atomic.Int64 // of Budget
	held  atomic.Int64 // bytes of HTTP bodies that are being read
	once  sync.Once    // makes client and slots
	http  *http.Client
	slots chan struct{} // requests under way
}

// Knows reports whether there is an operation op, so that an executor can
// answer ENOSYS at once.
func (j *job) Knows(op string) bool { return j.table.ops[op] != nil }

// Do performs one operation (executor.Ops).
func (j *job) Do(ctx context.Context, f sdk.Frame) ([]byte, error) {
	var h header
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return sdk.AppendError(nil, invalid("request", "the header is not a JSON object with the member \"op\"")), nil
	}
	op, ok := j.table.ops[h.Op]
	if !ok {
		return nil, executor.ErrUnknownOp
	}
	if j.Live != nil {
		if err := j.Live(); err != nil { // what it says is for the host's log
			return sdk.AppendError(nil, asError(ctx, op.Name, &sdk.Error{Kind: sdk.KindOf(err), What: "the call may not go on"})), nil
		}
	}
	if err := j.charge(op.Cost); err != nil {
		return sdk.AppendError(nil, asError(ctx, op.Name, err)), nil
	}
	if strings.HasPrefix(op.Name, "output.") { // a guest that is being stopped has its last words
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer cancel()
	}
	if ctx.Err() != nil {
		return sdk.AppendError(nil, asError(ctx, op.Name, ctx.Err())), nil
	}
	reply, err := op.do(ctx, j, f)
	if err != nil {
		return sdk.AppendError(nil, asError(ctx, op.Name, err)), nil
	}
	return reply, nil
}

// lastWords bounds an operation that goes on although its ctx is done.
const lastWords = 2 * time.Second

// charge takes cost from the call's budget.
func (j *job) charge(cost int) error {
	if cost == 0 {
		return nil
	}
	if j.spent.Add(int64(cost)) > Budget {
		return &sdk.Error{Kind: sdk.Limit, What: "the call asks too much of the host", Hint: fmt.Sprintf("operations may cost %d units per call", Budget)}
	}
	return nil
}

// header is what every request has.
type header struct {
	Op    string   `json:"op"`
	Blobs []uint32 `json:"blobs"` // sdk.ParseFrame has used them
}

// decode reads the header of f into the request into points to, and refuses
// members it does not know and more than blobs blobs.
func decode(f sdk.Frame, into any, blobs int) error {
	d := json.NewDecoder(bytes.NewReader(f.Header))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "request", Err: err, Hint: "see docs/ops.md"}
	}
	if len(f.Blobs) > blobs {
		return invalid(fmt.Sprintf("%d blobs", len(f.Blobs)), fmt.Sprintf("want at most %d", blobs))
	}
	return nil
}

// reply returns the frame of a reply. v marshals to a JSON object.
func reply(v any, blobs ...[]byte) ([]byte, error) {
	h, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return sdk.AppendFrame(nil, h, blobs...), nil
}

// asError returns err as the *sdk.Error that the guest is told. Of a fault of
// the host a guest learns no details, and of a denial what is denied, but not
// who denies it and how the operator could allow it: rules and the files they
// are in are none of its business. They are told where the Grant was asked.
func asError(ctx context.Context, op string, err error) *sdk.Error {
	var e *sdk.Error
	switch cause := context.Cause(ctx); {
	case errors.As(err, &e):
	case ctx.Err() != nil && errors.As(cause, &e):
	case ctx.Err() != nil && errors.Is(cause, context.DeadlineExceeded):
		return &sdk.Error{Kind: sdk.Limit, Op: op, What: "the time is over"}
	case ctx.Err() != nil:
		return &sdk.Error{Kind: sdk.Canceled, Op: op, What: "canceled"}
	default:
		return &sdk.Error{Kind: sdk.Internal, Op: op, What: "the host failed"}
	}
	told := *e
	if told.Op == "" {
		told.Op = op
	}
	switch {
	case told.Kind == sdk.Internal:
		return &sdk.Error{Kind: sdk.Internal, Op: op, What: "the host failed"}
	case told.Denial != nil:
		told.Hint, told.Err, told.Denial = "", nil, bare(told.Denial)
	}
	return &told
}

// bare returns what d says of the access, without the rule that refuses it.
func bare(d *sdk.Denial) *sdk.Denial {
	return &sdk.Denial{Capability: d.Capability, Resource: d.Resource}
}

func invalid(what, hint string) *sdk.Error {
	return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint}
}
