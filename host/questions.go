package host

import (
	"context"
	"encoding/json"

	questions "github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/socket"
	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// A Display shows questions at a terminal.
type Display = questions.Display

// asked are the questions that are open.
type asked struct{ *questions.Room }

// newQuestions makes the room of the questions that are open. What a remote
// caller is asked is for that caller alone: the user of this machine neither
// sees nor answers it.
func (h *Host) newQuestions() asked {
	o := questions.Options{
		Local:  func(caller string) bool { return !policy.Remote(caller) },
		Name:   h.askerName,
		Record: h.answered,
		Log:    h.say,
	}
	if h.Config.Questions.TTY {
		o.Display = h.options.Display
	}
	return asked{questions.New(o)}
}

// askerName says who asks, in the host's own words: a tool could call itself
// anything.
func (h *Host) askerName(c *sdk.Call) (tool, skill string) {
	found, err := h.Catalog.Resolve(c, catalog.Viewer{})
	if err != nil {
		return c.Tool, ""
	}
	return found.Entry.Name, found.Entry.Skill.Name
}

// answered records an answer that came beside the client. Without the record it
// does not count.
func (h *Host) answered(v questions.View, channel string, r questions.Reply) error {
	params, err := json.Marshal(r.Filled)
	if err != nil {
		return err
	}
	by := v.Asker()
	return h.audit.Append(h.ctx, audit.Event{Type: audit.TypeAnswer, Caller: by.Scope.Caller, Client: by.Client.Name, Session: by.Scope.Session,
		Skill: v.Skill, Tool: v.Tool, Params: params, Note: r.Action + " by " + channel})
}

// Questions are those that are open, for the doors.
func (h *Host) Questions() *questions.Room { return h.asked.Room }

// Asker has ways to the user of a call beside its client.
func (h *Host) Asker() conversation.Asker { return asker{h.asked.Room} }

type asker struct{ room *questions.Room }

func (a asker) Attached(scope sdk.Scope, address bool) bool {
	return a.room.Attached(scope) || address && a.room.Shows(scope)
}

func (a asker) Put(ctx context.Context, c *sdk.Call, round int, questions map[string]sdk.Question) conversation.Asked {
	if x := a.room.Put(ctx, c, round, questions); x != nil {
		return x
	}
	return nil // and not one that is
}

func (a asker) Find(ctx context.Context, scope sdk.Scope, state string) conversation.Asked {
	if x := a.room.Find(ctx, scope, state); x != nil {
		return x
	}
	return nil
}

// answerSocket lets the user answer from another terminal, until the host ends.
func (h *Host) answerSocket() {
	if err := socket.Serve(h.ctx, h.Config.Paths.Questions(), h.asked.Room, h.say); err != nil {
		h.say(err)
	}
}
