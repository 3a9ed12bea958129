package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

// Bounds of a list.
const (
	format   = 1
	maxTasks = 500
	maxSteps = 500
	maxText  = 4 << 10 // bytes of a title, a step or a reason
	maxList  = 1 << 20 // bytes of the list as it is stored
)

// A list is all tasks of a workspace. Ids are given once and never again.
type list struct {
	Format  int     `json:"format"`
	Next    int     `json:"next"`    // the last task id given
	Current int     `json:"current"` // 0: none
	Tasks   []*task `json:"tasks"`   // by id
}

type task struct {
	ID      int     `json:"id"`
	Title   string  `json:"title"`
	Done    bool    `json:"done,omitempty"` // and so are all its steps
	Reason  string  `json:"reason,omitempty"`
	Version int     `json:"version"`
	Next    int     `json:"next"` // the last step id given
	Steps   []*step `json:"steps,omitempty"`
}

type step struct {
	ID     int    `json:"id"`
	Text   string `json:"text"`
	Done   bool   `json:"done,omitempty"`
	After  []int  `json:"after,omitempty"` // steps that have to be done first
	Reason string `json:"reason,omitempty"`
}

// A view is what an action shows.
type view struct {
	tasks   []*task
	changed []int
	before  int // the current task before the action
	note    string
	pending bool // show only what is left to do
	export  bool // show a document to take along
}

// apply performs an action on l. It fails without having changed anything that
// is stored, since l is a copy.
func (l *list) apply(in request) (view, error) {
	v := view{before: l.Current}
	if len(in.Text) > maxText {
		return v, tooLong(in.Text)
	}
	if !utf8.ValidString(in.Text) {
		in.Text = strings.ToValidUTF8(in.Text, "\ufffd")
	}
	var err error
	switch in.Action {
	case "create":
		err = l.create(in, &v)
	case "list":
		v.tasks = l.Tasks
	case "pending":
		v.pending = true
		for _, t := range l.Tasks {
			if !t.Done {
				v.tasks = append(v.tasks, t)
			}
		}
	case "import":
		err = l.read(in, &v)
	case "export":
		v.tasks, v.export = l.Tasks, true
		if in.TaskID != 0 {
			var t *task
			if t, err = l.task(in.TaskID); err == nil {
				v.tasks = []*task{t}
			}
		}
	case "add", "complete", "switch", "update", "reopen", "block", "delete", "show":
		err = l.onTask(in, &v)
	default:
		err = invalid(fmt.Sprintf("unknown action %q", in.Action), "create, add, complete, list, pending, switch, update, reopen, block, delete, show, export or import")
	}
	return v, err
}

func (l *list) create(in request, v *view) error {
	if in.Text == "" {
		return invalid("create: no text", "text is the task's name")
	}
	t, err := l.begin(in.Text, v)
	if err != nil {
		return err
	}
	l.Current = t.ID
	v.note = fmt.Sprintf("Created task %d, which is now the current one.", t.ID)
	return nil
}

// onTask performs the actions that are about one task.
func (l *list) onTask(in request, v *view) error {
	if in.Action == "delete" && in.TaskID == 0 && in.StepID == 0 {
		return invalid("delete: neither task_id nor step_id", "say what to delete")
	}
	if in.Action == "switch" && in.TaskID == 0 {
		return invalid("switch: no task_id", "say which task is to be the current one: "+l.names())
	}
	t, err := l.task(in.TaskID)
	if err != nil {
		return err
	}
	if in.IfVersion != 0 && in.IfVersion != t.Version {
		return invalid(fmt.Sprintf("task %d has version %d, not %d: it was changed meanwhile", t.ID, t.Version, in.IfVersion), "show it, then decide anew")
	}
	v.tasks = []*task{t}
	switch in.Action {
	case "show":
		return nil
	case "switch":
		l.Current = t.ID
		v.note = fmt.Sprintf("Task %d is the current one.", t.ID)
		return nil
	}
	var s *step
	if in.StepID != 0 && in.Action != "add" {
		if s, err = t.step(in.StepID); err != nil {
			return err
		}
	}
	v.note, err = change(l, t, s, in)
	if err != nil {
		return err
	}
	if v.note != "" {
		t.Version++
		v.changed = []int{t.ID}
	}
	if in.Action == "delete" && s == nil {
		v.tasks = nil
	}
	return nil
}

// task finds a task; id 0 is the current one.
func (l *list) task(id int) (*task, error) {
	if id == 0 {
		if l.Current == 0 {
			return nil, invalid("there is no current task", "give task_id, or create or switch to a task: "+l.names())
		}
		id = l.Current
	}
	for _, t := range l.Tasks {
		if t.ID == id {
			return t, nil
		}
	}
	return nil, invalid(fmt.Sprintf("there is no task %d", id), l.names())
}

func (t *task) step(id int) (*step, error) {
	for _, s := range t.Steps {
		if s.ID == id {
			return s, nil
		}
	}
	return nil, invalid(fmt.Sprintf("task %d has no step %d", t.ID, id), t.names())
}

// blockers are the steps that s waits for and that are not done.
func (t *task) blockers(s *step) []int {
	var open []int
	for _, id := range s.After {
		if i := slices.IndexFunc(t.Steps, func(o *step) bool { return o.ID == id }); i >= 0 && !t.Steps[i].Done {
			open = append(open, id)
		}
	}
	return open
}

// waitsFor reports whether s comes, by whatever way, after the step id.
func (t *task) waitsFor(s *step, id int) bool {
	seen := map[int]bool{}
	todo := []*step{s}
	for len(todo) > 0 {
		s, todo = todo[0], todo[1:]
		for _, before := range s.After {
			if before == id {
				return true
			}
			if o, err := t.step(before); err == nil && !seen[before] {
				seen[before] = true
				todo = append(todo, o)
			}
		}
	}
	return false
}

// left counts the steps that are not done.
func (t *task) left() (n int) {
	for _, s := range t.Steps {
		if !s.Done {
			n++
		}
	}
	return n
}

// names lists the tasks there are, for a message.
func (l *list) names() string {
	if len(l.Tasks) == 0 {
		return "there are no tasks yet"
	}
	var names []string
	for _, t := range l.Tasks {
		names = append(names, fmt.Sprintf("%d %q", t.ID, clip(t.Title)))
	}
	return "there are " + first(names)
}

func (t *task) names() string {
	if len(t.Steps) == 0 {
		return "it has no steps yet"
	}
	var names []string
	for _, s := range t.Steps {
		names = append(names, fmt.Sprintf("%d %q", s.ID, clip(s.Text)))
	}
	return "it has " + first(names)
}

func first(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func tooLong(text string) error {
	return invalid(fmt.Sprintf("a text of %d bytes is too long", len(text)), fmt.Sprintf("at most %d", maxText))
}

func invalid(what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint}
}
