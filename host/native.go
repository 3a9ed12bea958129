package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/command"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/executor/plugin"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/host/tasks"
	"github.com/skillhost/skill/sdk"
)

// nativeRuntimes makes the rooms in which native processes run. Nothing is
// started and nothing is tried before the first call needs it.
func (h *Host) nativeRuntimes() map[string]executor.Executor {
	h.launcher = sandbox.New()
	o := native.Options{
		Starter: h.launcher,
		Report:  sandbox.Probe,
		Serve:   func(l net.Listener) native.Exit { return h.broker.Serve(l) },
		Homes:   h.privateHome,
		Owner:   h.owner,
		Tmp:     h.Config.Paths.Native(),
	}
	commands := command.New(command.Options{Options: o})
	cages := native.New(o)
	plugins := plugin.New(plugin.Options{Cages: cages, Self: self})
	h.natives = []io.Closer{plugins, commands, cages, h.launcher} // in the order in which they are closed
	return map[string]executor.Executor{"plugin": plugins, "exec": commands}
}

// self opens this very program, which holds the built-in plugins.
func self() (*os.File, []string, error) {
	path := "/proc/self/exe" // also when the file has been replaced since
	if _, err := os.Lstat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			return nil, nil, err
		}
	}
	f, err := os.Open(path)
	return f, []string{"skill", "plugin"}, err
}

// privateHome makes the home of a skill's programs: one for each caller,
// workspace and skill, so that what one leaves there no other finds.
func (h *Host) privateHome(scope sdk.Scope, owner string) (string, error) {
	sum := sha256.Sum256([]byte(strings.Join([]string{scope.Caller, scope.Workspace, owner}, "\x00")))
	dir := filepath.Join(h.Config.Paths.Homes(), hex.EncodeToString(sum[:16]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &sdk.Error{Kind: sdk.Unavailable, Op: "host", What: "the private home of a skill", Err: err}
	}
	return dir, nil
}

// newTasks makes the room of what outlives a reply.
func (h *Host) newTasks() *tasks.Tasks {
	return tasks.New(tasks.Options{
		Store: h.store,
		Dir:   h.Config.Paths.Outputs(),
		Boots: h.boots,
	})
}

// sweepTasks removes old jobs and outputs, now and every hour.
func (h *Host) sweepTasks() {
	hour := time.NewTicker(time.Hour)
	defer hour.Stop()
	for {
		if err := errors.Join(h.tasks.Sweep(h.ctx), h.errands.Sweep(h.ctx)); err != nil && h.ctx.Err() == nil {
			h.say(err)
		}
		select {
		case <-h.ctx.Done():
			return
		case <-hour.C:
		}
	}
}
