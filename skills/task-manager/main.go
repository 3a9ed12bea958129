// Task-manager is the skill behind the tool TaskManager: tasks with steps, kept
// per workspace. Several agents may work on one list at the same time: each
// change is applied to the list as it is, and applied anew if somebody else
// was faster.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type request struct {
	Action    string `json:"action" doc:"create a task (it becomes the current one), add a step, complete a step or a task, list all tasks, list what is pending, switch the current task, show one task, update a text, reopen, block, delete" enum:"create,add,complete,list,pending,switch,update,reopen,block,delete,show"`
	Query     string `json:"query,omitempty" doc:"The same as text, for callers that send it instead" maxlen:"4096"`
	TaskID    int    `json:"task_id,omitempty" doc:"Task ID; without it (or with 0) the current task is meant" min:"0"`
	StepID    int    `json:"step_id,omitempty" doc:"Step ID within the task; without it (or with 0) the task itself is meant" min:"0"`
	Text      string `json:"text,omitempty" doc:"Task name (create, update) or step text (add, update), or why it cannot go on (block)" maxlen:"4096"`
	BlockedBy []int  `json:"blocked_by,omitempty" doc:"With block: the steps of the same task that have to be done first" maxlen:"500"`
	IfVersion int    `json:"if_version,omitempty" doc:"Change the task only if this is still its version; 0 means any" min:"0"`
}

type reply struct {
	CurrentTask int        `json:"current_task" doc:"ID of the current task, 0 if there is none"`
	Tasks       []taskView `json:"tasks" doc:"the tasks that were asked for or changed"`
	Changed     []int      `json:"changed" doc:"IDs of the tasks that this call changed, created or deleted"`
}

type taskView struct {
	ID      int        `json:"id"`
	Title   string     `json:"title"`
	Status  string     `json:"status" enum:"pending,in_progress,blocked,done"`
	Reason  string     `json:"reason,omitempty" doc:"why the task is blocked"`
	Steps   []stepView `json:"steps"`
	Version int        `json:"version" doc:"grows with every change, for if_version"`
}

type stepView struct {
	ID        int    `json:"id"`
	Text      string `json:"text"`
	Status    string `json:"status" enum:"pending,blocked,done"`
	BlockedBy []int  `json:"blocked_by" doc:"steps that have to be done first"`
	Reason    string `json:"reason,omitempty" doc:"why the step is blocked"`
}

var _ = guest.Tool("TaskManager", "Manage persistent tasks with create/add/complete. Tasks have numbered steps and are kept per workspace, "+
	"across sessions and restarts; several agents may use the same list at once.",
	manage, guest.Title("Task manager"), guest.Annotations{})

// The list is one value under one key: every change is one compare-and-swap,
// so that it happens wholly or not at all.
const (
	key     = "tasks"
	retries = 200
)

func manage(c *guest.Call, in request) (guest.Reply[reply], error) {
	in.Text = strings.TrimSpace(in.Text)
	if in.Text == "" {
		in.Text = strings.TrimSpace(in.Query)
	}
	for range retries {
		l, version, err := load(c)
		if err != nil {
			return guest.Reply[reply]{}, err
		}
		view, err := l.apply(in)
		if err != nil {
			return guest.Reply[reply]{}, err
		}
		if len(view.changed) == 0 && l.Current == view.before {
			return view.reply(l), nil
		}
		switch err := store(c, l, version); {
		case err == nil:
			return view.reply(l), nil
		case !errors.Is(err, guest.ErrConflict):
			return guest.Reply[reply]{}, err
		}
	}
	return guest.Reply[reply]{}, &sdk.Error{Kind: sdk.Unavailable, What: "the task list is being changed by others all the time", Hint: "try again"}
}

func load(c *guest.Call) (*list, int64, error) {
	b, version, err := c.KV.Get(key)
	if err != nil {
		return nil, 0, err
	}
	l := &list{}
	if version == 0 {
		return l, 0, nil
	}
	if err := json.Unmarshal(b, l); err != nil {
		return nil, 0, &sdk.Error{Kind: sdk.Guest, What: "the stored task list cannot be read", Err: err}
	}
	if l.Format > format {
		return nil, 0, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("the stored task list has format %d, and this skill knows %d", l.Format, format), Hint: "use a newer version of the skill"}
	}
	return l, version, nil
}

func store(c *guest.Call, l *list, version int64) error {
	l.Format = format
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(b) > maxList {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tasks and their texts are too large together: %d bytes, and at most %d are kept", len(b), maxList), Hint: "delete tasks that are done"}
	}
	_, err = c.KV.Put(key, b, version)
	return err
}

func main() {}
