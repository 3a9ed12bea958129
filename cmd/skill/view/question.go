package view

import (
	"io"
	"strings"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/form"
)

// Question writes what a tool asks for a person.
func Question(w io.Writer, v *ask.View) {
	by := v.Tool
	if v.Skill != "" {
		by += " (skill " + v.Skill + ")"
	}
	for _, x := range []struct{ what, is string }{{"client", v.Client}, {"workspace", v.Workspace}} {
		if x.is != "" {
			by += ", " + x.what + " " + x.is
		}
	}
	row(w, "%s  %s asks; open until %s", v.ID, by, v.Until.Local().Format(time.TimeOnly))
	for _, p := range v.Parts {
		for line := range strings.SplitSeq(strings.TrimSpace(p.Message), "\n") {
			row(w, "  %s", line)
		}
		if p.URL != "" {
			row(w, "  open %s", p.URL)
		}
		for i := range p.Fields {
			field(w, &p.Fields[i])
		}
	}
}

func field(w io.Writer, x *form.Field) {
	what := map[form.Kind]string{form.Choice: "one of", form.Several: "any of", form.YesNo: "yes or no", form.Number: "a number", form.Integer: "a whole number"}[x.Kind]
	s := "  " + x.Name
	if x.Title != x.Name {
		s += " (" + form.Line(x.Title) + ")"
	}
	if x.About != "" {
		s += ": " + form.Line(x.About)
	}
	for _, note := range []string{what, map[bool]string{true: "required"}[x.Required]} {
		if note != "" {
			s += " [" + note + "]"
		}
	}
	row(w, "%s", s)
	for i, o := range x.Options {
		row(w, "    %d. %s", i+1, form.Line(o.Label))
	}
}
