// Package shell is the built-in plugin of the shell tools: Bash,
// BackgroundBash, ReadBgOutput, ListBgTasks and KillBgTask. It runs commands,
// makes their output fit for a model, and sees to it that nothing that a
// command has started outlives its call.
//
// It confines nothing: the process that it runs in is in a cage already, and
// what a command may touch, the kernel decides. Nor does it keep anything: jobs
// and the logs of their output are the host's.
package shell

import (
	"sync"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

// Tools registers the tools of this plugin with package guest. It is called
// once, by the process that serves them.
func Tools() { (&shell{limit: maxOutput}).register() }

// A shell runs commands.
type shell struct {
	limit int64 // of output of one command, bytes

	mu    sync.Mutex
	roots map[int]bool // the processes that were started here and are not waited for yet
	runs  int          // commands that are being run
	stray reaper
}

// A reaper waits for adopted processes until stop is closed; then it closes done.
type reaper struct{ stop, done chan struct{} }

const (
	maxOutput = 5 << 30 // bytes that one command may write before it is ended

	defaultTimeout = 30 * time.Second
	maxTimeout     = 10 * time.Minute
	defaultJobTime = 30 * time.Minute
	maxJobTime     = 2 * time.Hour

	// lastMoments is what a command has after SIGTERM when its time is over,
	// and what its pipes have after the shell has ended.
	lastMoments = 200 * time.Millisecond
)

func (s *shell) register() {
	acts := guest.Annotations{Destructive: true, OpenWorld: true}
	guest.Tool("Bash", bashAbout, s.bash, guest.Title("Bash"), acts)
	guest.Tool("BackgroundBash", backgroundAbout, s.background, guest.Title("Background bash"), acts)
	guest.Tool("ReadBgOutput", readAbout, s.read, guest.Title("Read background output"), guest.Annotations{ReadOnly: true})
	guest.Tool("ListBgTasks", listAbout, s.list, guest.Title("List background tasks"), guest.Annotations{ReadOnly: true, Idempotent: true})
	guest.Tool("read_output", outputAbout, s.output, guest.Hidden())
	guest.Tool("KillBgTask", killAbout, s.kill, guest.Title("Kill background task"), guest.Annotations{Destructive: true, Idempotent: true})
}
