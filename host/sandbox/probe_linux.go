package sandbox

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/stage"
	"github.com/skillhost/skill/host/sandbox/view"
)

// Probe reports what this machine offers. It asks by trying: a program in a
// cage of each level, from the strongest, tries to leave it, and a level counts
// only if that program was denied all it tried. The answer is kept.
func Probe() Report { return probed() }

var probed = sync.OnceValue(probe)

// maxTrial bounds one trial, which takes some milliseconds.
const maxTrial = 10 * time.Second

func probe() Report {
	l := New()
	defer l.Close()
	var r Report
	abi := stage.LandlockABI()
	if abi < stage.MinLandlock {
		r.Missing = append(r.Missing, "Landlock ABI "+strconv.Itoa(stage.MinLandlock)+" (Linux 6.12): this kernel offers "+strconv.Itoa(abi))
	}
	levels := []Level{Strict, Landlock, None}
	if os.Geteuid() == 0 {
		levels = levels[:1] // see Start
	}
	for _, level := range levels {
		if err := try(l, level); err != nil {
			r.Missing = append(r.Missing, "level "+string(level)+": "+err.Error())
			continue
		}
		r.Level = level
		break
	}
	if r.Level == "" && os.Geteuid() == 0 {
		r.Missing = append(r.Missing, "lower levels: they are refused to root")
	}
	switch r.Level {
	case Strict:
		r.Means = append(r.Means, "namespaces (user, network, PID, mount, IPC)", "private root")
		fallthrough
	case Landlock:
		r.Means = append(r.Means, "Landlock ABI "+strconv.Itoa(abi), "seccomp")
	}
	r.Resource = l.resources(r.Level)
	return r
}

// resources says what bounds memory and the number of processes.
func (s *spawner) resources(level Level) []string {
	switch {
	case level == "":
		return nil
	case s.groups != nil && s.groups.limits:
		return []string{"cgroup v2: memory and processes of each cage together"}
	}
	r := []string{"rlimits: memory of each process (RLIMIT_DATA)"}
	switch {
	case level != Strict:
		return append(r, "rlimits: processes of the user together (RLIMIT_NPROC)")
	case os.Geteuid() != 0:
		return append(r, "rlimits: processes of each cage together (RLIMIT_NPROC)")
	case pidMaxIsPrivate():
		return append(r, "kernel.pid_max: processes of each cage together, at least "+strconv.Itoa(minPidMax))
	}
	return append(r, "processes are not bounded: root is exempt from RLIMIT_NPROC")
}

// unbounded is the memory limit of a trial, which is not about memory: the
// host's binary may be one that needs much, such as one with a race detector.
const unbounded = 1 << 60

// try runs one trial and returns why the level does not hold.
func try(l *Launcher, level Level) error {
	ctx, cancel := context.WithTimeout(context.Background(), maxTrial)
	defer cancel()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	outside := "/etc"
	if _, err := os.Stat(outside); err != nil {
		outside = "/sys"
	}
	p, err := l.Start(ctx, Cage{Level: level, View: loaderOnly(), Limits: Limits{Memory: unbounded}}, Program{
		File: self, Args: []string{stage.Trial, string(level), strconv.Itoa(os.Getpid()), outside}, Env: []string{"GOMAXPROCS=1"}})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	s, err := p.Wait()
	if err == nil && s.Exit != stage.TrialOK {
		err = trialError(level, s)
	}
	return err
}

type trialFailure string

func (f trialFailure) Error() string { return string(f) }

func trialError(level Level, s State) error {
	if s.Signal != "" {
		return trialFailure("the trial was ended by " + s.Signal)
	}
	return trialFailure("a trial was not denied: " + stage.Attempt(string(level), s.Exit))
}

// loaderOnly shows a program its loader and libraries, and nothing else.
func loaderOnly() (v view.View) {
	set := view.Ruleset{Name: "trial", Handles: view.Read | view.Write | view.Exec | view.Socket}
	for _, p := range []string{"/usr", "/lib", "/lib64"} {
		target, err := os.Readlink(p)
		var st unix.Stat_t
		switch {
		case err == nil:
			v.Links = append(v.Links, view.Link{Path: p, Target: target})
		case unix.Stat(p, &st) == nil:
			v.Mounts = append(v.Mounts, view.Mount{Path: p, Kind: view.ReadOnly})
			set.Rules = append(set.Rules, view.Rule{Path: p, Rights: view.Read | view.Exec})
		}
	}
	v.Rulesets = []view.Ruleset{set}
	return v
}
