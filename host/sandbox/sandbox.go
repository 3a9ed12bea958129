// Package sandbox starts native processes that can reach nothing but what they
// are given, and says how well this machine can hold them to it. It knows no
// tools, no manifests and no policies: a Cage is a value that others make.
//
// On Linux the cage is made by a stage of this very binary (package stage),
// between the fork and the program: namespaces, a private root, Landlock and
// seccomp. docs/security.md says what each Level promises.
package sandbox

import (
	"net"
	"os"
	"runtime"

	"github.com/skillhost/skill/host/sandbox/view"
)

// A Level says how well a process is confined.
type Level string

// The levels, from the strongest.
const (
	Strict   Level = "strict"   // Linux: namespaces, private root, Landlock, seccomp
	Landlock Level = "landlock" // Linux: Landlock and seccomp only; macOS: a seatbelt profile
	None     Level = "none"     // resource limits only
)

// Supported says whether there is a cage of any level for this system.
const Supported = runtime.GOOS == "linux" || runtime.GOOS == "darwin"

// Covers reports whether a machine that offers l satisfies who requires at
// least want. An unknown level covers nothing and is covered by nothing.
func (l Level) Covers(want Level) bool {
	rank := map[Level]int{Strict: 3, Landlock: 2, None: 1}
	return rank[want] > 0 && rank[l] >= rank[want]
}

// A Report says what this machine offers.
type Report struct {
	Level    Level    // the best that works here; "" if native processes are refused
	Means    []string // what it is made of: "user namespace", "landlock ABI 7", "seccomp" …
	Missing  []string // what a better level lacks, each with the reason
	Resource []string // how memory and processes are bounded: "cgroup v2 …" or "rlimits …"
}

// A Network is the way out that a process has.
type Network uint8

// The networks. Neither has any other route, family or socket.
const (
	NoNetwork Network = iota // no sockets but pairs, and those of Cage.Serves
	Proxy                    // TCP to a listener inside, which the host serves: Process.Listener; and within the cage
)

// A Cage is what a process is confined to. The zero Cage is not usable: a
// level must be chosen.
type Cage struct {
	Level   Level
	View    view.View
	Network Network
	Serves  string // a directory of View in which the process may make Unix sockets and accept on them, or ""; nobody connects to one from inside
	Limits  Limits
	Nest    bool // level Strict only: programs may make user, PID and network namespaces of their own, as the sandbox of a browser does
}

// Limits bound the resources of a process and its children. 0 is the default.
type Limits struct {
	Memory    int64 // bytes: of all processes together where cgroup v2 is to be had, else of each
	Processes int   // with threads
	FileSize  int64 // bytes of one file that is written
	Files     int   // open at once, in one process
}

// A Program is what to run.
type Program struct {
	File  *os.File // the executable, opened and verified by the caller: it is executed by this descriptor
	Args  []string // with the program's name first
	Env   []string // all of it: nothing is inherited
	Dir   string   // of the private root
	Init  bool     // the stage stays as process 1 of the cage, reaps orphans and passes signals on: for programs that are not written to be process 1
	Stdin *os.File // nil is /dev/null; the host's own standard streams are never inherited
	Out   *os.File // nil is /dev/null
	Err   *os.File // nil is /dev/null
}

// A State is how a process ended.
type State struct {
	Exit   int    // the exit status; -1 if a signal ended it
	Signal string // such as "SIGKILL", or ""
	OOM    bool   // the memory limit ended it, as far as that is known
}

// A Process runs in a cage. All processes of the cage end with it.
type Process interface {
	Pid() int               // on the host; with Program.Init the stage's
	Level() Level           // of its cage
	Listener() net.Listener // of Network Proxy, inside of the cage; else nil
	Signal(os.Signal) error // to the program
	Kill()                  // ends the cage; idempotent
	Done() <-chan struct{}  // closed when the cage has ended
	Wait() (State, error)   // blocks until Done
}
