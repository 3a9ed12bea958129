package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// A program is a plugin whose executable is pinned.
type program struct {
	executor     *Executor
	skill        *manifest.Skill
	file         *os.File
	args         []string
	interpreters []string // of a script: the paths of what runs it, links and real ones
	shared       bool     // isolation = "session": a process makes many calls, of its key
	spare        bool     // a process may be started before its call
	gone         bool     // closed; guarded by the pool's mutex
	closeFile    func() error

	agreeing sync.Mutex
	agreed   bool // the manifest says what the plugin says
}

// Close implements io.Closer.
func (p *program) Close() error {
	p.executor.pool.drop(p)
	return p.closeFile()
}

// Run implements executor.Program.
func (p *program) Run(ctx context.Context, j executor.Job) (r sdk.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			r, err = sdk.Result{}, &sdk.Error{Kind: sdk.Internal, Op: "plugin.Run", What: fmt.Sprintf("panic: %v", v), Err: errors.New(string(debug.Stack()))}
		}
	}()
	if j.Soft == nil {
		j.Soft = ctx
	}
	if ctx.Err() != nil {
		return sdk.Result{}, executor.Ended(ctx)
	}
	if err := p.agree(ctx, j.Level); err != nil {
		return sdk.Result{}, err
	}
	pl, err := p.executor.cages.plan(p.skill, j)
	if err != nil {
		return sdk.Result{}, err
	}
	if err := pl.record(j.Grant); err != nil {
		return sdk.Result{}, err
	}
	if note := pl.note(); note != "" {
		j.Emit(sdk.Event{Kind: sdk.EventLog, Level: "warning", Message: note})
	}
	proc, err := p.executor.pool.acquire(ctx, p, pl)
	if err != nil {
		return sdk.Result{}, err
	}
	r, well, err := proc.call(ctx, &j)
	p.executor.pool.release(proc, well)
	if p.spare && !p.shared {
		p.executor.pool.spare(p, pl)
	}
	return pl.explain(r, err)
}
