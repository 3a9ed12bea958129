package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skillhost/skill/sdk/guest"
)

// maxShown bounds the text of a reply, bytes; the structured content has all.
const maxShown = 30_000

func (t *task) status(current int) string {
	switch {
	case t.Done:
		return "done"
	case t.Reason != "":
		return "blocked"
	case t.ID == current || t.left() < len(t.Steps):
		return "in_progress"
	}
	return "pending"
}

func (t *task) stepStatus(s *step) string {
	switch {
	case s.Done:
		return "done"
	case s.Reason != "" || len(t.blockers(s)) > 0:
		return "blocked"
	}
	return "pending"
}

// reply renders what v shows of l.
func (v view) reply(l *list) guest.Reply[reply] {
	r := reply{CurrentTask: l.Current, Tasks: []taskView{}, Changed: v.changed}
	if v.export {
		r.Document = markdown(v.tasks)
		if len(v.tasks) == 0 {
			return guest.Reply[reply]{Text: "There are no tasks.\n", Structured: r}
		}
		return guest.Reply[reply]{Text: r.Document, Structured: r}
	}
	var text strings.Builder
	if v.note != "" {
		text.WriteString(v.note + "\n")
	}
	left := 0 // tasks that the text has no room for
	for _, t := range v.tasks {
		tv, lines := v.task(l, t)
		r.Tasks = append(r.Tasks, tv)
		if text.Len()+len(lines) > maxShown {
			left++
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		text.WriteString(lines)
	}
	switch {
	case left > 0:
		fmt.Fprintf(&text, "\n[… %d tasks left out: show them one by one]\n", left)
	case len(l.Tasks) == 0 && v.note == "":
		text.WriteString("There are no tasks.\n")
	case len(v.tasks) == 0 && v.pending:
		text.WriteString("Nothing is pending: every task is done.\n")
	}
	return guest.Reply[reply]{Text: text.String(), Structured: r}
}

// task renders one task as values and as a markdown list with check boxes.
func (v view) task(l *list, t *task) (taskView, string) {
	tv := taskView{ID: t.ID, Title: t.Title, Status: t.status(l.Current), Reason: t.Reason, Steps: []stepView{}, Version: t.Version}
	var b strings.Builder
	fmt.Fprintf(&b, "## Task %d: %s (%s", t.ID, oneLine(t.Title), strings.ReplaceAll(tv.Status, "_", " "))
	if t.ID == l.Current {
		b.WriteString(", current")
	}
	b.WriteString(")\n")
	if t.Reason != "" {
		fmt.Fprintf(&b, "Blocked: %s\n", oneLine(t.Reason))
	}
	for _, s := range t.Steps {
		if v.pending && s.Done {
			continue
		}
		sv := stepView{ID: s.ID, Text: s.Text, Status: t.stepStatus(s), BlockedBy: s.After, Reason: s.Reason}
		tv.Steps = append(tv.Steps, sv)
		box := " "
		if s.Done {
			box = "x"
		}
		fmt.Fprintf(&b, "- [%s] %d. %s", box, s.ID, oneLine(s.Text))
		if open := t.blockers(s); len(open) > 0 && !s.Done {
			fmt.Fprintf(&b, " (waits for %s)", numbers(open))
		}
		if s.Reason != "" {
			fmt.Fprintf(&b, " (blocked: %s)", oneLine(s.Reason))
		}
		b.WriteByte('\n')
	}
	return tv, b.String()
}

// oneLine keeps a text from looking like another line of the list.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func numbers(ids []int) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(id))
	}
	return b.String()
}
