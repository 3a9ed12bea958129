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
	Action    string `json:"action" doc:"create a task (it becomes the current one), add a step, complete a step or a task, list all tasks, list what is pending, switch the current task, show one task, update a text, reopen, block, delete, export the tasks as a list of check boxes, import such a list" enum:"create,add,complete,list,pending,switch,update,reopen,block,delete,show,export,import"`
	Query     string `json:"query,omitempty" doc:"The same as text, for callers that send it instead" maxlen:"4096"`
	TaskID    int    `json:"task_id,omitempty" doc:"Task ID; without it (or with 0) the current task is meant" min:"0"`
	StepID    int    `json:"step_id,omitempty" doc:"Step ID within the task; without it (or with 0) the task itself is meant" min:"0"`
	Text      string `json:"text,omitempty" doc:"Task name (create, update) or step text (add, update), or why it cannot go on (block)" maxlen:"4096"`
	BlockedBy []int  `json:"blocked_by,omitempty" doc:"With block: the steps of the same task that have to be done first" maxlen:"500"`
	Document  string `json:"document,omitempty" doc:"With import: Markdown with check boxes (headings become tasks), or the JSON of a to-do list" maxlen:"262144"`
	IfVersion int    `json:"if_version,omitempty" doc:"Change the task only if this is still its version; 0 means any" min:"0"`
}

type reply struct {
	CurrentTask int        `json:"current_task" doc:"ID of the current task, 0 if there is none"`
	Tasks       []taskView `json:"tasks" doc:"the tasks that were asked for or changed"`
	Changed     []int      `json:"changed" doc:"IDs of the tasks that this call changed, created or deleted"`
	Document    string     `json:"document,omitempty" doc:"With export: the tasks as a list of check boxes in Markdown"`
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
		l, version, note, err := load(c)
		if err != nil {
			return guest.Reply[reply]{}, err
		}
		view, err := l.apply(in)
		if err != nil {
			return guest.Reply[reply]{}, err
		}
		if note != "" {
			view.note = strings.TrimSpace(note + "\n" + view.note)
		}
		if len(view.changed) == 0 && l.Current == view.before {
			return view.reply(l), nil
		}
		switch err := store(c, l, version); {
		case err == nil:
			announce(c, view, l.Current)
			return view.reply(l), nil
		case !errors.Is(err, guest.ErrConflict):
			return guest.Reply[reply]{}, err
		}
	}
	return guest.Reply[reply]{}, &sdk.Error{Kind: sdk.Unavailable, What: "the task list is being changed by others all the time", Hint: "try again"}
}

// load returns the list and its version. A list that cannot be read is set
// aside under another key, where it stays, and a new one is begun: note says so.
func load(c *guest.Call) (l *list, version int64, note string, err error) {
	b, version, err := c.KV.Get(key)
	l = &list{}
	if err != nil || version == 0 {
		return l, version, "", err
	}
	if err := json.Unmarshal(b, l); err != nil {
		aside := fmt.Sprintf("%s.unreadable.%d", key, version)
		if _, err := c.KV.Put(aside, b, guest.AnyVersion); err != nil {
			return nil, 0, "", err
		}
		if err := c.KV.Delete(key, version); err != nil && !errors.Is(err, guest.ErrConflict) {
			return nil, 0, "", err
		}
		return &list{}, 0, fmt.Sprintf("The stored task list could not be read (%v). It is kept under the key %q of this skill's state, and a new list was begun.", err, aside), nil
	}
	if l.Format > format {
		return nil, 0, "", &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("the stored task list has format %d, and this skill knows %d", l.Format, format), Hint: "use a newer version of the skill"}
	}
	return l, version, "", nil
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
