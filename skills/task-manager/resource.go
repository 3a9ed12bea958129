package main

import (
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// The resources of the skill: task://list, task://current and task://{id}.
const (
	uriList    = "task://list"
	uriCurrent = "task://current"
)

var (
	_ = guest.Tool("read_list", "Serves "+uriList, func(c *guest.Call, _ struct{}) (string, error) {
		l, _, _, err := load(c)
		if err != nil {
			return "", err
		}
		return view{tasks: l.Tasks}.reply(l).Text, nil
	}, guest.Hidden())

	_ = guest.Tool("read_current", "Serves "+uriCurrent, func(c *guest.Call, _ struct{}) (string, error) {
		l, _, _, err := load(c)
		if err != nil {
			return "", err
		}
		if l.Current == 0 {
			return "There is no current task.\n", nil
		}
		return l.render(l.Current)
	}, guest.Hidden())

	_ = guest.Tool("read_task", "Serves task://{id}", func(c *guest.Call, in struct {
		ID string `json:"id"`
	}) (string, error) {
		l, _, _, err := load(c)
		if err != nil {
			return "", err
		}
		for _, t := range l.Tasks {
			if in.ID == numbers([]int{t.ID}) {
				return l.render(t.ID)
			}
		}
		return "", &sdk.Error{Kind: sdk.NotFound, What: "there is no task " + in.ID, Hint: l.names()}
	}, guest.Hidden())

	_ = guest.Tool("complete_task", "Completes the id of task://{id}", func(c *guest.Call, in struct {
		Value string `json:"value,omitempty"`
	}) (completions, error) {
		l, _, _, err := load(c)
		out := completions{Values: []string{}}
		if err != nil {
			return out, err
		}
		for _, t := range l.Tasks {
			if id := numbers([]int{t.ID}); strings.HasPrefix(id, in.Value) {
				if out.Total++; len(out.Values) < 100 {
					out.Values = append(out.Values, id)
				}
			}
		}
		out.More = out.Total > len(out.Values)
		return out, nil
	}, guest.Hidden())
)

type completions struct {
	Values []string `json:"values"`
	Total  int      `json:"total"`
	More   bool     `json:"hasMore"`
}

// render shows one task as the resource of it.
func (l *list) render(id int) (string, error) {
	t, err := l.task(id)
	if err != nil {
		return "", err
	}
	_, text := view{}.task(l, t)
	return text, nil
}

// announce tells those who watch the resources that they have changed. That
// nobody could be told is no failure of the change.
func announce(c *guest.Call, v view, current int) {
	for i, id := range v.changed {
		if i == 10 { // whoever watches one task of so many also watches the list
			break
		}
		_ = c.Updated("task://" + numbers([]int{id}))
	}
	_ = c.Updated(uriList)
	if current != v.before || current != 0 && slices.Contains(v.changed, current) {
		_ = c.Updated(uriCurrent)
	}
}
