package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/wasm/linear"
	"github.com/skillhost/skill/host/executor/wasm/meter"
	"github.com/skillhost/skill/host/executor/wasm/rootfs"
	"github.com/skillhost/skill/sdk"
)

// workspace is the guest's working directory. It is the same in every call,
// because a guest may capture it before it knows its call.
const workspace = "/workspace"

// A call is one run of a program. All of it but handles belongs to the
// goroutine that runs the guest.
type call struct {
	ctx     context.Context // done at the hard deadline
	job     *executor.Job
	handles handles
	memory  linear.Memory
	stderr  stream
	stdout  stream
	answer  answer
	output  output
	stopped error // why the host stopped the guest, or nil
	ticker  api.MutableGlobal
}

// An answer is what a guest replied.
type answer struct {
	given  bool
	result sdk.Result
	err    error
}

// output counts what a guest says.
type output struct {
	bytes  int64 // against limits.output
	events int   // progress, partial content and logs
	full   bool  // an emit did not fit
}

// callContext hands the call to the host's functions.
type callContext struct {
	context.Context
	call *call
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

func newCall(ctx context.Context, e *engine, j *executor.Job) *call {
	c := &call{ctx: ctx, job: j, memory: linear.Memory{Spare: &e.spare, Limit: uint64(max(j.Limits.Memory, 0))}}
	if j.Soft == nil {
		j.Soft = ctx
	}
	c.handles.init(ctx, j)
	c.stdout = stream{call: c, level: "info"}
	c.stderr = stream{call: c, level: "warning"}
	return c
}

// instantiate makes the guest's instance and runs its start section. release
// closes it; the guest must not be running then.
func (c *call) instantiate(p *program, config wazero.ModuleConfig) (mod api.Module, ctx context.Context, release func(), err error) {
	files := rootfs.New(c.job.Grant, c.job.Dirs)
	mount := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(&fence{FS: files, check: c.check}, "/")
	config = config.WithFSConfig(mount).WithStderr(&c.stderr).WithNanosleep(c.sleep)
	allocate := func(_, _ uint64) experimental.LinearMemory { return &c.memory }
	ctx = &callContext{experimental.WithMemoryAllocator(c.ctx, experimental.MemoryAllocatorFunc(allocate)), c}
	mod, err = p.engine.runtime.InstantiateModule(ctx, p.compiled, config)
	release = func() {
		if mod != nil {
			_ = mod.Close(context.Background()) // closes the guest's files, whose errors the guest did not wait for
		}
		_ = files.Close()
	}
	return mod, ctx, release, err
}

// check stops the guest if the call is past its hard deadline.
func (c *call) check() {
	if c.ctx.Err() != nil {
		c.stop(executor.Ended(c.ctx))
	}
}

// stop ends the guest at once, from inside a host function: it unwinds the
// guest's stack. The instance is closed later, when nothing runs in it.
func (c *call) stop(why error) {
	if c.stopped == nil {
		c.stopped = why
	}
	panic(sys.NewExitError(1)) // recovered by wazero; failure looks at c.stopped first
}

// tick is called by instrumented code whenever it has used up its fuel: the
// one place where a guest that computes and calls nothing can be stopped.
// Being a Go call, it also lets the garbage collector stop the world.
func tick(ctx context.Context, mod api.Module, _ []uint64) {
	c := callOf(ctx)
	c.check()
	if c.ticker == nil {
		c.ticker = mod.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
	}
	c.ticker.Set(fuel)
}

// sleep is the guest's nanosleep.
func (c *call) sleep(ns int64) {
	c.check()
	if ns <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
		c.check()
	}
}

// spend counts n bytes of output against the limit.
func (c *call) spend(n int) {
	if c.output.bytes += int64(n); c.output.bytes > c.job.Limits.Output {
		c.stop(c.overflow())
	}
}

func (c *call) overflow() error {
	return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool's output exceeds %d bytes", c.job.Limits.Output), Hint: "limits.output in its manifest"}
}

// failure turns an error of wazero into what the caller is told.
func (c *call) failure(err error) error {
	if c.stopped != nil {
		return c.stopped
	}
	what := firstLine(err.Error())
	var exit *sys.ExitError
	switch {
	case c.memory.Refused:
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool needs more memory than %d bytes", c.job.Limits.Memory), Err: c.last(), Hint: "limits.memory in its manifest"}
	case errors.As(err, &exit):
		what = fmt.Sprintf("the tool exited with status %d", exit.ExitCode())
	case strings.HasPrefix(strings.TrimPrefix(what, "wasm error: "), "stack overflow"):
		return &sdk.Error{Kind: sdk.Limit, What: "the tool's call stack is full: it recurses too deeply", Err: c.last()}
	case strings.HasSuffix(what, "(recovered by wazero)"):
		return &sdk.Error{Kind: sdk.Internal, Op: "wasm.Run", What: "host function: " + what}
	default:
		what = "the tool trapped: " + strings.TrimPrefix(what, "wasm error: ")
	}
	return &sdk.Error{Kind: sdk.Guest, What: what, Err: c.last()}
}

// last is what the guest wrote to stderr last, as the cause of an error.
func (c *call) last() error {
	if tail := c.stderr.last(); tail != "" {
		return errors.New(tail)
	}
	return nil
}
