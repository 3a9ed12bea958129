package conversation

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

const (
	maxFollowed = 128             // tasks of one listen
	followEvery = 5 * time.Second // how often a task is looked at that another host may run
)

// ofTasks answers a request about a task with f.
func (c *call) ofTasks(f func(c *call, o task.Owner, id string)) {
	if !c.era.Modern {
		c.serveEra() // which has no such method
		return
	}
	if !c.peer.HasTasks() {
		c.fail(message.NoTasks())
		return
	}
	id, flt := c.msg.TaskID()
	if flt != nil {
		c.fail(flt)
		return
	}
	go f(c, task.OwnerOf(c.scope), id)
}

// getTask tells how a task is.
func (c *call) getTask(o task.Owner, id string) {
	t, err := c.room.o.Tasks.Get(c.ctx, o, id)
	if sdk.KindOf(err) == sdk.NotFound {
		t, err = c.job(id, err)
	}
	if err != nil {
		c.refused(err, nil)
		return
	}
	c.succeed(func(l *wire.List) { message.AppendDetails(l, &t, time.Now()) })
}

// cancelTask asks a task to end.
func (c *call) cancelTask(o task.Owner, id string) {
	err := c.room.o.Tasks.Cancel(c.ctx, o, id)
	if j, ok := c.room.b.(Jobber); ok && sdk.KindOf(err) == sdk.NotFound {
		err = j.CancelJob(c.ctx, c.scope, id)
	}
	if err != nil {
		c.refused(err, nil)
		return
	}
	c.done()
}

// updateTask takes answers to what a task asks. When it asks nothing more its
// call is made again, as it was: with the scope and the client of its request.
func (c *call) updateTask(o task.Owner, id string) {
	t, err := c.room.o.Tasks.Get(c.ctx, o, id)
	if sdk.KindOf(err) == sdk.NotFound {
		if _, err = c.job(id, err); err == nil {
			c.done() // it asks nothing
			return
		}
	}
	if err != nil {
		c.refused(err, nil)
		return
	}
	answers, flt := c.msg.TaskAnswers(t.Questions)
	if flt != nil {
		c.fail(flt)
		return
	}
	e := c.room.errand(c.ctx, &sdk.Call{}, c.era)
	run, again, err := c.room.o.Tasks.Answer(c.ctx, o, id, came(answers, "mrtr"), e.cancel)
	if run == nil {
		e.cancel(nil)
	} else {
		e.call = again
		e.run.Store(run)
		go e.finish()
	}
	if err != nil {
		c.refused(err, nil)
		return
	}
	c.done()
}

// follow tells a listener how tasks are: now, and whenever one changes. say is
// given notifications. It returns when all have ended, or c has.
func (c *call) follow(ids []string, say func([]wire.List)) {
	type state struct {
		status  task.Status
		updated time.Time
		open    int
	}
	told := map[string]state{}
	for _, id := range ids {
		told[id] = state{}
	}
	for len(told) > 0 {
		changed := c.room.o.Tasks.Changed() // before looking: what comes later closes it
		for _, id := range slices.Sorted(maps.Keys(told)) {
			t, err := c.room.o.Tasks.Get(c.ctx, task.OwnerOf(c.scope), id)
			if sdk.KindOf(err) == sdk.NotFound {
				delete(told, id)
			}
			if now := (state{t.Status, t.Updated, len(t.Questions)}); err == nil && now != told[id] {
				told[id] = now
				say([]wire.List{message.TaskChanged(&t, time.Now(), c.msg.ID)})
				if t.Status != task.Working && t.Status != task.Waiting {
					delete(told, id)
				}
			}
		}
		select {
		case <-changed:
		case <-time.After(followEvery):
		case <-c.ctx.Done():
			return
		}
	}
}

// followed returns those of the ids that are tasks of the caller.
func (c *call) followed(ids []string) (mine []string) {
	if c.room.o.Tasks == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	for _, id := range ids {
		if _, err := c.room.o.Tasks.Get(ctx, task.OwnerOf(c.scope), id); err == nil && !slices.Contains(mine, id) {
			mine = append(mine, id)
		}
	}
	return mine
}
