// Package tty shows questions at a terminal, and tells whether there is one that
// this process may draw on. Texts come to it safe to show.
//
// It does not know who asks or what becomes of an answer.
package tty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/form"
)

// Own is the terminal that this process was started in. Once it was drawn on, it
// stays open: what draws may look at its size a little longer than it draws.
type Own struct {
	mu sync.Mutex
	t  *os.File
}

// Ask shows v there.
func (o *Own) Ask(ctx context.Context, v ask.View, give func(ask.Reply) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.t == nil {
		var err error
		if o.t, err = open(); err != nil {
			return err
		}
	}
	return Ask(ctx, o.t, v, give)
}

// Ask shows v at the terminal t and calls give with what was filled in, until
// give takes it or ctx is done. To leave the form is to cancel the question.
func Ask(ctx context.Context, t *os.File, v ask.View, give func(ask.Reply) error) error {
	filled := map[string]map[string][]string{}
	for {
		_ = flush(t) // what was typed before was not meant for this
		reply, err := show(ctx, t, &v, filled)
		if ctx.Err() != nil {
			fmt.Fprintf(t, "\r\nThe question of %s was answered elsewhere, or is not open any more.\r\n", v.Tool)
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		err = give(reply)
		var faults ask.Faults
		switch {
		case errors.As(err, &faults):
			fmt.Fprintf(t, "\r\nThat does not fit yet: %s\r\n", form.Line(faults.Error()))
			continue
		case errors.Is(err, ask.ErrOver):
			fmt.Fprintf(t, "\r\nThe question of %s was answered elsewhere, or is not open any more.\r\n", v.Tool)
			return nil
		case err == nil:
			said := map[string]string{"accept": "Answered", "decline": "Declined", "cancel": "Left without an answer"}[reply.Action]
			fmt.Fprintf(t, "\r\n%s: %s\r\n", said, v.Tool)
		}
		return err
	}
}

// show runs the form once.
func show(ctx context.Context, t *os.File, v *ask.View, filled map[string]map[string][]string) (ask.Reply, error) {
	in, err := newKeys(t)
	if err != nil {
		return ask.Reply{}, err
	}
	defer in.stop()
	send := true
	values := newValues(v, filled)
	f := huh.NewForm(groups(v, values, &send)...).WithTheme(huh.ThemeFunc(huh.ThemeBase16)).WithShowHelp(true).
		WithProgramOptions(tea.WithInput(in), tea.WithOutput(t), tea.WithoutSignalHandler())
	err = f.RunWithContext(ctx)
	switch {
	case errors.Is(err, huh.ErrUserAborted):
		return ask.Reply{Action: "cancel"}, nil
	case err != nil:
		return ask.Reply{}, err
	case !send:
		return ask.Reply{Action: "decline"}, nil
	}
	return ask.Reply{Action: "accept", Filled: values.reply(v)}, nil
}

// A value is what a field of the form holds: one text or option, or several
// options.
type value struct {
	one  string
	many []string
}

// values are those of a view, by part and field.
type values map[string]map[string]*value

func newValues(v *ask.View, filled map[string]map[string][]string) values {
	all := values{}
	for _, p := range v.Parts {
		all[p.ID] = map[string]*value{}
		for i := range p.Fields {
			x := &p.Fields[i]
			in, ok := filled[p.ID][x.Name]
			if !ok {
				in = x.Initial
			}
			w := &value{many: in}
			if len(in) > 0 {
				w.one = in[0]
			}
			all[p.ID][x.Name] = w
		}
	}
	return all
}

func (all values) reply(v *ask.View) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for _, p := range v.Parts {
		out[p.ID] = map[string][]string{}
		for i := range p.Fields {
			x := &p.Fields[i]
			w := all[p.ID][x.Name]
			switch {
			case x.Kind == form.Several:
				out[p.ID][x.Name] = w.many
			case w.one != "":
				out[p.ID][x.Name] = []string{w.one}
			}
		}
	}
	return out
}

// groups are the pages of the form: one for each field, with that for another
// answer to it, and the last to send it.
func groups(v *ask.View, all values, send *bool) (pages []*huh.Group) {
	head := v.Tool + " asks"
	if v.Skill != "" {
		head += " (skill " + v.Skill + ")"
	}
	for _, p := range v.Parts {
		var page []huh.Field
		last := ""
		about := strings.TrimSpace(p.Message)
		end := func() {
			if page != nil {
				pages = append(pages, huh.NewGroup(page...).Title(head).Description(about))
			}
			page = nil
		}
		if p.URL != "" {
			pages = append(pages, huh.NewGroup(huh.NewConfirm().Title("Open "+form.Line(p.URL)).Description("Go on when you have opened it.").
				Affirmative("Go on").Negative("").Value(new(bool))).Title(head).Description(about))
		}
		for i := range p.Fields {
			x := &p.Fields[i]
			if x.Name != last+"_other" {
				end()
				last = x.Name
			}
			page = append(page, fieldOf(x, all[p.ID][x.Name]))
		}
		end()
	}
	return append(pages, huh.NewGroup(huh.NewConfirm().Title("Send the answer?").
		Description("It goes to this tool, and gives it no permission. Open until "+v.Until.Local().Format(time.TimeOnly)+".").
		Affirmative("Send").Negative("Decline").Value(send)).Title(head))
}

// fieldOf is the input for one field.
func fieldOf(x *form.Field, v *value) huh.Field {
	title := form.Line(x.Title)
	if x.Required {
		title += " (required)"
	}
	check := func(in []string) error {
		_, faults := form.Form{Fields: []form.Field{*x}}.Read(map[string][]string{x.Name: in})
		if faults != nil {
			return errors.New(faults[0].What)
		}
		return nil
	}
	one := func(s string) error { return check([]string{s}) }
	switch x.Kind {
	case form.Several:
		var options []huh.Option[string]
		for i, o := range x.Options {
			options = append(options, huh.NewOption(form.Line(o.Label), fmt.Sprint(i)))
		}
		return huh.NewMultiSelect[string]().Title(title).Description(x.About).Options(options...).Height(heightOf(x, len(options))).
			Validate(check).Filterable(false).Value(&v.many)
	case form.Choice, form.YesNo:
		options := []huh.Option[string]{huh.NewOption("Yes", "true"), huh.NewOption("No", "false")}
		if x.Kind == form.Choice {
			options = nil
			for i, o := range x.Options {
				options = append(options, huh.NewOption(form.Line(o.Label), fmt.Sprint(i)))
			}
		}
		if !x.Required {
			options = append(options, huh.NewOption("(none of these)", ""))
		}
		if v.one == "" {
			v.one = options[0].Value
		}
		return huh.NewSelect[string]().Title(title).Description(x.About).Options(options...).Height(heightOf(x, len(options))).Validate(one).Value(&v.one)
	}
	if x.Kind == form.Text && x.Format == "" && (x.Bounds.Longest == 0 || x.Bounds.Longest > 200) && !strings.HasSuffix(x.Name, "_other") {
		return huh.NewText().Title(title).Description(x.About).Lines(4).CharLimit(x.Bounds.Longest).ExternalEditor(false).Validate(one).Value(&v.one)
	}
	return huh.NewInput().Title(title).Description(x.About).CharLimit(x.Bounds.Longest).Validate(one).Value(&v.one)
}

// maxHeight is how many lines a field takes at most; more options scroll.
const maxHeight = 16

// heightOf is how many lines a field takes that shows so many options.
func heightOf(x *form.Field, options int) int {
	lines := 1 + options
	if x.About != "" {
		lines += 1 + strings.Count(x.About, "\n")
	}
	return min(lines, maxHeight)
}
