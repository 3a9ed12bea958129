package meter

import (
	"errors"
	"fmt"
)

// codeSection meters the bodies and appends those of the wrappers.
func (m *rewriter) codeSection(r *reader, w *writer) {
	if len(r.b) > maxCode {
		r.fail("%d bytes are over the limit of %d", len(r.b), maxCode)
		return
	}
	n := r.count("bodies", maxFuncs)
	if int(n) != len(m.funcs) {
		r.fail("%d bodies for %d functions", n, len(m.funcs))
		return
	}
	w.u32(n + uint32(len(m.imports)))
	var body writer
	for i := range n {
		b := r.bytes(r.u32())
		if r.err != nil {
			return
		}
		if len(b) > maxBody {
			r.fail("function %d: %d bytes are over the limit of %d", int(i)+len(m.imports), len(b), maxBody)
			return
		}
		body.b = body.b[:0]
		if err := m.body(b, m.params[m.funcs[i]], &body); err != nil {
			r.fail("function %d: %w", int(i)+len(m.imports), err)
			return
		}
		w.u32(uint32(len(body.b)))
		w.b = append(w.b, body.b...)
	}
	for i, t := range m.imports {
		body.b = append(body.b[:0], 0, 0x10) // no locals; tick
		body.u32(m.tick())
		for p := range m.params[t] {
			body.byte(0x20)
			body.u32(uint32(p))
		}
		body.byte(0x10)
		body.u32(uint32(i))
		body.byte(0x0b)
		w.u32(uint32(len(body.b)))
		w.b = append(w.b, body.b...)
	}
}

// body meters one function. Its first pass decodes everything and learns what
// the checks must cost; the second writes.
func (m *rewriter) body(b []byte, params int, w *writer) error {
	r := &reader{b: b}
	groups := r.count("groups of locals", maxLocals)
	at, locals := r.p, uint64(0)
	for range groups {
		locals += uint64(r.u32())
		valueType(r)
		if locals > maxLocals {
			r.fail("over %d locals", maxLocals)
		}
	}
	if r.err != nil {
		return r.err
	}
	m.locals = uint32(params) + uint32(locals)
	m.work.locals += int64(locals)
	s := survey{reader: reader{b: b, p: r.p}}
	if err := m.survey(&s); err != nil {
		return err
	}
	if err := m.add(&s); err != nil {
		return err
	}
	e := emitter{m: m, w: w, loops: s.loops, scratch: m.locals}
	if s.bulk {
		w.u32(groups + 1)
	} else {
		w.u32(groups)
	}
	for l := (&reader{b: b, p: at}); l.p < r.p; {
		w.u32(l.u32())
		w.byte(l.byte())
	}
	if s.bulk {
		w.byte(1, 0x7f)
	}
	if s.entry() {
		e.check(s.size)
	}
	for r.more() {
		e.instruction(r)
	}
	return r.err
}

// A survey is what the first pass learns of a function.
type survey struct {
	reader
	size      int   // instructions
	loops     []int // instructions inside of each loop, in the order of their headers
	calls     bool
	bulk      bool
	depths    int64 // of the loops, added up: 1 for one that is in no other
	blocks    int64 // with loops and ifs
	loopFirst bool  // a loop's header comes before any branch or call
	decided   bool
}

// add adds the work of a function to that of the module.
func (m *rewriter) add(s *survey) error {
	looping, branching := s.depths*int64(m.locals+1), s.blocks*int64(m.locals+1)
	m.work.looping += looping
	m.work.branching += branching
	switch {
	case m.work.locals > maxAllLocals:
		return fmt.Errorf("the functions have over %d locals together", maxAllLocals)
	case looping > maxLooping || m.work.looping > maxAllWork*maxLooping:
		return errors.New("too many locals in loops that are nested too deeply")
	case branching > maxBranching || m.work.branching > maxAllWork*maxBranching:
		return errors.New("too many locals in too many blocks")
	}
	return nil
}

// entry reports whether the function needs a check at its entry: if it may
// recurse, or is long. One whose first act is a loop has its check there.
func (s *survey) entry() bool { return (s.calls || s.size > 4*unit) && !s.loopFirst }

// survey walks the function and checks that its blocks nest.
func (m *rewriter) survey(s *survey) error {
	type block struct {
		loop  int // index in s.loops, or -1
		start int
		is    byte
	}
	stack := []block{{-1, 0, 0x02}}
	var inside int64 // loops around here
	for s.more() {
		if len(stack) == 0 {
			return errors.New("has code after its end")
		}
		op := m.instruction(&s.reader, nil)
		s.size++
		switch op {
		case 0x03:
			if !s.decided {
				s.loopFirst, s.decided = true, true
			}
			inside++
			s.depths, s.blocks = s.depths+inside, s.blocks+1
			s.loops = append(s.loops, 0)
			stack = append(stack, block{len(s.loops) - 1, s.size, op})
		case 0x02, 0x04:
			s.blocks++
			s.decided = s.decided || op == 0x04
			stack = append(stack, block{-1, 0, op})
		case 0x05:
			s.decided = true
			if stack[len(stack)-1].is != 0x04 {
				return errors.New("else without if")
			}
			stack[len(stack)-1].is = 0x05
		case 0x0b:
			top := stack[len(stack)-1]
			if stack = stack[:len(stack)-1]; top.loop >= 0 {
				s.loops[top.loop] = s.size - top.start
				inside--
			}
			s.decided = true
		case 0x0c, 0x0d, 0x0e, 0x0f, 0x00:
			s.decided = true
		case 0x10, 0x11:
			s.calls, s.decided = true, true
		case opGrow, opBulk:
			s.bulk, s.decided = true, true
		}
		if len(stack) > maxNesting {
			return fmt.Errorf("blocks nest over %d deep", maxNesting)
		}
	}
	if s.err == nil && len(stack) != 0 {
		return errShort
	}
	return s.err
}

// An emitter writes a metered function.
type emitter struct {
	m       *rewriter
	w       *writer
	loops   []int
	scratch uint32 // a local of our own, if the function has bulk instructions
}

// instruction copies one instruction with what metering adds.
func (e *emitter) instruction(r *reader) {
	at := len(e.w.b)
	switch e.m.instruction(r, e.w) {
	case 0x03:
		e.check(e.loops[0])
		e.loops = e.loops[1:]
	case opGrow:
		e.before(at, 6, true) // pages of 64 KiB, in units of 1 KiB
	case opBulk:
		e.before(at, bulkUnit, false)
	}
}

// check writes: fuel -= cost; if fuel <= 0 { tick() }.
func (e *emitter) check(instructions int) {
	w := e.w
	w.byte(0x23)
	w.u32(e.m.fuel())
	w.byte(0x41)
	w.signed(int64(1 + instructions/unit))
	w.byte(0x6b)
	e.spend()
}

// spend writes: fuel = <top of the stack>; if fuel <= 0 { tick() }.
func (e *emitter) spend() {
	w, fuel := e.w, e.m.fuel()
	w.byte(0x24)
	w.u32(fuel)
	w.byte(0x23)
	w.u32(fuel)
	w.byte(0x41, 0, 0x4c, 0x04, 0x40, 0x10) // i32.const 0, i32.le_s, if, call
	w.u32(e.m.tick())
	w.byte(0x0b)
}

// before puts, in front of the instruction that starts at at and takes a size
// from the top of the stack, a charge for that size. Sizes are unsigned, and
// the shifts keep the charge below 2^26, so that fuel cannot wrap around.
func (e *emitter) before(at int, shift byte, left bool) {
	op := append([]byte(nil), e.w.b[at:]...)
	w := e.w
	w.b = w.b[:at]
	w.byte(0x22) // local.tee
	w.u32(e.scratch)
	w.byte(0x23)
	w.u32(e.m.fuel())
	w.byte(0x20)
	w.u32(e.scratch)
	if left { // memory.grow asks for at most 65,536 pages; more fails at once
		w.byte(0x41)
		w.signed(0xffff)
		w.byte(0x71, 0x41) // i32.and
		w.signed(int64(shift))
		w.byte(0x74) // i32.shl
	} else {
		w.byte(0x41)
		w.signed(int64(shift))
		w.byte(0x76) // i32.shr_u
	}
	w.byte(0x6b)
	e.spend()
	w.b = append(w.b, op...)
}
