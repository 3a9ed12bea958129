package main

import (
	"fmt"
	"strings"
)

// reply is how things are, for programs.
func (s *session) reply() reply {
	p := &s.plan
	r := reply{Mode: "normal", PlanID: s.id, Goal: p.goal, PlanFile: s.file.shown(), Steps: p.steps, Approved: s.last.Approved, Denied: s.denied,
		Status: p.status, Created: p.created, Updated: p.updated, Outcome: s.outcome, Feedback: s.feedback, Running: s.running, Notes: s.notes}
	if s.open {
		r.Mode, r.Approved = "plan", false
		r.Status = "open" // whatever the file says: it does not decide
	}
	if r.Steps == nil {
		r.Steps = []step{}
	}
	return r
}

// maxTold is how many steps are in the text for a model.
const maxTold = 100

// render is how things are, for a model.
func (s *session) render(r reply) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch {
	case s.did != "":
		line("%s", s.did)
	case s.open:
		line("Plan mode is on.")
	default:
		line("Plan mode is off.")
	}
	if s.feedback != "" {
		line("The user says: %s", s.feedback)
	}
	if r.PlanFile != "" {
		line("Plan %s%s: %s", r.PlanID, of(r.Goal), r.PlanFile)
	}
	done := 0
	for i, x := range r.Steps {
		mark := " "
		if x.Done {
			mark = "x"
			done++
		}
		if i < maxTold {
			line("- [%s] %s", mark, x.Text)
		}
	}
	if n := len(r.Steps); n > 0 {
		line("%d of %d steps are done.", done, n)
	}
	if s.open {
		s.rules(line, r)
	}
	for _, n := range s.notes {
		line("Note: %s.", strings.TrimSuffix(n, "."))
	}
	return b.String()
}

func of(goal string) string {
	if goal == "" {
		return ""
	}
	return " (" + goal + ")"
}

// rules tells a model how to go on while a plan is open.
func (s *session) rules(line func(string, ...any), r reply) {
	line("Until the user approves the plan, tools can read, but write nothing except the plan file and their own /tmp, and only WebSearch and ReadDocs have the network.")
	if s.plan.blank() {
		line("Write the plan into the file in place, with Bash: cat > '%s' <<'EOF'. Steps are lines \"- [ ] …\". Then call PlanMode with the action exit.", strings.ReplaceAll(r.PlanFile, "'", `'\''`))
	} else {
		line("When the plan is ready, call PlanMode with the action exit: it asks the user.")
	}
	if r.Denied > 0 {
		line("So far it has refused tools something %d times.", r.Denied)
	}
	switch {
	case r.Running > 0:
		line("%d background jobs that began before go on as they did: ListBgTasks, KillBgTask.", r.Running)
	case r.Running < 0:
		line("Background jobs that began before go on as they did; how many there are could not be told.")
	}
}
