package main

import (
	"fmt"
	"slices"

	"github.com/skillhost/skill/sdk"
)

// change performs an action on a task, or on its step s if that is not nil. It
// returns what it did in a sentence, or "" if nothing was left to do.
func change(l *list, t *task, s *step, in request) (string, error) {
	switch in.Action {
	case "add":
		return t.add(in)
	case "complete":
		return t.complete(s)
	case "reopen":
		return t.reopen(s), nil
	case "block":
		return t.block(s, in)
	case "update":
		return t.update(s, in)
	}
	return l.delete(t, s), nil
}

func (t *task) add(in request) (string, error) {
	if in.Text == "" {
		return "", invalid("add: no text", "text is what the step is about")
	}
	if len(t.Steps) >= maxSteps {
		return "", &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("task %d has %d steps already", t.ID, len(t.Steps)), Hint: "create another task"}
	}
	t.Next++
	t.Steps = append(t.Steps, &step{ID: t.Next, Text: in.Text})
	note := fmt.Sprintf("Added step %d to task %d.", t.Next, t.ID)
	if t.Done {
		t.Done = false
		note += " The task is open again."
	}
	return note, nil
}

func (t *task) complete(s *step) (string, error) {
	switch {
	case s == nil && t.Done, s != nil && s.Done:
		return "", nil
	case s == nil:
		left := t.left()
		for _, s := range t.Steps {
			s.Done, s.Reason = true, ""
		}
		t.Done, t.Reason = true, ""
		if left > 0 {
			return fmt.Sprintf("Completed task %d with the %d steps that were left.", t.ID, left), nil
		}
		return fmt.Sprintf("Completed task %d.", t.ID), nil
	}
	if open := t.blockers(s); len(open) > 0 {
		return "", invalid(fmt.Sprintf("step %d waits for step %s", s.ID, numbers(open)), "complete those first, or reopen it to forget what it waits for")
	}
	s.Done, s.Reason = true, ""
	note := fmt.Sprintf("Completed step %d of task %d.", s.ID, t.ID)
	if t.left() == 0 {
		t.Done, t.Reason = true, ""
		note += " That was the last one: the task is done."
	}
	return note, nil
}

// reopen makes a step or task one that can be worked on, whatever it was. A
// step that is done keeps what it waits for.
func (t *task) reopen(s *step) string {
	if s == nil {
		if !t.Done && t.Reason == "" {
			return ""
		}
		t.Done, t.Reason = false, ""
		return fmt.Sprintf("Reopened task %d.", t.ID)
	}
	switch {
	case s.Done:
		s.Done, t.Done = false, false
	case s.Reason != "" || len(s.After) > 0:
		s.Reason, s.After = "", nil
	default:
		return ""
	}
	return fmt.Sprintf("Reopened step %d of task %d.", s.ID, t.ID)
}

func (t *task) block(s *step, in request) (string, error) {
	switch {
	case s == nil && len(in.BlockedBy) > 0:
		return "", invalid("block: blocked_by without step_id", "it says for which steps a step waits")
	case in.Text == "" && len(in.BlockedBy) == 0:
		return "", invalid("block: neither text nor blocked_by", "say what it waits for")
	case s == nil && t.Done, s != nil && s.Done:
		return "", invalid("block: that is done already", "reopen it first")
	case s == nil:
		t.Reason = in.Text
		return fmt.Sprintf("Task %d is blocked.", t.ID), nil
	}
	for _, id := range in.BlockedBy {
		before, err := t.step(id)
		if err != nil {
			return "", err
		}
		if before == s || t.waitsFor(before, s.ID) {
			return "", invalid(fmt.Sprintf("step %d cannot wait for step %d, which waits for it", s.ID, id), "leave it out")
		}
	}
	if in.Text != "" {
		s.Reason = in.Text
	}
	s.After = append(s.After, in.BlockedBy...)
	slices.Sort(s.After)
	s.After = slices.Compact(s.After)
	return fmt.Sprintf("Step %d of task %d is blocked.", s.ID, t.ID), nil
}

func (t *task) update(s *step, in request) (string, error) {
	text, what := &t.Title, fmt.Sprintf("task %d", t.ID)
	if s != nil {
		text, what = &s.Text, fmt.Sprintf("step %d of task %d", s.ID, t.ID)
	}
	if in.Text == "" {
		return "", invalid("update: no text", "text is the new name or step text")
	}
	if *text == in.Text {
		return "", nil
	}
	*text = in.Text
	return fmt.Sprintf("Updated %s.", what), nil
}

func (l *list) delete(t *task, s *step) string {
	if s == nil {
		l.Tasks = slices.DeleteFunc(l.Tasks, func(o *task) bool { return o == t })
		if l.Current == t.ID {
			l.Current = 0
		}
		return fmt.Sprintf("Deleted task %d, %q.", t.ID, clip(t.Title))
	}
	t.Steps = slices.DeleteFunc(t.Steps, func(o *step) bool { return o == s })
	for _, o := range t.Steps {
		o.After = slices.DeleteFunc(o.After, func(id int) bool { return id == s.ID })
	}
	return fmt.Sprintf("Deleted step %d of task %d.", s.ID, t.ID)
}
