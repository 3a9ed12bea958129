package view

import (
	"fmt"
	"io"
	"time"

	"github.com/skillhost/skill/host/audit"
)

// Record writes one record of the audit log for a person, as one line.
func Record(w io.Writer, r audit.Record) {
	s := fmt.Sprintf("%s %-6s %s", r.Time.Local().Format("2006-01-02 15:04:05.000"), r.Type, r.Call)
	switch r.Type {
	case audit.TypeBoot, audit.TypeClose, audit.TypePolicy:
		s += r.Boot + " " + r.Note
	case audit.TypeStart:
		s += fmt.Sprintf(" %s (%s) for %s", r.Tool, r.Skill, r.Caller)
		if r.Params != nil {
			s += fmt.Sprintf(" %v", r.Params.Shape)
		}
		if r.Note != "" {
			s += " (" + r.Note + ")"
		}
	case audit.TypeAnswer:
		s += fmt.Sprintf(" %s for %s: %s", r.Tool, r.Caller, r.Note)
	case audit.TypeRefuse:
		s += fmt.Sprintf(" %s for %s", r.Tool, r.Caller)
	case audit.TypeAccess:
		s += fmt.Sprintf(" %s %s %s", r.Decision, r.Access, r.Target)
		if r.Count > 1 {
			s += fmt.Sprintf(" (%d times)", r.Count)
		}
	case audit.TypeEnd:
		s += fmt.Sprintf(" %s %v, %d bytes", r.Tool, r.Duration.Round(time.Microsecond), r.Bytes)
	}
	if r.Kind != "" {
		s += " " + string(r.Kind)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	row(w, "%s", s)
}
