package stage

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A seccomp filter is a program of classic BPF over struct seccomp_data: the
// number, the architecture and the arguments of a system call. It cannot follow
// pointers.

// Where struct seccomp_data has what, in bytes. Arguments are 64 bits wide; on
// the little-endian machines that there are, the low half comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// What a filter returns.
const (
	retAllow  = 0x7fff0000
	retNotify = 0x7fc00000 // ask the holder of the listener
	retErrno  = 0x00050000 // and the number
	retKill   = 0x80000000 // the process
)

func fail(e unix.Errno) uint32 { return retErrno | uint32(e) }

// A test holds if the half of an argument, masked, has a value.
type test struct {
	arg   int
	high  bool
	mask  uint32 // 0 is all
	value uint32
}

// A branch says what to return if all its tests hold.
type branch struct {
	tests []test
	ret   uint32
}

// A rule says what becomes of one system call: what the first branch says
// whose tests hold, or else.
type rule struct {
	number    int
	branches  []branch
	otherwise uint32
}

const (
	opLoad  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAnd   = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	opEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opAbove = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	opLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opJump  = unix.BPF_JMP | unix.BPF_JA
	opRet   = unix.BPF_RET | unix.BPF_K
)

// assemble returns the filter of rules, of which there is one per number. Calls
// that no rule is about pass; those that are younger than this program do not
// exist; a process that speaks another architecture's language is killed,
// because numbers mean other calls there.
func assemble(rules []rule) []unix.SockFilter {
	p := []unix.SockFilter{
		{Code: opLoad, K: offArch},
		{Code: opEqual, K: arch, Jt: 1},
		{Code: opRet, K: retKill},
		{Code: opLoad, K: offNumber},
		{Code: opAbove, K: newest, Jf: 1}, // with the calls of the x32 ABI, which have bit 30 set
		{Code: opRet, K: fail(unix.ENOSYS)},
	}
	slices.SortFunc(rules, func(a, b rule) int { return a.number - b.number })
	return append(p, search(rules)...)
}

// leaf is how many rules are looked at one by one.
const leaf = 3

// search finds the rule of a number by halves: the kernel runs a new filter
// for every number that there is, to learn which calls always pass.
func search(rules []rule) (p []unix.SockFilter) {
	if len(rules) > leaf {
		half := len(rules) / 2
		low, high := search(rules[:half]), search(rules[half:])
		// A conditional jump reaches 255 instructions, this one all.
		p = append(p, unix.SockFilter{Code: opLeast, K: uint32(rules[half].number), Jf: 1}, unix.SockFilter{Code: opJump, K: uint32(len(low))})
		return append(append(p, low...), high...)
	}
	for _, r := range rules {
		body := r.body()
		p = append(p, unix.SockFilter{Code: opEqual, K: uint32(r.number), Jf: uint8(len(body))})
		p = append(p, body...)
	}
	return append(p, unix.SockFilter{Code: opRet, K: retAllow})
}

func (r *rule) body() (p []unix.SockFilter) {
	for _, b := range r.branches {
		p = append(p, b.code()...)
	}
	return append(p, unix.SockFilter{Code: opRet, K: r.otherwise})
}

func (b *branch) code() (p []unix.SockFilter) {
	var jumps []int // taken if a test does not hold: past the branch
	for _, t := range b.tests {
		off := uint32(offArgs + 8*t.arg)
		if t.high {
			off += 4
		}
		p = append(p, unix.SockFilter{Code: opLoad, K: off})
		if t.mask != 0 {
			p = append(p, unix.SockFilter{Code: opAnd, K: t.mask})
		}
		jumps = append(jumps, len(p))
		p = append(p, unix.SockFilter{Code: opEqual, K: t.value})
	}
	p = append(p, unix.SockFilter{Code: opRet, K: b.ret})
	for _, j := range jumps {
		p[j].Jf = uint8(len(p) - j - 1)
	}
	return p
}
