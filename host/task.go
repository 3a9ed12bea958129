package host

import (
	"context"
	"time"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/boot"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Tasker = (*Host)(nil)

// errandsGrace is how long calls that are tasks may take to end when the host
// does.
const errandsGrace = 3 * time.Second

// newBoots tells the hosts of this user apart by their files of the audit log,
// which each of them holds as long as it lives.
func (h *Host) newBoots() *boot.Boots {
	return boot.New(func() (string, error) {
		f, err := h.audit.open()
		if err != nil {
			return "", err
		}
		return f.Boot(), nil
	}, func(id string) (bool, error) { return audit.Alive(h.Config.Paths.Audit, id) })
}

// newErrands makes the room of the calls that outlive their requests.
func (h *Host) newErrands() *task.Tasks {
	set := h.Config.Tasks
	return task.New(task.Options{
		Store:  h.store,
		Bounds: task.Bounds{TTL: set.TTL, Wait: set.Wait, Caller: set.Caller, All: set.All, Running: set.Running},
		Boots:  h.boots,
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

// TaskMode says when a call becomes a task, which is for the manifest of the tool
// that it means to say, however that is spelled. Of a tool that its caller may not
// call, or of arguments that name none, it says nothing.
func (h *Host) TaskMode(call *sdk.Call) conversation.TaskMode {
	may := func(e *catalog.Entry) bool { return h.Dispatcher.Visible(e, call.Scope) }
	if call.Kind != sdk.CallTool {
		return conversation.TaskMode{}
	}
	found, err := h.Catalog.Resolve(call, catalog.Viewer{May: may})
	if err != nil {
		return conversation.TaskMode{}
	}
	t := found.Entry.Tool.Task
	if t.When == "" || !may(found.Entry) || found.Via != nil && (!may(found.Via) || found.Check() != nil) {
		return conversation.TaskMode{}
	}
	return conversation.TaskMode{When: conversation.TaskWhen(t.When), AskFirst: t.AskFirst}
}
