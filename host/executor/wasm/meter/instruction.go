package meter

// The pseudo opcodes by which instruction reports what needs a charge.
const (
	opGrow byte = 0x40 // memory.grow: its own opcode
	opBulk byte = 0xfc // memory and table instructions that take a length
)

// instruction decodes one instruction of the WebAssembly 2.0 core
// specification, checks its indices against the original module, and writes it
// to w unless w is nil, with function indices shifted. It returns the opcode;
// of the instructions behind the prefix 0xfc only those that take a length
// report opBulk, the others 0x01 (nop). Everything else is refused.
func (m *rewriter) instruction(r *reader, w *writer) byte {
	if w == nil {
		w = &m.waste
		w.b = w.b[:0]
	}
	op := r.byte()
	w.byte(op)
	switch {
	case op == 0x02 || op == 0x03 || op == 0x04: // block, loop, if
		m.blockType(r, w)
	case op == 0x0c || op == 0x0d: // br, br_if
		w.u32(r.u32())
	case op == 0x0e: // br_table
		n := r.count("labels", maxLabels)
		if m.labels += int(n); m.labels > 2*maxAllLabels { // each is read twice
			r.fail("over %d labels of br_table", maxAllLabels)
		}
		w.u32(n)
		for i := uint64(0); i <= uint64(n) && r.err == nil; i++ {
			w.u32(r.u32())
		}
	case op == 0x10 || op == 0xd2: // call, ref.func
		w.u32(m.fn(r.index("function", m.allFuncs())))
	case op == 0x11: // call_indirect
		w.u32(r.index("type", uint32(len(m.params))))
		w.u32(r.index("table", m.tables))
	case op == 0x1c: // select with types
		n := r.count("types", 16)
		w.u32(n)
		for range n {
			w.byte(valueType(r))
		}
	case op == 0x20 || op == 0x21 || op == 0x22: // local.get, local.set, local.tee
		w.u32(r.index("local", m.locals))
	case op == 0x23 || op == 0x24: // global.get, global.set
		w.u32(r.index("global", m.globals))
	case op == 0x25 || op == 0x26: // table.get, table.set
		w.u32(r.index("table", m.tables))
	case op >= 0x28 && op <= 0x3e: // loads and stores
		m.memArg(r, w)
	case op == 0x3f || op == 0x40: // memory.size, memory.grow
		w.byte(m.zero(r))
	case op == 0x41:
		w.signed(r.signed(32))
	case op == 0x42:
		w.signed(r.signed(64))
	case op == 0x43:
		w.byte(r.bytes(4)...)
	case op == 0x44:
		w.byte(r.bytes(8)...)
	case op == 0xd0: // ref.null
		w.byte(refType(r))
	case op == 0xfc:
		return m.prefixed(r, w)
	case op == 0xfd:
		m.simd(r, w)
		return 0x01
	case op <= 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	default:
		r.fail("instruction %#x is not part of WebAssembly 2.0", op)
	}
	return op
}

func (m *rewriter) blockType(r *reader, w *writer) {
	t := r.signed(33)
	switch t {
	case -64, -1, -2, -3, -4, -5, -16, -17: // none, i32, i64, f32, f64, v128, funcref, externref
	default:
		if r.err == nil && (t < 0 || t >= int64(len(m.params))) {
			r.fail("block type %d does not exist", t)
		}
	}
	w.signed(t)
}

func (m *rewriter) memArg(r *reader, w *writer) {
	if m.mems == 0 {
		r.fail("memory 0 does not exist")
	}
	align := r.u32()
	if align > 16 {
		r.fail("alignment 2^%d", align)
	}
	w.u32(align)
	w.u32(r.u32())
}

// zero reads the memory index, of which only 0 exists.
func (m *rewriter) zero(r *reader) byte {
	if r.byte() != 0 || m.mems == 0 {
		r.fail("only memory 0 is supported")
	}
	return 0
}

// prefixed handles the instructions behind 0xfc.
func (m *rewriter) prefixed(r *reader, w *writer) byte {
	sub := r.u32()
	w.u32(sub)
	switch sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating truncation
		return 0x01
	case 8: // memory.init
		w.u32(m.segment(r))
		w.byte(m.zero(r))
	case 9: // data.drop
		w.u32(m.segment(r))
		return 0x01
	case 10: // memory.copy
		w.byte(m.zero(r))
		w.byte(m.zero(r))
	case 11: // memory.fill
		w.byte(m.zero(r))
	case 12: // table.init
		w.u32(r.index("element segment", m.elems))
		w.u32(r.index("table", m.tables))
	case 13: // elem.drop
		w.u32(r.index("element segment", m.elems))
		return 0x01
	case 14: // table.copy
		w.u32(r.index("table", m.tables))
		w.u32(r.index("table", m.tables))
	case 15, 17: // table.grow, table.fill
		w.u32(r.index("table", m.tables))
	case 16: // table.size
		w.u32(r.index("table", m.tables))
		return 0x01
	default:
		r.fail("instruction 0xfc %d is not part of WebAssembly 2.0", sub)
	}
	return opBulk
}

func (m *rewriter) segment(r *reader) uint32 {
	if !m.hasData {
		r.fail("a data segment is named, but there is no data count section")
		return 0
	}
	return r.index("data segment", m.data)
}

// simd handles the instructions behind 0xfd: fixed-width SIMD.
func (m *rewriter) simd(r *reader, w *writer) {
	sub := r.u32()
	w.u32(sub)
	switch {
	case sub <= 11 || sub == 92 || sub == 93:
		m.memArg(r, w)
	case sub == 12 || sub == 13:
		w.byte(r.bytes(16)...)
	case sub >= 21 && sub <= 34:
		w.byte(r.byte())
	case sub >= 84 && sub <= 91:
		m.memArg(r, w)
		w.byte(r.byte())
	case sub <= 255:
	default:
		r.fail("instruction 0xfd %d is not part of WebAssembly 2.0", sub)
	}
}
