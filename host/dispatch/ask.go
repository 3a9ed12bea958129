package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// forClient is the access that a question amounts to which is not for the user:
// what a form or a web address asks, the user sees and answers, so they need no
// permission. A kind that is added later needs one.
func forClient(k sdk.QuestionKind) (a capability.Access, ok bool) {
	if k == sdk.QuestionForm || k == sdk.QuestionURL {
		return a, false
	}
	return capability.Access{Kind: capability.Client, Verb: capability.Ask, Target: string(k)}, true
}

// mayAsk refuses questions that the grant of r does not cover. It is asked where
// a guest's questions become the call's, which is on every way in.
func (r *run) mayAsk(questions map[string]sdk.Question) error {
	for _, id := range slices.Sorted(maps.Keys(questions)) { // the same questions give the same error
		if a, ok := forClient(questions[id].Kind); ok {
			if err := r.grant.Check(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayHear refuses the answer to a question that p would not let the guest ask
// any more: the operator may have changed his mind since it was asked.
func (p *Plan) mayHear(q sdk.Question) error {
	a, ok := forClient(q.Kind)
	if !ok {
		return nil
	}
	return capability.NewGrant(p.Layers, nil).Check(a)
}

// abilities are those of the client c that a guest under g can use: of others it
// is not told, so that it does without them.
func abilities(c sdk.Client, g capability.Grant) sdk.Client {
	usable := func(kind sdk.QuestionKind) bool {
		a, _ := forClient(kind)
		return g.Allows(a)
	}
	c.Sampling = c.Sampling && usable(sdk.QuestionSampling)
	c.Roots = c.Roots && usable(sdk.QuestionRoots)
	return c
}

// heard is what the record says of the answers that a call brings: what the user
// did, and which way that came. The answers themselves reach the guest only.
func (p *Plan) heard() string {
	if p.Call.State == "" {
		return ""
	}
	var all []string
	for _, id := range slices.Sorted(maps.Keys(p.Call.Answers)) {
		if a, ok := p.answer.answers[id]; ok {
			all = append(all, fmt.Sprintf("%.40q: %s by %s", id, a.Action, cmp.Or(a.Channel, "unknown")))
		}
	}
	if all == nil {
		return ""
	}
	return "answer to " + strings.Join(all, ", ")
}
