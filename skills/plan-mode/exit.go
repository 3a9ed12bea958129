package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// maxAsked is how much of a plan is in the question itself, bytes. The rest is
// in its file, which the question names.
const maxAsked = 12 << 10

var decision = json.RawMessage(`{"type":"object","properties":{` +
	`"decision":{"type":"string","title":"Your decision","enum":["approve","reject"],"enumNames":["Approve: leave plan mode and let the work begin","Reject: stay in plan mode"]},` +
	`"feedback":{"type":"string","title":"Feedback","description":"What is to change in the plan, or what else to mind (optional)","maxLength":4000}},` +
	`"required":["decision"]}`)

// fromUser are the ways on which an answer comes from somebody who was shown the
// plan. What came with the call before anybody was asked is not among them.
var fromUser = []string{"mrtr", "elicitation", "page", "terminal", "tty"}

// exit asks the user to approve the plan. Nothing else ends plan mode.
func exit(c *guest.Call, _ request) (*session, error) {
	s, err := look(c)
	if err != nil {
		return nil, err
	}
	if !s.open {
		s.did = "Plan mode is off: there is nothing to exit."
		if s.file.rel != "" {
			s.note(fmt.Sprintf("plan %s was approved at %s", s.last.ID, s.last.At.UTC().Format("15:04 MST")))
		}
		return s, nil
	}
	if err := s.load(c); err != nil {
		return nil, err
	}
	// What is approved is the plan as it was shown, and no other.
	now := s.digest()
	shown, err := guest.Once(c, "shown", func() (string, error) { return now, nil })
	if err != nil {
		return nil, err
	}
	answer, err := c.Ask("approve", sdk.Question{Kind: sdk.QuestionForm, Message: s.question(), Schema: decision})
	if err != nil {
		return nil, err
	}
	var said struct {
		Decision string `json:"decision"`
		Feedback string `json:"feedback"`
	}
	if answer.Action == "accept" {
		if err := json.Unmarshal(answer.Content, &said); err != nil {
			return nil, &sdk.Error{Kind: sdk.Guest, What: "the answer to the question for approval", Err: err}
		}
	}
	s.feedback = strings.TrimSpace(said.Feedback)
	switch {
	case answer.Action != "accept":
		s.outcome, s.did = "unanswered", "The user has not decided. The plan stays open."
	case said.Decision == "approve" && !slices.Contains(fromUser, answer.Channel):
		s.outcome, s.did = "unanswered", "That approval did not come from the user, who was not asked. The plan stays open: exit again, and let him see it."
	case said.Decision == "approve" && now != shown:
		s.outcome, s.did = "unanswered", "The plan was changed while the user was asked: he has approved another one. It stays open: exit again, so that he sees this one."
	case said.Decision == "approve":
		return s, s.approve(c)
	case s.feedback != "":
		s.outcome, s.did = "edited", "The user wants the plan changed. It stays open: work the feedback in, then exit again."
	default:
		s.outcome, s.did = "rejected", "The user has rejected the plan. It stays open: ask what is wrong with it, change it, then exit again."
	}
	return s, nil
}

// approve ends plan mode.
func (s *session) approve(c *guest.Call) error {
	now, err := c.Now()
	if err != nil {
		return err
	}
	s.outcome, s.did = "approved", "The user has approved the plan. Plan mode is off: begin."
	s.own(now)
	s.plan.status = "approved"
	if err := s.file.write(&s.plan); err != nil {
		s.note("that it is approved could not be written to the plan file: " + err.Error())
	}
	announce(c)
	return s.end(c, now)
}

// digest tells the plan that a user is shown from any other.
func (s *session) digest() string {
	sum := sha256.Sum256([]byte(s.id + "\n" + s.plan.goal + "\n" + s.plan.body))
	return hex.EncodeToString(sum[:])
}

// question is what the user is asked.
func (s *session) question() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan %s is ready for your approval. Until you approve it, plan mode stays on: no tool writes files or uses the network but for research.\n", s.id)
	if s.plan.goal != "" {
		fmt.Fprintf(&b, "Goal: %s\n", s.plan.goal)
	}
	fmt.Fprintf(&b, "File: %s\n\n", s.file.shown())
	body := showable(s.plan.body)
	switch {
	case s.plan.blank():
		b.WriteString("(The plan is empty.)")
	case len(body) > maxAsked:
		fmt.Fprintf(&b, "%s\n\n(The plan goes on: %d bytes more are in its file. Read them before you approve it.)", clip(body, maxAsked), len(body)-maxAsked)
	default:
		b.WriteString(body)
	}
	return b.String()
}

// showable is text without what could make it look like another: control
// characters, overrides of its direction, and gaps that push the rest out of
// sight.
func showable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200e' || r == '\u200f':
			return -1
		}
		return r
	}, text)
	var b strings.Builder
	blank := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\n"); line != "" {
			blank = 0
		} else if blank++; blank > 1 {
			continue
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSpace(b.String())
}
