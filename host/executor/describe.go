package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skillhost/skill/host/executor/jsonvalue"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// DescribeTimeout bounds a guest's account of itself.
const DescribeTimeout = 10 * time.Second

// Describe asks a guest of s for its own account of its tools: run makes a run
// of the Input that says so. The answer is nil if the guest gives none: it
// answers with kind NotFound then. op is for messages.
func Describe(loading context.Context, op string, s *manifest.Skill, run func(context.Context, sdk.Input) (sdk.Result, error)) ([]sdk.Tool, error) {
	ctx, cancel := context.WithTimeout(loading, DescribeTimeout)
	defer cancel()
	r, err := run(ctx, sdk.Input{Describe: true, Timeout: DescribeTimeout})
	switch {
	case err == nil:
	case sdk.KindOf(err) == sdk.NotFound:
		return nil, nil
	case loading.Err() != nil:
		return nil, Ended(loading)
	case sdk.KindOf(err) == sdk.Denied || sdk.KindOf(err) == sdk.Unavailable: // it was not run, and that is no fault of its own
		return nil, err
	default:
		hint := "a guest without a description answers describe with an error of kind not_found"
		if e := (*sdk.Error)(nil); errors.As(err, &e) && e.Hint != "" {
			hint = "" // it has a better one
		}
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: op, What: fmt.Sprintf("skill %q: %s does not describe itself", s.Name, s.Source), Err: err, Hint: hint}
	}
	var d sdk.Description
	if err := json.Unmarshal(r.Structured, &d); err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: op, What: fmt.Sprintf("skill %q: %s: its description is not one: %v", s.Name, s.Source, err), Hint: "see docs/abi.md"}
	}
	return append([]sdk.Tool{}, d.Tools...), nil // not nil, however few
}

// Agree checks that the tools of s are those that its guest says it has.
func Agree(op string, s *manifest.Skill, tools []sdk.Tool) error {
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
		case t.Hidden && !want.Hidden:
			wrong = append(wrong, fmt.Sprintf("%q is hidden in the module only", want.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		wrong = append(wrong, fmt.Sprintf("%q is not in the manifest", clip(name)))
	}
	if wrong == nil {
		return nil
	}
	return &sdk.Error{Kind: sdk.Invalid, Op: op,
		What: fmt.Sprintf("skill %q: %s: module and manifest disagree: %s", s.Name, s.Source, strings.Join(wrong[:min(len(wrong), 8)], "; ")),
		Hint: "run skill build to write the manifest's tools from the code"}
}

// clip bounds a name that a guest chose.
func clip(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	n := most
	for !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n] + "…"
}
