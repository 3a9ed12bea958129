package host

import (
	"context"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Tasker = (*Host)(nil)

// errandsGrace is how long calls that are tasks may take to end when the host
// does.
const errandsGrace = 3 * time.Second

// newErrands makes the room of the calls that outlive their requests.
func (h *Host) newErrands() *task.Tasks {
	return task.New(task.Options{
		Store: h.store,
		Boot: func() (string, error) {
			f, err := h.audit.open()
			if err != nil {
				return "", err
			}
			return f.Boot(), nil
		},
		Alive: func(boot string) (bool, error) { return audit.Alive(h.Config.Paths.Audit, boot) },
	})
}

// Errands are the calls that outlive their requests, for the doors.
func (h *Host) Errands() *task.Tasks { return h.errands }

// closeErrands cancels them, while there is still all that they use.
func (h *Host) closeErrands() error {
	ctx, cancel := context.WithTimeout(context.Background(), errandsGrace)
	defer cancel()
	return h.errands.Close(ctx)
}

// TaskMode says when calls of a tool become tasks, which is for its manifest to
// say. Of a tool that scope may not call it says nothing.
func (h *Host) TaskMode(scope sdk.Scope, tool string) conversation.TaskMode {
	e, err := h.Catalog.Lookup(tool)
	if err != nil || e.Tool.Task.When == "" || e.Tool.Hidden || !h.Dispatcher.Visible(e, scope) {
		return conversation.TaskMode{}
	}
	return conversation.TaskMode{When: conversation.TaskWhen(e.Tool.Task.When), AskFirst: e.Tool.Task.AskFirst}
}
