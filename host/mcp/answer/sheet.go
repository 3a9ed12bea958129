package answer

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/form"
)

// A sheet is what the template shows: a question, or a note.
type sheet struct {
	Style  template.CSS
	Title  string
	Text   string // of a note
	By     string
	Facts  []string
	Until  string
	Wrong  bool
	Parts  []part
	Accept string // what the button says
}

func note(title, text string) sheet { return sheet{Title: title, Text: text} }

type part struct {
	Message string
	URL     string
	Groups  []group
}

// A group is a field and, if there is one, that for another answer to it.
type group struct {
	Fields []field
}

type field struct {
	form.Field
	ID      string // of the input, and its name
	Fault   string
	Options []option
	Value   string
	Type    string // of an input; "" for a text of several lines
	Step    string
	Longest int
}

type option struct {
	ID, Value, Label string
	Chosen           bool
}

// sheetOf shows v with what was filled in before, if that was wrong.
func sheetOf(v *ask.View, before *ask.Reply, faults ask.Faults) sheet {
	s := sheet{Title: "A tool asks you", By: v.Tool, Wrong: faults != nil, Accept: "Answer",
		Until: v.Until.Local().Format("15:04:05"), Facts: facts(v)}
	for i := range v.Parts {
		p := &v.Parts[i]
		out := part{Message: p.Message, URL: p.URL}
		if p.URL != "" && len(v.Parts) == 1 {
			s.Accept = "I have opened it"
		}
		var filled map[string][]string
		if before != nil {
			filled = before.Filled[p.ID]
		}
		for j := range p.Fields {
			f := fieldOf(&p.Fields[j], fieldID(i, j), filled, before != nil)
			for _, x := range faults[p.ID] {
				if x.Field == f.Name {
					f.Fault = x.What
				}
			}
			if last := len(out.Groups) - 1; last >= 0 && f.Name == out.Groups[last].Fields[0].Name+"_other" {
				out.Groups[last].Fields = append(out.Groups[last].Fields, f)
				continue
			}
			out.Groups = append(out.Groups, group{[]field{f}})
		}
		s.Parts = append(s.Parts, out)
	}
	return s
}

// facts say where a question comes from, in the host's own words.
func facts(v *ask.View) (out []string) {
	for _, x := range []struct{ what, is string }{{"skill", v.Skill}, {"client", v.Client}, {"workspace", v.Workspace}} {
		if x.is != "" {
			out = append(out, x.what+" "+x.is)
		}
	}
	return append(out, "asked at "+v.Since.Local().Format(time.TimeOnly))
}

func fieldID(part, field int) string { return fmt.Sprintf("f%d.%d", part, field) }

func fieldOf(x *form.Field, id string, filled map[string][]string, again bool) field {
	f := field{Field: *x, ID: id, Type: "text"}
	values := x.Initial
	if again {
		values = filled[x.Name]
	}
	if len(values) > 0 {
		f.Value = values[0]
	}
	switch x.Kind {
	case form.Choice, form.Several:
		for i, o := range x.Options {
			v := strconv.Itoa(i)
			f.Options = append(f.Options, option{id + "." + v, v, o.Label, slices.Contains(values, v)})
		}
	case form.YesNo:
		for _, v := range []string{"true", "false"} {
			f.Options = append(f.Options, option{id + "." + v, v, map[string]string{"true": "Yes", "false": "No"}[v], f.Value == v})
		}
	case form.Integer:
		f.Type, f.Step = "number", "1"
	case form.Number:
		f.Type, f.Step = "number", "any"
	default:
		if t, ok := map[string]string{"email": "email", "uri": "url", "date": "date"}[x.Format]; ok {
			f.Type = t
		} else if n := x.Bounds.Longest; x.Format == "" && (n == 0 || n > 200) && !strings.HasSuffix(x.Name, "_other") {
			f.Type = ""
		}
		f.Longest = x.Bounds.Longest
	}
	return f
}

// Several reports whether more than one option may be chosen.
func (f field) Several() bool { return f.Kind == form.Several }

// read is what was posted for v, as the room takes it.
func read(v *ask.View, posted url.Values) ask.Reply {
	r := ask.Reply{Action: posted.Get("action"), Filled: map[string]map[string][]string{}}
	for i := range v.Parts {
		filled := map[string][]string{}
		for j := range v.Parts[i].Fields {
			x := &v.Parts[i].Fields[j]
			for _, s := range posted[fieldID(i, j)] {
				if x.Kind == form.Text { // a form ends lines as mail does
					s = strings.ReplaceAll(s, "\r\n", "\n")
				}
				filled[x.Name] = append(filled[x.Name], s)
			}
		}
		r.Filled[v.Parts[i].ID] = filled
	}
	return r
}
