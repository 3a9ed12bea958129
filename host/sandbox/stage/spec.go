// Package stage is what runs between the fork of a native process and its
// program: it takes everything away from itself that the cage does not have,
// then executes the program. The host's own binary is re-executed for it under
// the name Name; an init function recognises that and never returns, so that
// it runs before the rest of the binary is initialised (docs/adr).
//
// It knows what a Spec says and nothing else: no policy, no tools, no host. It
// trusts the Spec and nothing that it finds in the file system. And it imports
// next to nothing: Go initialises packages in the order of their names, each as
// soon as what it imports is, so that whatever is imported here for no other
// package's sake lets the rest of the binary go first.
package stage

import "errors"

// Name is the name under which the host's binary is the stage, Trial that
// under which it is a program that tries to leave its cage: it exits with
// TrialOK if all that was claimed is denied.
const (
	Name    = "skill-sandbox-stage"
	Trial   = "skill-sandbox-trial"
	TrialOK = 42
)

// The descriptors that the stage is started with, besides the program's own
// standard streams.
const (
	SpecFD    = 3 // a sealed memfd that holds an encoded Spec
	StatusFD  = 4 // a Unix socket pair of type SOCK_SEQPACKET; the messages below
	ProgramFD = 5 // what to execute
)

// The messages on StatusFD, by their first byte.
//
// The stage's Ready says that the host's death would now kill it; only then
// does the host answer Go, without which nothing is executed: a stage whose
// host died before finds the socket closed.
const (
	Ready    = 'R'
	Go       = 'G' // from the host
	Listener = 'L' // with a descriptor: the socket that the proxy is to serve
	Connects = 'N' // with a descriptor: the seccomp notifications of connect(2)
	Prepared = 'P' // the next step is the program
	Failed   = 'E' // and "step\x00reason": the program will not run
	Started  = 'S' // with Init: the program has been executed
	Signal   = 'K' // from the host, with Init: and the number of a signal for the program
	Exited   = 'X' // with Init: and its wait status, 4 bytes, little endian
)

// Flags of a Spec.
const (
	Namespaces = 1 << iota // the stage is process 1 of new namespaces: make a private root
	Restrict               // Landlock and seccomp
	Init                   // stay as process 1
	Proxy                  // open a listener in the network namespace
	Nest                   // the program may make user, PID and network namespaces of its own
)

// A Spec is what the stage is to do.
type Spec struct {
	Flags     uint64
	Mounts    []Mount
	Rulesets  []Ruleset
	Links     []Link
	Filter    string // with Restrict: what Filter returns
	Serves    string // a directory in which the program may make sockets, or ""
	Dir       string
	Args, Env []string
	Memory    uint64 // RLIMIT_DATA, bytes; 0 is no limit
	Processes uint64 // RLIMIT_NPROC; 0 is no limit
	PidMax    uint64 // kernel.pid_max of the PID namespace; 0 leaves it alone
	FileSize  uint64 // bytes
	Files     uint64
}

// The words of package view, which imports too much to be imported here.
type (
	// A Mount puts what is at Source at Path, if not Maybe and absent.
	Mount struct {
		Path, Source string
		Kind         uint8
		Maybe        bool
	}
	// A Ruleset restricts what it Handles to what its Rules allow.
	Ruleset struct {
		Name    string
		Handles uint8
		Rules   []Rule
	}
	// A Rule gives Rights beneath Path.
	Rule struct {
		Path   string
		Rights uint8
		Maybe  bool
	}
	// A Link is a symbolic link.
	Link struct{ Path, Target string }
)

// The kinds of Mount.
const (
	ReadOnly = iota + 1
	Writable
	Hidden
	Pinned
)

// The rights of a Rule.
const (
	Read = 1 << iota
	Write
	Exec
	Socket
)

func (s *Spec) has(flag uint64) bool { return s.Flags&flag != 0 }

var errSpec = errors.New("malformed spec")

// Encode returns s as the stage reads it. It is not JSON, because a fresh
// process that decodes by reflection takes as long as all its mounts do.
func (s *Spec) Encode() []byte {
	var w writer
	for _, v := range s.numbers() {
		w.number(*v)
	}
	for _, v := range s.texts() {
		w.text(*v)
	}
	for _, v := range s.lists() {
		w.number(uint64(len(*v)))
		for _, t := range *v {
			w.text(t)
		}
	}
	w.view(s)
	return w.b
}

// decode is the inverse of Encode.
func decode(b []byte) (*Spec, error) {
	s := new(Spec)
	r := reader{b: b}
	for _, v := range s.numbers() {
		*v = r.number()
	}
	for _, v := range s.texts() {
		*v = r.text()
	}
	for _, v := range s.lists() {
		*v = make([]string, r.count())
		for i := range *v {
			(*v)[i] = r.text()
		}
	}
	r.view(s)
	if r.bad || len(r.b) != 0 {
		return nil, errSpec
	}
	return s, nil
}

func (s *Spec) numbers() []*uint64 {
	return []*uint64{&s.Flags, &s.Memory, &s.Processes, &s.PidMax, &s.FileSize, &s.Files}
}
func (s *Spec) texts() []*string   { return []*string{&s.Filter, &s.Serves, &s.Dir} }
func (s *Spec) lists() []*[]string { return []*[]string{&s.Args, &s.Env} }

type writer struct{ b []byte }

func (w *writer) number(v uint64) {
	for ; v >= 0x80; v >>= 7 {
		w.b = append(w.b, byte(v)|0x80)
	}
	w.b = append(w.b, byte(v))
}

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) yes(v bool) {
	if v {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *writer) view(v *Spec) {
	w.number(uint64(len(v.Mounts)))
	for _, m := range v.Mounts {
		w.text(m.Path)
		w.text(m.Source)
		w.number(uint64(m.Kind))
		w.yes(m.Maybe)
	}
	w.number(uint64(len(v.Rulesets)))
	for _, s := range v.Rulesets {
		w.text(s.Name)
		w.number(uint64(s.Handles))
		w.number(uint64(len(s.Rules)))
		for _, r := range s.Rules {
			w.text(r.Path)
			w.number(uint64(r.Rights))
			w.yes(r.Maybe)
		}
	}
	w.number(uint64(len(v.Links)))
	for _, l := range v.Links {
		w.text(l.Path)
		w.text(l.Target)
	}
}

// A reader yields zero values once something was malformed.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if len(r.b) == 0 {
			break
		}
		c := r.b[0]
		r.b = r.b[1:]
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	r.bad, r.b = true, nil
	return 0
}

// count is a number of things of at least one byte each.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) view(v *Spec) {
	v.Mounts = make([]Mount, r.count())
	for i := range v.Mounts {
		v.Mounts[i] = Mount{Path: r.text(), Source: r.text(), Kind: uint8(r.number()), Maybe: r.number() != 0}
	}
	v.Rulesets = make([]Ruleset, r.count())
	for i := range v.Rulesets {
		s := &v.Rulesets[i]
		s.Name, s.Handles = r.text(), uint8(r.number())
		s.Rules = make([]Rule, r.count())
		for j := range s.Rules {
			s.Rules[j] = Rule{Path: r.text(), Rights: uint8(r.number()), Maybe: r.number() != 0}
		}
	}
	v.Links = make([]Link, r.count())
	for i := range v.Links {
		v.Links[i] = Link{Path: r.text(), Target: r.text()}
	}
}
