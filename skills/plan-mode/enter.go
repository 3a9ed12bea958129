package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

const (
	maxSlug  = 40 // characters of a goal in the name of its file
	maxTries = 100
	maxID    = 80 // bytes
)

// enter opens a plan.
func enter(c *guest.Call, in request) (*session, error) {
	s, err := look(c)
	if err != nil {
		return nil, err
	}
	now, err := c.Now()
	if err != nil {
		return nil, err
	}
	in.Goal = oneLine(in.Goal, maxGoal)
	if s.open {
		return s, s.again(c, in, now)
	}
	s.last, s.notes = ended{}, nil
	if in.PlanFile == "" {
		err = s.begin(in.Goal, now)
	} else {
		err = s.beginAt(c, in, now)
	}
	if err != nil {
		return nil, err
	}
	if s.running, err = c.PushLayer(layerOf(s.id, s.file)); err != nil {
		if s.created {
			_ = os.Remove(s.file.at(s.file.rel)) // the error that matters is the first
		}
		return s.lost(c, in, now, err)
	}
	s.open, s.did = true, "Plan mode is on."
	s.keepOpen(c)
	announce(c)
	return s, nil
}

// lost is enter where the layer could not be laid: because another call was
// faster, whose plan it is then, or for the reason why.
func (s *session) lost(c *guest.Call, in request, now time.Time, why error) (*session, error) {
	other, err := look(c)
	if err != nil || !other.open {
		return nil, why
	}
	in.Goal = "" // the first one holds
	return other, other.again(c, in, now)
}

// again is enter while a plan is open: nothing changes but its goal, and a file
// that is gone or is something else is made anew.
func (s *session) again(c *guest.Call, in request, now time.Time) error {
	if in.PlanFile != "" {
		if f, err := named(s.file.workspace, in.PlanFile); err != nil || f.rel != s.file.rel {
			return invalid("plan "+s.id+" is open, with the file "+s.file.shown(), "exit it first: the user decides")
		}
	}
	s.did = "Plan mode is on already."
	if err := s.restore(c, in.Goal, now); err != nil {
		return err
	}
	if in.Goal == "" || in.Goal == s.plan.goal {
		return nil
	}
	s.plan.goal = in.Goal
	s.own(now)
	s.did += " The goal is another one."
	s.keepOpen(c)
	announce(c)
	return s.file.write(&s.plan)
}

// restore reads the plan. If there is none any more, it makes a new one, and
// keeps aside what is in its place.
func (s *session) restore(c *guest.Call, goal string, now time.Time) error {
	err := s.file.check()
	var m misfit
	switch {
	case err == nil:
		return s.load(c)
	case errors.As(err, &m):
		to, moved := s.file.aside(now)
		if moved != nil {
			return moved
		}
		s.note(m.Error() + ": it is kept as " + to)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	s.plan = plan{goal: goal}
	if err := s.complete(c); err != nil {
		return err
	}
	s.plan.body = heading(s.plan.goal)
	s.own(now)
	s.note("there was no plan any more: it begins anew")
	return s.file.trouble(s.file.create(&s.plan))
}

// own makes the front matter that of the open plan, whatever an editor has made
// of it.
func (s *session) own(now time.Time) {
	p := &s.plan
	at := now.UTC().Format(time.RFC3339)
	p.id, p.status, p.updated = s.id, "open", at
	if p.created == "" {
		p.created = at
	}
}

// begin makes a plan in a file of its own.
func (s *session) begin(goal string, now time.Time) error {
	base := now.UTC().Format(time.DateOnly) + "-" + slug(goal)
	for i := 1; i <= maxTries; i++ {
		id := base
		if i > 1 {
			id = fmt.Sprintf("%s-%d", base, i)
		}
		s.id, s.file.rel = id, folder+"/"+id+".md"
		s.plan = plan{goal: goal, body: heading(goal)}
		s.own(now)
		err := s.file.create(&s.plan)
		if err == nil {
			s.created = true
			return nil
		}
		var m misfit
		if !errors.Is(err, fs.ErrExist) && !errors.As(err, &m) { // else the name is taken
			return s.file.trouble(err)
		}
	}
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("there are %d plans of that name today", maxTries), Hint: "give a plan_file"}
}

// beginAt makes a plan in the file that the caller names, or goes on with the
// plan in it. A file that is no plan is not touched.
func (s *session) beginAt(c *guest.Call, in request, now time.Time) error {
	f, err := named(s.file.workspace, in.PlanFile)
	if err != nil {
		return err
	}
	s.file = f
	s.id = slugOf(strings.TrimSuffix(path.Base(f.rel), path.Ext(f.rel)), maxID)
	switch err := f.check(); {
	case errors.Is(err, fs.ErrNotExist):
		s.plan = plan{goal: in.Goal, body: heading(in.Goal)}
		s.own(now)
		s.created = true
		return f.trouble(f.create(&s.plan))
	case err != nil:
		return f.trouble(err)
	}
	if err := s.load(c); err != nil {
		return err
	}
	if s.plan.id == "" || s.plan.status == "" {
		return invalid("plan_file: "+quoted(f.rel)+" is there already and is no plan of this tool's", "a name that is not taken; a plan begins with front matter that has an id and a status")
	}
	s.id = slugOf(s.plan.id, maxID)
	if in.Goal != "" {
		s.plan.goal = in.Goal
	}
	s.own(now)
	return f.write(&s.plan)
}

// slug makes a part of a file's name of a goal.
func slug(goal string) string {
	s := slugOf(goal, maxID)
	if r := []rune(s); len(r) > maxSlug {
		s = strings.Trim(string(r[:maxSlug]), "-")
	}
	return s
}

// slugOf keeps letters and digits, of whatever script, and at most n bytes.
func slugOf(s string, n int) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		if b.Len()+4 > n {
			break
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "plan"
	}
	return strings.Trim(b.String(), "-")
}

// reset begins the plan anew. It is no way out of plan mode: that is for the
// user to decide.
func reset(c *guest.Call, in request) (*session, error) {
	s, err := look(c)
	if err != nil {
		return nil, err
	}
	if in.PlanFile != "" {
		return nil, invalid("reset takes no plan_file", "with enter it names the file of a plan")
	}
	if !s.open {
		if err := forget(c); err != nil {
			return nil, err
		}
		announce(c)
		return &session{file: planFile{workspace: s.file.workspace}, did: "Plan mode is off. What was remembered of the session's last plan is forgotten; its file stays."}, nil
	}
	now, err := c.Now()
	if err != nil {
		return nil, err
	}
	in.Goal = oneLine(in.Goal, maxGoal)
	if err := s.restore(c, in.Goal, now); err != nil {
		return nil, err
	}
	goal := in.Goal
	if goal == "" {
		goal = s.plan.goal
	}
	if !s.plan.blank() {
		to, err := s.file.keep(s.plan.text(), now)
		if err != nil {
			return nil, err
		}
		s.note("what was there is kept as " + to)
	}
	s.plan = plan{goal: goal, body: heading(goal), created: s.plan.created, more: s.plan.more}
	s.own(now)
	if err := s.file.write(&s.plan); err != nil {
		return nil, err
	}
	s.did = "The plan begins anew. Plan mode stays on: exit asks the user."
	s.keepOpen(c)
	announce(c)
	return s, nil
}
