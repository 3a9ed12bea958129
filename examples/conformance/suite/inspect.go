package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// A look is one command of the inspector and what its output has to contain.
type look struct {
	args []string
	want string
}

var looks = []look{
	{[]string{"--method", "tools/list", "--strict"}, `"json_schema_2020_12_tool"`},
	{[]string{"--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Ann"}, `"Hello, Ann!"`},
	{[]string{"--method", "resources/list"}, `"test://static-binary"`},
	{[]string{"--method", "resources/templates/list"}, `"test://template/{id}/data"`},
	{[]string{"--method", "resources/read", "--uri", "test://template/7/data"}, `Data for ID: 7`},
	{[]string{"--method", "prompts/list"}, `"test_simple_prompt"`},
	{[]string{"--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two"}, `arg1='one', arg2='two'`},
	{[]string{"--method", "skills/list", "--verify"}, `"skill://conformance/references/fixtures.md","status":"verified"`},
}

// eras are how the inspector may open a conversation.
var eras = []string{"legacy", "auto", "modern"}

// inspector runs every look in every era, over HTTP and over pipes.
func inspector(ctx context.Context, t *toolbox, h *house, url, only string) (rows []row) {
	ways := []struct {
		name   string
		target []string
	}{
		{"HTTP", []string{url, "--transport", "http"}},
		{"stdio", append([]string{h.skill, "serve"}, variables(h.env())...)},
	}
	for _, way := range ways {
		for _, era := range eras {
			r := row{about: fmt.Sprintf("inspector: %s, %s", era, way.name)}
			if !strings.Contains(r.about, only) {
				continue
			}
			for _, l := range looks {
				args := append([]string{t.script("@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"}, way.target...)
				args = append(append(args, "--protocol-era", era, "-q", "--format", "json"), l.args...)
				r.try(ctx, t, h, l.want, args)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// variables are the flags that hand on environment variables.
func variables(env []string) (flags []string) {
	for _, v := range env {
		flags = append(flags, "-e", v)
	}
	return flags
}

// try runs the inspector once: it has to end well and to print want.
func (r *row) try(ctx context.Context, t *toolbox, h *house, want string, args []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := command(ctx, h.work, nil, t.node, args...)
	what := strings.Join(args[len(args)-2:], " ")
	switch compact := strings.ReplaceAll(out, `": "`, `":"`); {
	case err != nil:
		r.fail("%s: %v: %s", what, err, clip(out))
	case !strings.Contains(compact, want):
		r.fail("%s: no %s in %s", what, want, clip(out))
	default:
		r.passed++
	}
}

// clients runs the session of clients.mjs with each client, over HTTP and over
// pipes. It prints a line for each thing that it tried.
func clients(ctx context.Context, t *toolbox, h *house, url, only string) (rows []row) {
	for _, way := range []struct{ name, target string }{{"HTTP", url}, {"stdio", h.skill}} {
		for _, kind := range []string{"v1", "v2-legacy", "v2-auto", "v2-modern"} {
			r := row{about: fmt.Sprintf("TypeScript client: %s, %s", kind, way.name)}
			if !strings.Contains(r.about, only) {
				continue
			}
			r.session(ctx, t, h, kind, way.target)
			rows = append(rows, r)
		}
	}
	return rows
}

// sessionSteps is how many things a client tries.
const sessionSteps = 12

func (r *row) session(ctx context.Context, t *toolbox, h *house, kind, target string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := command(ctx, h.work, h.env(), t.node, t.script("../clients.mjs"), kind, target)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ok ") {
			r.passed++
		} else if step, ok := strings.CutPrefix(line, "not ok "); ok {
			r.fail("%s", clip(step))
		}
	}
	if err != nil && r.failed == 0 {
		r.fail("%v: %s", err, clip(out))
	}
	if r.passed+r.failed < sessionSteps {
		r.fail("%d steps, want %d: %s", r.passed+r.failed, sessionSteps, clip(out))
	}
}
