package sandbox

import (
	"os"
	"sync"

	"github.com/skillhost/skill/host/sandbox/stage"
	"github.com/skillhost/skill/host/sandbox/view"
)

// stageEnv keeps the Go runtime of the stage from what it does for programs
// that run longer, such as reading the cgroup's limits.
var stageEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// DataAllowance is added to a memory limit, bytes, that only RLIMIT_DATA holds.
// That counts what a process may write to, touched or not: 45 MB for a Go
// program that does nothing, 105 MB if it is linked with the C library, and the
// 8 MiB of each further C thread's stack.
const DataAllowance = 128 << 20

// minPidMax is the lowest kernel.pid_max that the kernel accepts.
const minPidMax = 301

func specOf(c *Cage, p *Program, grouped bool) *stage.Spec {
	s := &stage.Spec{Serves: c.Serves, Dir: p.Dir, Args: p.Args, Env: p.Env,
		Processes: uint64(c.Limits.Processes), FileSize: uint64(c.Limits.FileSize), Files: uint64(c.Limits.Files)}
	if !grouped {
		s.Memory = uint64(c.Limits.Memory) + DataAllowance
	}
	if p.Init {
		s.Flags |= stage.Init
	}
	if c.Network == Proxy {
		s.Flags |= stage.Proxy
	}
	if c.Nest {
		s.Flags |= stage.Nest
	}
	switch c.Level {
	case Strict:
		s.Flags |= stage.Namespaces | stage.Restrict
		mountsOf(&c.View, s)
		rulesOf(&c.View, s)
		if os.Geteuid() == 0 && !grouped && pidMaxIsPrivate() {
			s.PidMax = max(minPidMax, s.Processes)
		}
	case Landlock:
		s.Flags |= stage.Restrict
		rulesOf(&c.View, s)
	}
	if c.Level != None {
		s.Filter = filter(c)
	}
	if c.Level != Strict { // where the user's other processes count as well
		s.Processes += tasksOf(os.Geteuid())
	}
	return s
}

// filter returns the seccomp filter of a cage.
func filter(c *Cage) string {
	m := stage.Mode{Serves: c.Serves != "", Proxy: c.Network == Proxy, Nest: c.Nest}
	code, ok := filters.Load(m)
	if !ok {
		code, _ = filters.LoadOrStore(m, stage.Filter(m))
	}
	return code.(string)
}

// filters are those that were needed so far, by their mode.
var filters sync.Map

// mountsOf says mounts and links in the stage's words.
func mountsOf(v *view.View, s *stage.Spec) {
	for _, m := range v.Mounts {
		s.Mounts = append(s.Mounts, stage.Mount{Path: m.Path, Source: m.Source, Kind: uint8(m.Kind), Maybe: m.Maybe})
	}
	for _, l := range v.Links {
		s.Links = append(s.Links, stage.Link(l))
	}
}

// rulesOf says rule sets in the stage's words.
func rulesOf(v *view.View, s *stage.Spec) {
	for _, r := range v.Rulesets {
		set := stage.Ruleset{Name: r.Name, Handles: uint8(r.Handles), Rules: make([]stage.Rule, len(r.Rules))}
		for i, rule := range r.Rules {
			set.Rules[i] = stage.Rule{Path: rule.Path, Rights: uint8(rule.Rights), Maybe: rule.Maybe}
		}
		s.Rulesets = append(s.Rulesets, set)
	}
}

// Both packages number kinds and rights alike: the arrays below have no other
// length.
var (
	_ = [1]struct{}{}[view.ReadOnly-stage.ReadOnly|view.Writable-stage.Writable|view.Hidden-stage.Hidden|view.Pinned-stage.Pinned]
	_ = [1]struct{}{}[view.Read-stage.Read|view.Write-stage.Write|view.Exec-stage.Exec|view.Socket-stage.Socket]
)
