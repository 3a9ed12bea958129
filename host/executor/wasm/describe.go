package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/wasm/jsonvalue"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// describeTimeout bounds a module's account of itself.
const describeTimeout = 10 * time.Second

// agree makes one run of p without any permission: it must start, and if its
// ABI lets it speak of its tools, it must say what the manifest says.
func (p *program) agree(loading context.Context, s *manifest.Skill) error {
	tools, err := p.describe(loading, s)
	if err != nil || tools == nil {
		return err
	}
	return compare(s, tools)
}

// describe returns the module's own account of its tools, or nil if it gives
// none: it answers with kind NotFound then, or its ABI has no such question.
func (p *program) describe(loading context.Context, s *manifest.Skill) (tools []sdk.Tool, err error) {
	defer func() {
		if r := recover(); r != nil {
			tools, err = nil, bug("wasm.Load", r)
		}
	}()
	ctx, cancel := context.WithTimeout(loading, describeTimeout)
	defer cancel()
	job := executor.Job{
		Input:  sdk.Input{Describe: true, Timeout: describeTimeout},
		Limits: s.Limits,
		Dirs:   executor.Dirs{Tmp: func() (string, error) { return "", errNoTmp }},
		Soft:   ctx,
		Ops:    executor.NoOps{},
		Emit:   func(sdk.Event) {},
	}
	if p.abi == abiCommand {
		return nil, p.starts(ctx, s, job)
	}
	r, err := p.Run(ctx, job)
	switch {
	case err == nil:
	case sdk.KindOf(err) == sdk.NotFound:
		return nil, nil
	case loading.Err() != nil:
		return nil, ended(loading)
	default:
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "wasm.Load", What: fmt.Sprintf("skill %q: %s does not describe itself", s.Name, s.Source), Err: err,
			Hint: "a module without a description answers describe with an error of kind not_found"}
	}
	var d sdk.Description
	if err := json.Unmarshal(r.Structured, &d); err != nil {
		return nil, invalid(s, "its description is not one: "+err.Error(), "see docs/abi.md")
	}
	return append([]sdk.Tool{}, d.Tools...), nil // not nil, however few
}

var errNoTmp = errors.New("a module has no private directory while it is loaded")

// starts checks that the module of a command can be instantiated: its imports
// that are not functions, its segments and its start section are tried out.
func (p *program) starts(ctx context.Context, s *manifest.Skill, job executor.Job) error {
	c := newCall(ctx, p.engine, &job)
	_, _, release, err := c.instantiate(p, p.config)
	release()
	if err != nil {
		return invalid(s, firstLine(c.failure(err).Error()), "")
	}
	return nil
}

// compare checks that the manifest's tools are those that the module has.
func compare(s *manifest.Skill, tools []sdk.Tool) error {
	has := make(map[string]*sdk.Tool, len(tools))
	for i := range tools {
		has[tools[i].Name] = &tools[i]
	}
	var wrong []string
	for i := range s.Tools {
		want := &s.Tools[i].Tool
		t, ok := has[want.Name]
		delete(has, want.Name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("%q is not in the module", want.Name))
		case !jsonvalue.Equal(want.Input, t.Input):
			wrong = append(wrong, fmt.Sprintf("the input schema of %q differs", want.Name))
		case !jsonvalue.Equal(want.Output, t.Output):
			wrong = append(wrong, fmt.Sprintf("the output schema of %q differs", want.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		wrong = append(wrong, fmt.Sprintf("%q is not in the manifest", clip(name)))
	}
	if wrong != nil {
		return invalid(s, "module and manifest disagree: "+strings.Join(wrong[:min(len(wrong), 8)], "; "), "run skill build to write the manifest's tools from the code")
	}
	return nil
}
