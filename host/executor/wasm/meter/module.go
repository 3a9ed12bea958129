package meter

import (
	"errors"
	"fmt"
	"strings"
)

// The sections that a module may have. Custom ones are dropped: their function
// indices would be wrong.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

// order is the order in which sections must stand, and in which they are read.
var order = [...]byte{secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement, secDataCount, secCode, secData}

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}

func (m *rewriter) module(b []byte) ([]byte, error) {
	if len(b) > maxModule {
		return nil, fmt.Errorf("%d bytes are over the limit of %d", len(b), maxModule)
	}
	if len(b) < 8 || string(b[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, errors.New("not a core module of version 1")
	}
	sections, err := split(b[8:])
	if err != nil {
		return nil, err
	}
	out := &writer{b: append(make([]byte, 0, len(b)+len(b)/4), b[:8]...)}
	for _, id := range order {
		body, have := sections[id]
		if !have && id != secType && id != secImport && id != secFunction && id != secGlobal && id != secExport && id != secCode {
			continue
		}
		r, w := &reader{b: body}, new(writer)
		if !have {
			r.b = []byte{0} // an empty vector, to which the rewriter adds
		}
		m.rewrite(id, r, w)
		if r.err == nil && r.p != len(r.b) {
			r.err = errors.New("has bytes left over")
		}
		if r.err != nil {
			return nil, fmt.Errorf("%s section: %w", sectionNames[id], r.err)
		}
		out.section(id, w)
	}
	return out.b, nil
}

// split finds the sections, which must be in order and occur once.
func split(b []byte) (map[byte][]byte, error) {
	found := map[byte][]byte{}
	next := 0
	for r := (&reader{b: b}); r.p < len(b); {
		id := r.byte()
		body := r.bytes(r.u32())
		if r.err != nil {
			return nil, r.err
		}
		if id == secCustom {
			custom := &reader{b: body}
			custom.name()
			if custom.err != nil {
				return nil, fmt.Errorf("custom section: %w", custom.err)
			}
			continue
		}
		for next < len(order) && order[next] != id {
			next++
		}
		if next == len(order) {
			return nil, fmt.Errorf("section %d is unknown, repeated or out of order", id)
		}
		next++
		found[id] = body
	}
	return found, nil
}

func (m *rewriter) rewrite(id byte, r *reader, w *writer) {
	switch id {
	case secType:
		m.types(r, w)
	case secImport:
		m.importSection(r, w)
	case secFunction:
		m.functionSection(r, w)
	case secTable:
		m.tableSection(r, w)
	case secMemory:
		m.memorySection(r, w)
	case secGlobal:
		m.globalSection(r, w)
	case secExport:
		m.exportSection(r, w)
	case secStart:
		w.u32(m.fn(r.index("function", m.allFuncs())))
	case secElement:
		m.elementSection(r, w)
	case secDataCount:
		m.data, m.hasData = r.u32(), true
		if m.data > maxData {
			r.fail("%d segments are too many", m.data)
		}
		w.u32(m.data)
	case secCode:
		m.codeSection(r, w)
	case secData:
		m.dataSection(r, w)
	}
}

// types copies the types and appends that of tick.
func (m *rewriter) types(r *reader, w *writer) {
	n := r.count("types", maxTypes)
	w.u32(n + 1)
	for range n {
		if r.byte() != 0x60 {
			r.fail("only function types are known")
			return
		}
		w.byte(0x60)
		for i := range 2 {
			values := r.count("values", 1000)
			w.u32(values)
			for range values {
				w.byte(valueType(r))
			}
			if i == 0 {
				m.params = append(m.params, int(values))
			}
		}
	}
	w.byte(0x60, 0, 0)
}

func valueType(r *reader) byte {
	t := r.byte()
	switch t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f:
	default:
		r.fail("unknown value type %#x", t)
	}
	return t
}

func refType(r *reader) byte {
	t := r.byte()
	if t != 0x70 && t != 0x6f {
		r.fail("unknown reference type %#x", t)
	}
	return t
}

// importSection copies the imports, which must be functions, and adds tick.
func (m *rewriter) importSection(r *reader, w *writer) {
	n := r.count("imports", maxImports)
	w.u32(n + 1)
	for range n {
		module, name := r.name(), r.name()
		if module == Module {
			r.fail("%q is the host's own", module)
			return
		}
		if r.byte() != 0 {
			r.fail("%q.%q is not a function: only functions can be imported", module, name)
			return
		}
		t := r.index("type", uint32(len(m.params)))
		m.imports = append(m.imports, t)
		w.name(module)
		w.name(name)
		w.byte(0)
		w.u32(t)
	}
	w.name(Module)
	w.name(Tick)
	w.byte(0)
	w.u32(uint32(len(m.params)))
}

// functionSection copies the types of the defined functions and adds those of
// the wrappers.
func (m *rewriter) functionSection(r *reader, w *writer) {
	n := r.count("functions", maxFuncs)
	w.u32(n + uint32(len(m.imports)))
	for range n {
		t := r.index("type", uint32(len(m.params)))
		m.funcs = append(m.funcs, t)
		w.u32(t)
	}
	for _, t := range m.imports {
		w.u32(t)
	}
}

// tableSection caps the tables: the runtime lets them grow without limit.
func (m *rewriter) tableSection(r *reader, w *writer) {
	m.tables = r.count("tables", maxTables)
	w.u32(m.tables)
	for range m.tables {
		w.byte(refType(r))
		flag := r.byte()
		least, most := r.u32(), m.o.MaxTable
		switch flag {
		case 0:
		case 1:
			if declared := r.u32(); declared < least {
				r.fail("a table's maximum is below its minimum")
			} else {
				most = min(most, declared)
			}
		default:
			r.fail("unknown kind of limits %#x", flag)
		}
		if r.err == nil && least > m.o.MaxTable {
			r.fail("a table of %d elements is over the limit of %d", least, m.o.MaxTable)
		}
		w.byte(1)
		w.u32(least)
		w.u32(most)
	}
}

// memorySection copies the memory. Its growth is bounded by the host's allocator.
func (m *rewriter) memorySection(r *reader, w *writer) {
	m.mems = r.count("memories", 1)
	w.u32(m.mems)
	for range m.mems {
		flag := r.byte()
		least := r.u32()
		w.byte(flag)
		w.u32(least)
		switch flag {
		case 0:
		case 1:
			most := r.u32()
			if most < least {
				r.fail("the memory's maximum is below its minimum")
			}
			w.u32(most)
		default:
			r.fail("unknown kind of limits %#x: shared and 64-bit memories are not supported", flag)
		}
	}
}

// globalSection copies the globals and appends the fuel.
func (m *rewriter) globalSection(r *reader, w *writer) {
	n := r.count("globals", maxGlobals)
	w.u32(n + 1)
	for range n {
		w.byte(valueType(r))
		mutable := r.byte()
		if mutable > 1 {
			r.fail("unknown mutability %d", mutable)
		}
		w.byte(mutable)
		m.constant(r, w)
		m.globals++ // an initialiser sees only the globals before its own
	}
	w.byte(0x7f, 1, 0x41)
	w.signed(int64(m.o.Fuel))
	w.byte(0x0b)
}

func (m *rewriter) exportSection(r *reader, w *writer) {
	n := r.count("exports", maxExports)
	w.u32(n + 1)
	seen := make(map[string]bool, n)
	for range n {
		name := r.name()
		switch {
		case strings.HasPrefix(name, reserved):
			r.fail("export %q: names that start with %q are the host's own", name, reserved)
		case seen[name]:
			r.fail("export %q occurs twice", name)
		}
		seen[name] = true
		w.name(name)
		kind := r.byte()
		w.byte(kind)
		switch kind {
		case 0:
			w.u32(m.fn(r.index("function", m.allFuncs())))
		case 1:
			w.u32(r.index("table", m.tables))
		case 2:
			w.u32(r.index("memory", m.mems))
		case 3:
			w.u32(r.index("global", m.globals))
		default:
			r.fail("unknown kind of export %d", kind)
		}
		if r.err != nil {
			return
		}
	}
	w.name(FuelGlobal)
	w.byte(3)
	w.u32(m.fuel())
}

// elementSection copies the element segments in any of their eight forms.
func (m *rewriter) elementSection(r *reader, w *writer) {
	m.elems = r.count("element segments", maxElems)
	w.u32(m.elems)
	for range m.elems {
		form := r.u32()
		if form > 7 {
			r.fail("unknown form of element segment %d", form)
			return
		}
		w.u32(form)
		active, explicit, exprs := form&1 == 0, form&2 != 0, form&4 != 0
		if active {
			if explicit {
				w.u32(r.index("table", m.tables))
			} else if m.tables == 0 {
				r.fail("table 0 does not exist")
			}
			m.constant(r, w)
		}
		switch {
		case form&3 == 0:
		case exprs:
			w.byte(refType(r))
		default:
			kind := r.byte()
			if kind != 0 {
				r.fail("unknown kind of elements %d", kind)
			}
			w.byte(kind)
		}
		n := r.count("elements", maxElems)
		w.u32(n)
		for range n {
			if exprs {
				m.constant(r, w)
			} else {
				w.u32(m.fn(r.index("function", m.allFuncs())))
			}
			if r.err != nil {
				return
			}
		}
	}
}

func (m *rewriter) dataSection(r *reader, w *writer) {
	n := r.count("data segments", maxData)
	if m.hasData && n != m.data {
		r.fail("has %d segments, but the data count section says %d", n, m.data)
		return
	}
	w.u32(n)
	for range n {
		form := r.u32()
		w.u32(form)
		switch form {
		case 2:
			w.u32(r.index("memory", m.mems))
			m.constant(r, w)
		case 0:
			if m.mems == 0 {
				r.fail("memory 0 does not exist")
			}
			m.constant(r, w)
		case 1:
		default:
			r.fail("unknown form of data segment %d", form)
		}
		body := r.bytes(r.u32())
		w.u32(uint32(len(body)))
		w.b = append(w.b, body...)
		if r.err != nil {
			return
		}
	}
}

// constant copies a constant expression.
func (m *rewriter) constant(r *reader, w *writer) {
	for r.err == nil {
		op := r.byte()
		w.byte(op)
		switch op {
		case 0x0b:
			return
		case 0x41:
			w.signed(r.signed(32))
		case 0x42:
			w.signed(r.signed(64))
		case 0x43:
			w.byte(r.bytes(4)...)
		case 0x44:
			w.byte(r.bytes(8)...)
		case 0x23:
			w.u32(r.index("global", m.globals))
		case 0xd0:
			w.byte(refType(r))
		case 0xd2:
			w.u32(m.fn(r.index("function", m.allFuncs())))
		case 0xfd:
			if r.u32() != 12 {
				r.fail("not a constant expression")
			}
			w.u32(12)
			w.byte(r.bytes(16)...)
		default:
			r.fail("instruction %#x in a constant expression", op)
		}
	}
}
