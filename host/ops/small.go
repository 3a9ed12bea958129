package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/sdk"
)

// clock performs "time". The monotonic clock counts from the host's start, so
// that a skill can compare readings of several calls.
func clock(_ context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	now := j.table.deps.Now()
	return reply(struct {
		Unix      int64 `json:"now_unix_ns"`
		Monotonic int64 `json:"monotonic"`
	}{now.UnixNano(), int64(now.Sub(j.table.start))})
}

// secretExists performs "secret.exists". The grant is asked first: a name that
// is not granted is refused whether or not there is such a secret.
func secretExists(_ context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Name string `json:"name"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	if m.Name == "" {
		return nil, invalid("name", "want the name of a secret")
	}
	if err := j.Grant.Check(capability.Access{Kind: capability.Secrets, Verb: capability.Use, Target: m.Name}); err != nil {
		return nil, err
	}
	var secrets egress.Secrets
	if j.Secrets != nil {
		secrets = j.Secrets()
	}
	return reply(struct {
		Exists bool `json:"exists"`
	}{secrets.Has(m.Name)})
}

// invoke performs "invoke". How deep calls may nest, and under which layers
// the child runs, is decided behind Binding.Invoke.
func invoke(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	if m.Tool == "" {
		return nil, invalid("tool", "want the name of a tool")
	}
	if args := bytes.TrimSpace(m.Args); len(args) > 0 && args[0] != '{' {
		return nil, invalid("args", "want a JSON object")
	}
	if err := j.Grant.Check(capability.Access{Kind: capability.Invoke, Verb: capability.Call, Target: m.Tool}); err != nil {
		return nil, err
	}
	if j.Invoke == nil {
		return nil, &sdk.Error{Kind: sdk.Denied, What: "tool " + m.Tool, Hint: "this call may not invoke tools"}
	}
	r, err := j.Invoke(ctx, m.Tool, m.Args)
	if err != nil {
		return nil, passedOn(err, m.Tool)
	}
	return sdk.AppendResult(nil, r)
}

// announce performs "announce". Whether the skill serves the resource, and
// whether it announces too much, is decided behind Binding.Announce.
func announce(_ context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m struct {
		header
		Kind string `json:"kind"`
		URI  string `json:"uri"`
	}
	if err := decode(f, &m, 0); err != nil {
		return nil, err
	}
	switch m.Kind {
	case "tools", "resources", "prompts":
	case "":
		if m.URI == "" {
			return nil, invalid("announcement", "want a kind or a uri")
		}
	default:
		return nil, invalid(fmt.Sprintf("kind %.20q", m.Kind), `want "tools", "resources" or "prompts"`)
	}
	if m.Kind != "" && m.URI != "" {
		return nil, invalid("announcement", "want either a kind or a uri")
	}
	if j.Announce == nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: "nobody listens to announcements"}
	}
	if err := j.Announce(m.Kind, m.URI); err != nil {
		return nil, err
	}
	return reply(struct{}{})
}

// passedOn returns err, with which tool ended or was refused, without what the
// host has put into its words for people: rules, and the places of files.
func passedOn(err error, tool string) error {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return err
	}
	told := &sdk.Error{Kind: e.Kind, Op: e.Op, What: e.What, Hint: e.Hint, Err: e.Err}
	switch {
	case e.Denial != nil:
		told.Denial = bare(e.Denial)
		if told.Denial.Resource == "" { // the call itself
			told.Denial.Resource = tool
		}
		told.Op, told.What = "", told.Denial.Capability+" "+told.Denial.Resource
	case e.Kind == sdk.Denied:
		told.Op, told.What, told.Hint, told.Err = "", "tool "+tool, "", nil
	case e.Kind == sdk.Unavailable, strings.ContainsAny(e.Op, `/\`): // Op says where a rule is written
		told.Op, told.What, told.Hint, told.Err = "", "tool "+tool+" cannot run at present", "", nil
	}
	return told
}
