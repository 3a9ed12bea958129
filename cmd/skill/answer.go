package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/socket"
	"github.com/skillhost/skill/host/ask/tty"
	"github.com/skillhost/skill/sdk"
)

// answering is "skill answer" with its flags.
type answering struct {
	g       *globals
	options []string
	texts   []string
	decline bool
	list    bool
	watch   bool
	own     tty.Own
}

func answerCommand(g *globals) *cobra.Command {
	a := &answering{g: g}
	c := &cobra.Command{
		Use:   "answer [ID]",
		Short: "Answer what tools ask you",
		Long: `Show the questions that tools of running hosts ask and answer them, beside the
client that called the tool: whoever answers first is heard. Without flags the
questions are shown as a form, one after the other; with --watch also those that
are yet to come. --option and --text answer without a form: --option with the
number, the value or the beginning of the label of an option, either as
NAME=VALUE for the field of that name.`,
		Example: `  skill answer
  skill answer --watch
  skill answer --list
  skill answer k3f9qz --option Postgres
  skill answer k3f9qz --option q1=2 --option q2=yes --text q3="after the release"
  skill answer k3f9qz --decline`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
			open, err := a.open(cmd.Context())
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			defer hangUp(open)
			for _, q := range open {
				ids = append(ids, q.ID+"\t"+view.Short(q.Tool+": "+q.Parts[0].Message, 60))
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.run,
	}
	f := c.Flags()
	f.StringArrayVar(&a.options, "option", nil, "choose this option, `[NAME=]VALUE`; may be repeated")
	f.StringArrayVar(&a.texts, "text", nil, "answer with this text, `[NAME=]VALUE`; may be repeated")
	f.BoolVar(&a.decline, "decline", false, "tell the tool that you do not want to answer")
	f.BoolVar(&a.list, "list", false, "only show what is open")
	f.BoolVar(&a.watch, "watch", false, "stay, and show questions as they come")
	return c
}

// An openQuestion is one that a running host has open.
type openQuestion struct {
	ask.View
	host *socket.Host
}

// open lists what is open in all running hosts. The connections stay.
func (a *answering) open(ctx context.Context) (all []openQuestion, err error) {
	c, err := a.g.config()
	if err != nil {
		return nil, err
	}
	hosts, err := socket.Dial(ctx, c.Paths.Questions(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		views, err := h.List()
		if err != nil || len(views) == 0 { // it is about to end
			h.Close()
			continue
		}
		for _, v := range views {
			all = append(all, openQuestion{v, h})
		}
	}
	return all, nil
}

func hangUp(open []openQuestion) {
	for _, q := range open {
		q.host.Close()
	}
}

func (a *answering) run(cmd *cobra.Command, args []string) error {
	given := a.decline || len(a.options)+len(a.texts) > 0
	switch {
	case a.list && a.watch, (a.list || a.watch) && given, a.decline && len(a.options)+len(a.texts) > 0, a.watch && len(args) > 0:
		return &sdk.Error{Kind: sdk.Invalid, What: "these flags do not go together", Hint: "give --list, --watch, --decline, or --option and --text"}
	case a.watch:
		return a.stay(cmd)
	}
	open, err := a.open(cmd.Context())
	if err != nil {
		return err
	}
	defer hangUp(open)
	if len(args) == 1 {
		if open = only(open, args[0]); open == nil {
			return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no question %.20q is open", args[0]), Hint: "see skill answer --list"}
		}
	}
	switch {
	case a.list || a.g.json && !given:
		return a.show(cmd.OutOrStdout(), open)
	case len(open) == 0:
		fmt.Fprintln(cmd.OutOrStdout(), "no question is open")
		return nil
	case given && len(open) > 1:
		return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%d questions are open", len(open)), Hint: "name the one that is meant; see skill answer --list"}
	case given:
		return a.give(cmd, &open[0])
	case !a.own.Owned():
		return &sdk.Error{Kind: sdk.Unavailable, What: "there is no terminal to show the question on", Hint: "answer with --option, --text or --decline"}
	}
	for i := range open {
		q := &open[i]
		if err := a.own.Ask(cmd.Context(), q.View, func(r ask.Reply) error { return q.host.Answer(q.ID, r) }); err != nil {
			return err
		}
	}
	return nil
}

func only(open []openQuestion, id string) []openQuestion {
	for i := range open {
		if strings.EqualFold(open[i].ID, id) {
			return open[i : i+1]
		}
	}
	return nil
}

// give answers by the flags.
func (a *answering) give(cmd *cobra.Command, q *openQuestion) error {
	r := ask.Reply{Action: "decline"}
	if !a.decline {
		var err error
		if r, err = filledBy(&q.View, a.options, a.texts); err != nil {
			return err
		}
	}
	if err := q.host.Answer(q.ID, r); err != nil {
		var faults ask.Faults
		if errors.As(err, &faults) {
			return &sdk.Error{Kind: sdk.Invalid, What: "the answer does not fit: " + faults.Error()}
		}
		return err
	}
	if a.g.json {
		return view.JSON(cmd.OutOrStdout(), map[string]string{"id": q.ID, "action": r.Action})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", map[string]string{"accept": "answered", "decline": "declined"}[r.Action], q.ID)
	return nil
}

// show lists what is open.
func (a *answering) show(w io.Writer, open []openQuestion) error {
	if a.g.json {
		views := []ask.View{}
		for _, q := range open {
			views = append(views, q.View)
		}
		return view.JSON(w, views)
	}
	if len(open) == 0 {
		fmt.Fprintln(w, "no question is open")
	}
	for i := range open {
		view.Question(w, &open[i].View)
	}
	return nil
}

// lookEvery is how often it is looked for hosts that have started.
const lookEvery = 300 * time.Millisecond

// news is what a host says to one who watches.
type news struct {
	host   string
	opened *ask.View
	closed string
	ended  bool
}

// stay shows questions as they come, until the command is told to end.
func (a *answering) stay(cmd *cobra.Command) error {
	c, err := a.g.config()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	w := watching{a: a, cmd: cmd, dir: c.Paths.Questions(), known: map[string]bool{}, news: make(chan news), shown: make(chan error, 1)}
	if !a.g.json {
		fmt.Fprintln(cmd.ErrOrStderr(), "waiting for questions; Ctrl-C ends")
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := w.connect(ctx); err != nil {
			return err
		}
		select {
		case n := <-w.news:
			w.hear(n)
		case err := <-w.shown:
			if w.cancel(); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			w.current = nil
		case <-tick.C:
		case <-ctx.Done():
			w.finish()
			return nil
		}
		w.next(ctx)
	}
}

// watching is the state of "skill answer --watch".
type watching struct {
	a       *answering
	cmd     *cobra.Command
	dir     string
	known   map[string]bool // hosts, by name
	news    chan news
	waiting []waiting
	current *waiting   // that is shown
	shown   chan error // what came of it
	cancel  context.CancelFunc
}

type waiting struct {
	host string
	view ask.View
}

// connect watches hosts that are new.
func (w *watching) connect(ctx context.Context) error {
	hosts, err := socket.Dial(ctx, w.dir, w.known)
	for _, h := range hosts {
		w.known[h.Name] = true
		say := func(n news) {
			n.host = h.Name
			select {
			case w.news <- n:
			case <-ctx.Done():
			}
		}
		go func() {
			defer h.Close()
			defer context.AfterFunc(ctx, func() { h.Close() })()
			_ = h.Watch(func(v ask.View) { say(news{opened: &v}) }, func(id string) { say(news{closed: id}) }) // it ends when the host does
			say(news{ended: true})
		}()
	}
	return err
}

// hear takes in what a host says.
func (w *watching) hear(n news) {
	gone := func(x *waiting) bool { return x.host == n.host && (n.ended || x.view.ID == n.closed) }
	switch {
	case n.opened != nil:
		if !w.a.own.Owned() && w.current == nil {
			_ = w.a.show(w.cmd.OutOrStdout(), []openQuestion{{View: *n.opened}}) // for who answers in another way
			return
		}
		w.waiting = append(w.waiting, waiting{n.host, *n.opened})
	default:
		kept := w.waiting[:0]
		for i := range w.waiting {
			if !gone(&w.waiting[i]) {
				kept = append(kept, w.waiting[i])
			}
		}
		w.waiting = kept
		if w.current != nil && gone(w.current) {
			w.cancel()
		}
		if n.ended {
			delete(w.known, n.host)
		}
	}
}

// next shows the next question, if none is shown.
func (w *watching) next(ctx context.Context) {
	if w.current != nil || len(w.waiting) == 0 {
		return
	}
	q := w.waiting[0]
	w.waiting, w.current = w.waiting[1:], &q
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		w.shown <- w.a.own.Ask(ctx, q.view, func(r ask.Reply) error { return w.answer(ctx, &q, r) })
	}()
}

// finish waits until the terminal is as it was.
func (w *watching) finish() {
	if w.current != nil {
		w.cancel()
		<-w.shown
	}
}

// answer answers on a connection of its own: the other one listens.
func (w *watching) answer(ctx context.Context, q *waiting, r ask.Reply) error {
	hosts, err := socket.Dial(ctx, w.dir, nil)
	defer func() {
		for _, h := range hosts {
			h.Close()
		}
	}()
	for _, h := range hosts {
		if h.Name == q.host {
			return h.Answer(q.view.ID, r)
		}
	}
	if err == nil {
		err = ask.ErrOver
	}
	return err
}
