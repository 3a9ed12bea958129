// Plan-mode is the skill behind the tool PlanMode: while a plan is open, a
// layer over the session keeps every tool from writing files and from the
// network, but for the plan itself and for research. It is the host that holds
// tools to the layer, and the user who ends it: leaving plan mode takes an answer
// of his to a question.
//
// What says that a plan is open is the layer, and nothing else. The plan is a
// file, which is read anew in every call: whoever likes may edit it.
package main

import (
	"encoding/json"
	"errors"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type request struct {
	Action   string `json:"action" doc:"enter plan mode; exit it, which asks the user to approve the plan; status; json: the plan as it is parsed; reset: begin the plan anew, still in plan mode" enum:"enter,exit,status,json,reset"`
	Goal     string `json:"goal,omitempty" doc:"Goal/description: with enter and reset what the plan is for" maxlen:"2000"`
	PlanFile string `json:"plan_file,omitempty" doc:"Path to markdown plan file, in the workspace, with enter: a new one, or a plan to go on with (default: .skill/plans/DATE-GOAL.md)" maxlen:"4096"`
}

type reply struct {
	Mode     string   `json:"mode" enum:"plan,normal" doc:"plan: a plan is open and the session is read-only"`
	PlanID   string   `json:"plan_id" doc:"Of the open plan, else of the session's last one, else empty"`
	Goal     string   `json:"goal"`
	PlanFile string   `json:"plan_file" doc:"The file with the plan, on the host"`
	Steps    []step   `json:"steps" doc:"The check boxes of the plan"`
	Approved bool     `json:"approved" doc:"The user has approved the plan: that is how plan mode ends"`
	Denied   int64    `json:"denied_since_enter" doc:"What plan mode has kept tools from, as far as the host has seen it"`
	Status   string   `json:"status,omitempty" doc:"In the plan file: open or approved"`
	Created  string   `json:"created,omitempty"`
	Updated  string   `json:"updated,omitempty"`
	Outcome  string   `json:"outcome,omitempty" doc:"With exit: what the user said; edited: rejected with feedback; unanswered: nothing has changed" enum:"approved,edited,rejected,unanswered"`
	Feedback string   `json:"feedback,omitempty" doc:"With exit: the user's own words"`
	Running  int      `json:"running_jobs,omitempty" doc:"With enter: background jobs that began before and go on as they did; -1: it cannot be told"`
	Document string   `json:"document,omitempty" doc:"With json: the plan without its front matter"`
	Notes    []string `json:"notes,omitempty" doc:"What else is worth knowing"`
}

type step struct {
	Text string `json:"text"`
	Done bool   `json:"done"`
}

var _ = guest.Tool("PlanMode", "Manage plan mode for complex tasks. While a plan is open the session is read-only: no tool writes files but the plan itself, "+
	"and only the tools for research have the network. Look around, write the plan as Markdown with \"- [ ]\" steps into the plan file, then exit: the user is asked to approve it.",
	manage, guest.Title("Plan mode"), guest.Annotations{Idempotent: true})

var _ = guest.Tool("read_plan", "Serves plan://current", func(c *guest.Call, _ struct{}) (string, error) {
	s, err := look(c)
	if err != nil {
		return "", err
	}
	if s.file.rel == "" {
		return "There is no plan.\n", nil
	}
	p, err := s.file.read()
	return p.text(), err
}, guest.Hidden())

const uri = "plan://current"

func manage(c *guest.Call, in request) (guest.Reply[reply], error) {
	do := map[string]func(*guest.Call, request) (*session, error){"enter": enter, "exit": exit, "status": status, "json": status, "reset": reset}[in.Action]
	if do == nil {
		return guest.Reply[reply]{}, invalid("unknown action "+quoted(in.Action), "enter, exit, status, json or reset")
	}
	s, err := do(c, in)
	if err != nil {
		return guest.Reply[reply]{}, err
	}
	out := s.reply()
	if in.Action != "json" {
		return guest.Reply[reply]{Text: s.render(out), Structured: out}, nil
	}
	out.Document = s.plan.body
	text, err := json.MarshalIndent(out, "", "  ")
	return guest.Reply[reply]{Text: string(text), Structured: out}, err
}

// status says how things are.
func status(c *guest.Call, _ request) (*session, error) {
	s, err := look(c)
	if err != nil || s.file.rel == "" {
		return s, err
	}
	if err := s.load(c); err != nil {
		s.note(err.Error())
	}
	return s, nil
}

// load reads the plan. What it cannot read is an error, and what it can it may
// have notes about.
func (s *session) load(c *guest.Call) error {
	p, err := s.file.read()
	if err != nil {
		var e *sdk.Error
		if s.open && errors.As(err, &e) && e.Hint == "" {
			e.Hint = "PlanMode enter makes the plan anew, and keeps aside what is there; plan mode stays on"
		}
		return err
	}
	s.plan = p
	for _, n := range p.problems {
		s.note(n)
	}
	return s.complete(c)
}

// announce tells those who watch the plan that it is another one. That nobody
// could be told is no failure of the change.
func announce(c *guest.Call) { _ = c.Updated(uri) }

func invalid(what, hint string) error {
	return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint}
}

func main() {}
