package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk"
)

// An item is one check box of a document that is read in.
type item struct {
	text  string
	done  bool
	under string // the heading that it stands under, or ""
	deep  bool   // it is indented beneath another item
}

var (
	box     = regexp.MustCompile(`^([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[([ xX])\][ \t]+(.*)$`)
	heading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)
	fence   = regexp.MustCompile("^ {0,3}(```+|~~~+)")
)

// checkboxes finds the items of a Markdown document. What stands in a fenced
// block is an example, and not meant.
func checkboxes(doc string) (items []item) {
	under, open := "", ""
	for line := range strings.Lines(doc) {
		line = strings.TrimRight(line, "\r\n")
		if m := fence.FindStringSubmatch(line); m != nil {
			switch {
			case open == "":
				open = m[1]
			case strings.HasPrefix(m[1], open):
				open = ""
			}
			continue
		}
		if open != "" {
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			under = oneLine(m[1])
			continue
		}
		if m := box.FindStringSubmatch(line); m != nil && strings.TrimSpace(m[3]) != "" {
			items = append(items, item{oneLine(m[3]), m[2] != " ", under, m[1] != "" && len(items) > 0})
		}
	}
	return items
}

// todos reads the list of TodoWrite: an array of entries, or an object that
// has it as "todos".
func todos(doc string) ([]item, error) {
	type entry struct {
		Content string `json:"content"`
		Text    string `json:"text"`
		Status  string `json:"status"`
		Done    bool   `json:"completed"`
	}
	var list []entry
	if strings.HasPrefix(doc, "{") {
		var object struct {
			Todos []entry `json:"todos"`
		}
		if err := json.Unmarshal([]byte(doc), &object); err != nil {
			return nil, err
		}
		list = object.Todos
	} else if err := json.Unmarshal([]byte(doc), &list); err != nil {
		return nil, err
	}
	var items []item
	for _, e := range list {
		text := oneLine(e.Content)
		if text == "" {
			text = oneLine(e.Text)
		}
		if text != "" {
			items = append(items, item{text: text, done: e.Done || e.Status == "completed" || e.Status == "done"})
		}
	}
	return items, nil
}

// read adds the tasks of a document. Under a heading, check boxes are the steps
// of a task of that name; without one, a check box is a task, and those
// indented beneath it are its steps. With task_id all are steps of that task,
// with text all are steps of a new task of that name.
func (l *list) read(in request, v *view) error {
	doc := strings.TrimSpace(in.Document)
	if !utf8.ValidString(doc) {
		doc = strings.ToValidUTF8(doc, "\ufffd")
	}
	if doc == "" {
		return invalid("import: no document", "document is Markdown with check boxes (- [ ] …) or the JSON of a to-do list")
	}
	var items []item
	if doc[0] == '[' && !strings.HasPrefix(doc, "[ ]") || doc[0] == '{' {
		var err error
		if items, err = todos(doc); err != nil {
			return invalid("import: the document looks like JSON, but is no to-do list: "+err.Error(), `want [{"content": "…", "status": "pending"}] or {"todos": […]}`)
		}
		if in.TaskID == 0 && in.Text == "" {
			in.Text = "To-do list"
		}
	} else {
		items = checkboxes(doc)
	}
	if len(items) == 0 {
		return invalid("import: the document has no check boxes", "want lines such as - [ ] buy milk")
	}
	var into *task // nil: each item says itself
	switch {
	case in.TaskID != 0:
		t, err := l.task(in.TaskID)
		if err != nil {
			return err
		}
		if in.IfVersion != 0 && in.IfVersion != t.Version {
			return invalid(fmt.Sprintf("task %d has version %d, not %d: it was changed meanwhile", t.ID, t.Version, in.IfVersion), "show it, then decide anew")
		}
		into = t
		v.tasks, v.changed = []*task{t}, []int{t.ID}
		t.Version++
	case in.Text != "":
		t, err := l.begin(in.Text, v)
		if err != nil {
			return err
		}
		into = t
	}
	if err := l.take(items, into, v); err != nil {
		return err
	}
	for _, t := range v.tasks {
		t.settle()
	}
	if into == nil || in.TaskID == 0 {
		l.Current = v.tasks[0].ID
	}
	v.note = fmt.Sprintf("Imported %d check boxes into %d tasks.", len(items), len(v.tasks))
	return nil
}

// take adds the items, to into if that is not nil.
func (l *list) take(items []item, into *task, v *view) error {
	t, under := into, ""
	for _, i := range items {
		switch {
		case into != nil:
		case i.under != "" && (t == nil || i.under != under), i.under == "" && (t == nil || !i.deep || under != ""):
			title := i.under
			if title == "" {
				title = i.text
			}
			var err error
			if t, err = l.begin(title, v); err != nil {
				return err
			}
			if under = i.under; under == "" {
				t.Done = i.done
				continue
			}
		}
		if len(i.text) > maxText {
			return tooLong(i.text)
		}
		if _, err := t.add(request{Text: i.text}); err != nil {
			return err
		}
		t.Steps[len(t.Steps)-1].Done = i.done
	}
	return nil
}

// begin adds a task and shows it.
func (l *list) begin(title string, v *view) (*task, error) {
	if len(title) > maxText {
		return nil, tooLong(title)
	}
	if len(l.Tasks) >= maxTasks {
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("there are %d tasks already", len(l.Tasks)), Hint: "delete tasks that are done"}
	}
	l.Next++
	t := &task{ID: l.Next, Title: title, Version: 1}
	l.Tasks = append(l.Tasks, t)
	v.tasks, v.changed = append(v.tasks, t), append(v.changed, t.ID)
	return t, nil
}

// settle makes a task done when all of its steps are, and them when it is.
func (t *task) settle() {
	switch {
	case t.Done:
		for _, s := range t.Steps {
			s.Done, s.Reason = true, ""
		}
	case len(t.Steps) > 0 && t.left() == 0:
		t.Done, t.Reason = true, ""
	}
}

// markdown writes tasks as a list of check boxes, which import reads again.
// What steps wait for, and why, stays behind.
func markdown(tasks []*task) string {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "- [%s] %s\n", mark(t.Done), oneLine(t.Title))
		for _, s := range t.Steps {
			fmt.Fprintf(&b, "  - [%s] %s\n", mark(s.Done), oneLine(s.Text))
		}
	}
	return b.String()
}

func mark(done bool) string {
	if done {
		return "x"
	}
	return " "
}
