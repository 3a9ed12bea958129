package dispatch

import (
	"encoding/json"
	"time"

	"github.com/skillhost/skill/sdk"
)

// addressed is what a call of InvokeSkill answers: which tool it has led to,
// and what that one says.
type addressed struct {
	Kind   string          `json:"kind"` // "tool"
	Skill  string          `json:"skill"`
	Tool   string          `json:"tool"`
	Digest string          `json:"digest"`
	Result json.RawMessage `json:"result,omitempty"` // the tool's structured content
	Denied []denied        `json:"denied,omitempty"`
	Usage  usage           `json:"usage"`
}

// denied is what the tool was refused. By which rule is said to people only.
type denied struct {
	Capability string `json:"capability"`
	Resource   string `json:"resource"`
}

type usage struct {
	Duration int64 `json:"duration_ms"`
}

// answerAddress makes the structured content of a tool that was called through
// an address one that keeps the address's own schema. Instructions do so by
// themselves.
func (r *run) answerAddress(res sdk.Result) (sdk.Result, error) {
	e := r.plan.Entry
	if r.plan.Via == nil || len(res.Questions) > 0 || e.Hidden {
		return res, nil
	}
	out := addressed{Kind: "tool", Skill: e.Skill.Name, Tool: e.Tool.Name, Digest: e.Skill.Home.Digest, Result: res.Structured,
		Usage: usage{time.Since(r.began).Milliseconds()}}
	r.mu.Lock()
	for _, d := range r.denials {
		if d.Denial != nil {
			out.Denied = append(out.Denied, denied{d.Denial.Capability, d.Denial.Resource})
		}
	}
	r.mu.Unlock()
	var err error
	res.Structured, err = json.Marshal(out)
	return res, err
}
