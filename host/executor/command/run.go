package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest/template"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// Run runs the command of one tool. A program that fails, by its exit status or
// by a signal, gives a Result that says so; that the host stopped it is an
// error, with the end of what it had written until then.
func (p *program) Run(ctx context.Context, j executor.Job) (sdk.Result, error) {
	t, ok := p.tools[j.Input.Tool]
	if !ok {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Internal, Op: "command.Run", What: fmt.Sprintf("skill %q has no tool %q", p.skill.Name, j.Input.Tool)}
	}
	if ctx.Err() != nil {
		return sdk.Result{}, executor.Ended(ctx)
	}
	dirs := template.Dirs{Workspace: j.Dirs.Workspace, SkillDir: j.Dirs.Skill}
	argv, err := t.command.Argv(j.Input.Args, dirs)
	if err != nil {
		return sdk.Result{}, err
	}
	stdin, piped, err := t.command.Stdin(j.Input.Args, dirs)
	if err != nil {
		return sdk.Result{}, err
	}
	if err := t.granted(j.Grant); err != nil {
		return sdk.Result{}, err
	}
	file, err := t.file.open()
	if err != nil {
		return sdk.Result{}, err
	}
	defer file.Close()
	plan, err := p.cages.Plan(p.skill, j)
	if err != nil {
		return sdk.Result{}, err
	}
	if err := native.Record(j.Grant, plan); err != nil {
		return sdk.Result{}, err
	}
	if plan.Note != "" {
		j.Emit(sdk.Event{Kind: sdk.EventLog, Level: "warning", Message: plan.Note})
	}
	r := &run{tool: t, job: &j, cages: p.cages, plan: plan, door: p.open(&j, plan)}
	// Without a PID namespace to end, it is the program's process group that is
	// ended: the program has to lead it.
	own := plan.Level == sandbox.Strict
	result, err := r.do(ctx, sandbox.Program{File: file, Args: argv, Env: r.environ(), Init: own}, stdin, piped)
	if lost := r.door.close(); err == nil && lost != nil {
		j.Emit(sdk.Event{Kind: sdk.EventLog, Level: "warning", Message: "the call's way out was not closed: " + lost.Error()})
	}
	return native.Explain(plan, result, err)
}

// environ is what the program is told beside what its grant lets through.
func (r *run) environ() []string {
	env := r.door.environ()
	if set := r.job.Input.Settings; len(set) > 0 {
		env = append(env, executor.SettingsEnv+"="+string(set))
	}
	return env
}

// granted asks the grant about the program, under the name that the manifest
// has for it and, as far as denials go, under that of its file.
func (t tool) granted(g capability.Grant) error {
	a := capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: t.command.Program}
	if err := g.Check(a); err != nil {
		return err
	}
	return g.CheckAlias(a, filepath.ToSlash(t.file.path))
}

// A run is one program on its way.
type run struct {
	tool  tool
	job   *executor.Job
	cages *native.Maker
	plan  native.Plan
	door  *door
	out   stream
	err   stream
}

// do starts the program, waits for its end and says what came of it.
func (r *run) do(ctx context.Context, program sandbox.Program, stdin string, piped bool) (sdk.Result, error) {
	pipes, err := r.pipes(&program, piped)
	if err != nil {
		pipes.close()
		return sdk.Result{}, err
	}
	guest, err := r.cages.Start(ctx, r.plan, program)
	pipes.handedOver()
	if err != nil {
		pipes.close()
		if ctx.Err() != nil {
			return sdk.Result{}, executor.Ended(ctx)
		}
		return sdk.Result{}, err
	}
	process := guest.Process()
	if err := r.door.keep(process.Listener()); err != nil {
		pipes.close()
		return sdk.Result{}, errors.Join(err, guest.Close())
	}
	r.out, r.err = stream{most: r.job.Limits.Output, full: process.Kill}, stream{most: maxStderr, tail: true}
	done := pipes.serve(&r.out, &r.err, stdin)
	stopSoft := r.ask(process)
	stopHard := context.AfterFunc(ctx, process.Kill)
	state, waitErr := process.Wait()
	stopSoft()
	stopHard()
	pipes.finish(done)
	closeErr := guest.Close()
	switch {
	case ctx.Err() != nil:
		return sdk.Result{}, r.stopped(executor.Ended(ctx))
	case waitErr != nil:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Unavailable, Op: "command.Run", What: "how the program ended is not known", Err: waitErr}
	}
	result, err := r.result(state)
	if err == nil && closeErr != nil {
		r.job.Emit(sdk.Event{Kind: sdk.EventLog, Level: "warning", Message: "the private directories of the call are not all removed: " + closeErr.Error()})
	}
	return result, err
}

// ask has the program asked to end when the soft deadline is there.
func (r *run) ask(process sandbox.Process) (stop func() bool) {
	soft := r.job.Soft
	if soft == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(soft, func() {
		_ = process.Signal(signalOf(soft)) // it may have ended
	})
}

// signalOf is the signal that says why soft is done.
func signalOf(soft context.Context) os.Signal {
	var stop *sdk.Stop
	if errors.As(context.Cause(soft), &stop) {
		switch stop.Signal {
		case "INT":
			return syscall.SIGINT
		case "HUP":
			return syscall.SIGHUP
		}
	}
	return syscall.SIGTERM
}

// pipes are the host's ends of the program's standard streams.
type pipes struct {
	out, err *os.File // to read
	in       *os.File // to write; nil: the program reads nothing
	theirs   []*os.File
}

// pipes makes them and puts the other ends into program.
func (r *run) pipes(program *sandbox.Program, stdin bool) (p pipes, err error) {
	fail := func(err error) (pipes, error) {
		return p, &sdk.Error{Kind: sdk.Unavailable, Op: "command.Run", What: "pipe", Err: err}
	}
	if p.out, program.Out, err = os.Pipe(); err != nil {
		return fail(err)
	}
	p.theirs = append(p.theirs, program.Out)
	if p.err, program.Err, err = os.Pipe(); err != nil {
		return fail(err)
	}
	p.theirs = append(p.theirs, program.Err)
	if stdin {
		if program.Stdin, p.in, err = os.Pipe(); err != nil {
			return fail(err)
		}
		p.theirs = append(p.theirs, program.Stdin)
	}
	return p, nil
}

// handedOver closes the program's ends.
func (p *pipes) handedOver() {
	for _, f := range p.theirs {
		f.Close()
	}
	p.theirs = nil
}

func (p *pipes) close() {
	p.handedOver()
	for _, f := range []*os.File{p.out, p.err, p.in} {
		if f != nil {
			f.Close()
		}
	}
}

// serve moves what the program reads and writes. done gets one value for each
// stream that is over.
func (p *pipes) serve(out, err *stream, stdin string) (done chan struct{}) {
	done = make(chan struct{}, 3)
	read := func(s *stream, f *os.File) {
		_, _ = io.Copy(s, f) // it ends with the program, or at the deadline of finish
		done <- struct{}{}
	}
	go read(out, p.out)
	go read(err, p.err)
	go func() {
		if p.in != nil {
			_, _ = io.WriteString(p.in, stdin) // the program need not read it all
			p.in.Close()
		}
		done <- struct{}{}
	}()
	return done
}

// linger is how long the streams of a program that has ended may stay open: as
// long as it takes to read what is in them.
const linger = 2 * time.Second

// finish waits for the streams and closes them.
func (p *pipes) finish(done chan struct{}) {
	end := time.Now().Add(linger)
	_ = p.out.SetReadDeadline(end) // a pipe has deadlines wherever programs are run
	_ = p.err.SetReadDeadline(end)
	if p.in != nil {
		_ = p.in.SetWriteDeadline(time.Now())
	}
	for range 3 {
		<-done
	}
	p.close()
}
