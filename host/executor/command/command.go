// Package command runs skills whose tools are programs of this machine: "git",
// "/usr/bin/jq". A tool's manifest says which program and which words it is
// given; what runs is the very file that was found when the skill was loaded,
// in a cage of its own for each call, without a shell.
//
// It does not know what a program does, how cages are made, or who decided what
// is granted. A program that can be told to run others (git, find, tar) is as
// good as a shell: the cage is the boundary, and the list of programs is only
// the first fence before it.
package command

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/manifest/template"
	"github.com/skillhost/skill/sdk"
)

// Options are what an Executor needs: those of the cages that it makes. Serve
// is called before a cage is there, on a listener that accepts nothing until then.
type Options struct {
	native.Options
}

// An Executor runs commands.
type Executor struct {
	cages *native.Maker
	serve func(net.Listener) native.Exit
}

var (
	_ executor.Executor = (*Executor)(nil)
	_ executor.Fixed    = (*Executor)(nil)
)

// New returns an Executor. It starts nothing yet.
func New(o Options) *Executor {
	x := &Executor{serve: o.Serve}
	if x.serve != nil {
		o.Serve = func(l net.Listener) native.Exit { return hallway{l} }
	}
	x.cages = native.New(o.Options)
	return x
}

// Close ends all programs and returns when nothing of them is left. It is
// idempotent.
func (x *Executor) Close() error { return x.cages.Close() }

// Enforces names what the cage of a program holds it to. A program is handed no
// secrets and has nothing to invoke tools with.
func (x *Executor) Enforces() []capability.Kind {
	return []capability.Kind{capability.Network, capability.Filesystem, capability.Exec, capability.Env}
}

// Fixed says that the kernel holds a run to the rules that it began with.
func (x *Executor) Fixed() {}

// Load finds the programs of the tools of s and notes what they are. The error
// has kind Unavailable if one is not there, and Invalid if it is not fit to be
// run.
func (x *Executor) Load(_ context.Context, s *manifest.Skill) (executor.Program, error) {
	if s.Sandbox.Isolation == "session" {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "command.Load", What: fmt.Sprintf("skill %q: isolation = %q is not available to commands", s.Name, s.Sandbox.Isolation),
			Hint: `every call starts its program: use "call"`}
	}
	p := &program{cages: x.cages, serve: x.serve, skill: s, tools: map[string]tool{}}
	files := map[string]*binary{} // by name as it is written
	for _, t := range s.Tools {
		if t.Command == nil {
			return nil, errors.Join(&sdk.Error{Kind: sdk.Internal, Op: "command.Load", What: fmt.Sprintf("tool %q of skill %q has no command", t.Name, s.Name)}, p.Close())
		}
		b := files[t.Command.Program]
		if b == nil {
			var err error
			if b, err = find(t.Command.Program, searchPath); err != nil {
				return nil, errors.Join(fmt.Errorf("skill %q: %w", s.Name, err), p.Close())
			}
			files[t.Command.Program] = b
			p.files = append(p.files, b)
		}
		p.tools[t.Name] = tool{command: t.Command, file: b, json: t.Output != nil}
	}
	return p, nil
}

// A program is a loaded skill.
type program struct {
	cages *native.Maker
	serve func(net.Listener) native.Exit
	skill *manifest.Skill
	tools map[string]tool
	files []*binary
}

// A tool is one command and the file that it runs.
type tool struct {
	command *template.Command
	file    *binary
	json    bool // its output is a structured result
}

// Close lets go of the files.
func (p *program) Close() error {
	var errs []error
	for _, b := range p.files {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}
