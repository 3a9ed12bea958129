package conversation

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A TaskWhen says when a call of a tool becomes a task.
type TaskWhen string

// When calls become tasks. Only those of clients that have the extension do.
const (
	TaskNever    TaskWhen = ""
	TaskOptional TaskWhen = "optional" // at once
	TaskRequired TaskWhen = "required" // at once, and other clients may not call the tool
	TaskLong     TaskWhen = "long"     // when it has taken Options.TaskAfter
)

// A TaskMode says how a tool wants its calls to become tasks.
type TaskMode struct {
	When     TaskWhen
	AskFirst bool // what the first run asks is answered before there is a task
}

// A Tasker is a Backend whose tools may want to be tasks.
type Tasker interface {
	// TaskMode returns the mode of the tool that a call means, however the client
	// spelled it. It is zero for one that the caller may not call.
	TaskMode(call *sdk.Call) TaskMode
}

// tasker returns the Tasker if the Room has tasks, else nil.
func (r *Room) tasker() Tasker {
	if r.o.Tasks == nil {
		return nil
	}
	t, _ := r.b.(Tasker)
	return t
}

// task answers c with a task if that is what its tool wants and its client can,
// and reports whether c is answered.
func (c *call) task(sc *sdk.Call) bool {
	t := c.room.tasker()
	if t == nil {
		return false
	}
	mode := t.TaskMode(sc)
	switch {
	case mode.When == TaskNever:
		return false
	case !c.era.Modern || !c.peer.HasTasks():
		if mode.When == TaskRequired {
			c.fail(message.NoTasks())
			return true
		}
		return false
	}
	e := c.room.errand(c.ctx, sc, c.era)
	if mode.When == TaskLong || mode.AskFirst && sc.State == "" {
		c.mayBecome(e)
		return true
	}
	run, err := c.room.o.Tasks.Begin(c.ctx, task.OwnerOf(sc.Scope), e.cancel)
	switch {
	case err == nil:
		c.announce(e, run)
		go e.finish()
	case mode.When == TaskRequired:
		e.cancel(nil)
		c.failed(err, sc.Tool)
	default: // the client has to be ready for an answer in place of a task
		e.cancel(nil)
		return false
	}
	return true
}

// announce answers c with the task that e has become. If nobody is there any
// more to learn of it, it ends.
func (c *call) announce(e *errand, run *task.Run) {
	e.run.Store(run)
	out := c.begin()
	if out == nil {
		e.cancel(task.ErrCancelled)
		return
	}
	t := run.Task()
	l := c.era.Open(out.B, "task", nil)
	message.AppendTask(&l, &t, time.Now())
	out.B = append(l.B, '}')
	c.end(out, nil)
}

// mayBecome runs e, which becomes a task if it takes long. Until then it is as
// any other call, and ends with c.
func (c *call) mayBecome(e *errand) {
	leash := context.AfterFunc(c.ctx, func() { e.cancel(context.Cause(c.ctx)) })
	defer leash()
	e.emit = c.pulse.emit
	go e.do()
	patience := time.NewTimer(c.room.o.TaskAfter)
	defer patience.Stop()
	select {
	case <-e.done:
	case <-patience.C:
		run, err := c.room.o.Tasks.Begin(c.ctx, task.OwnerOf(e.call.Scope), e.cancel)
		if err != nil {
			c.room.o.Logger.Warn("a long call does not become a task", "tool", e.call.Tool, "err", err)
			<-e.done
			break
		}
		leash()
		if c.ctx.Err() != nil {
			e.cancel(task.ErrCancelled)
		}
		c.announce(e, run)
		go e.record()
		return
	}
	switch {
	case e.err != nil:
		c.failed(e.err, e.call.Tool)
	case len(e.result.Questions) == 0:
		c.reply(&e.result)
	default:
		q := inquiry{call: c, p: &tool, sc: &e.call}
		defer q.end()
		if q.put(&e.result, 1) {
			c.mayBecome(c.room.errand(c.ctx, q.sc, c.era))
		}
	}
}

// An errand is a call on its own way: it outlives the request that began it.
type errand struct {
	room   *Room
	call   sdk.Call
	era    message.Era
	ctx    context.Context
	cancel context.CancelCauseFunc
	emit   func(sdk.Event) // of the request, or nil
	run    atomic.Pointer[task.Run]
	jobs   jobs
	done   chan struct{} // closed when the two below are set
	result sdk.Result
	err    error
}

// errand makes an errand of sc. It keeps the values of ctx, not its end.
func (r *Room) errand(ctx context.Context, sc *sdk.Call, era message.Era) *errand {
	e := &errand{room: r, call: *sc, era: era, done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return e
}

// do makes the call. A panic below is that call's internal error.
func (e *errand) do() {
	defer close(e.done)
	defer e.cancelled()
	defer caught(&e.err)
	e.result, e.err = e.room.b.Call(e.ctx, e.call, e.tell)
}

// cancelled makes what came of a cancelled errand its cancellation, unless it
// had done its work by then.
func (e *errand) cancelled() {
	if cause := context.Cause(e.ctx); cause != nil && (e.err != nil || e.result.Failed || len(e.result.Questions) > 0) {
		e.result, e.err = sdk.Result{}, &sdk.Error{Kind: sdk.Canceled, Op: "mcp.Call", What: "canceled", Err: cause}
	}
}

// tell passes an event on: to who asked, or into the task.
func (e *errand) tell(ev sdk.Event) {
	if e.emit != nil {
		e.emit(ev)
	}
	if run := e.run.Load(); run != nil && ev.Kind == sdk.EventProgress {
		run.Say(ev.Message)
	}
	if ev.Kind == sdk.EventJob {
		e.jobs.add(e.room.jobID(e.call.Scope, ev))
	}
}

// finish makes the call of a task, and records what came of it.
func (e *errand) finish() {
	e.do()
	e.record()
}

// record waits for the call of a task and records what came of it.
func (e *errand) record() {
	<-e.done
	run := e.run.Load()
	run.End(e.end(run.Round()))
	e.cancel(nil)
}

// end says what came of the call.
func (e *errand) end(round int) task.End {
	r, questions := e.room, e.result.Questions
	err := e.err
	switch {
	case err != nil:
	case len(questions) == 0:
		return e.completed(&e.result)
	case !(&message.Peer{Client: e.call.Client}).CanAsk(questions):
		return e.unanswerable()
	case round >= maxRounds:
		err = &sdk.Error{Kind: sdk.Limit, Op: "mcp.Call", What: fmt.Sprintf("the tool asked its user more than %d times", maxRounds)}
	default:
		again := e.call
		again.Answers, again.State = nil, e.result.State
		return task.End{Status: task.Waiting, Asked: &task.Asked{Call: again, Questions: questions}}
	}
	if cause := context.Cause(e.ctx); cause != nil && sdk.KindOf(err) == sdk.Canceled {
		return task.End{Status: task.Cancelled, Message: cause.Error()}
	}
	if flt := r.protocolFault(err, e.call.Tool); flt != nil {
		return failedTask(flt)
	}
	failure := r.failure(err, e.call.Tool)
	return e.completed(&failure)
}

func (e *errand) completed(r *sdk.Result) task.End {
	era := e.era
	era.Jobs = e.jobs.all()
	return task.End{Status: task.Completed, Body: message.TaskBody(era.Result(nil, r))}
}

func failedTask(flt *wire.Fault) task.End {
	return task.End{Status: task.Failed, Message: flt.Message, Body: message.TaskBody(flt.Append(nil))}
}

// unanswerable is the end of a task whose client cannot ask what its tool wants
// to know.
func (e *errand) unanswerable() task.End {
	peer, questions := &message.Peer{Client: e.call.Client}, e.result.Questions
	if flt, onlyUser := message.MissingAbilities(peer, questions); flt != nil && !onlyUser {
		return failedTask(flt)
	}
	answer, report, err := message.NeedsUser(questions, "")
	if err != nil {
		answer = e.room.failure(err, e.call.Tool)
	} else {
		e.room.report(&answer, e.call.Tool, report, "skill/needs_user")
	}
	return e.completed(&answer)
}
