// Package meter rewrites core WASM modules so that no guest outlasts its
// deadline: it makes them count what they do and call the host, "tick", when
// the count is used up. It knows no runtime, no clock and no deadline; the host
// decides at a tick whether the guest goes on.
//
// The rewriter is a security boundary. A module may be made by an attacker who
// knows it, so everything that is not understood is refused, every index is
// bounded by the counts of the original module before it is used or shifted
// (an index that was out of range must not come to mean something the rewriter
// added), and every immediate is written anew from its decoded value, so that
// the runtime's reading of the output cannot differ from ours.
package meter

import (
	"fmt"
)

// The names that a metered module is linked by.
const (
	Module     = "skill:meter"  // the module of the tick import
	Tick       = "tick"         // () -> ()
	FuelGlobal = "__skill_fuel" // exported mutable i32: what is left until the next tick
	reserved   = "__skill_"     // no export of a guest may start with it
)

// Bounds of a module. A module over one of them is refused.
const (
	maxModule  = 64 << 20
	maxTypes   = 1 << 16
	maxImports = 1 << 12
	maxFuncs   = 1 << 20
	maxGlobals = 1 << 16
	maxTables  = 16
	maxExports = 1 << 16
	maxElems   = 1 << 20
	maxData    = 1 << 20
	maxLocals  = 50_000
	maxNesting = 1 << 12

	// What a compiler takes much more than linear time and memory for. The
	// largest programs of the Go toolchain have tables of 1,200 labels, 130,000
	// labels in all, and functions of some hundred kilobytes.
	maxLabels    = 1 << 13 // of one br_table
	maxAllLabels = 400_000 // of the module
	maxBody      = 2 << 20 // bytes of one function
	maxCode      = 32 << 20
	maxAllLocals = 4 << 20  // of the module, parameters apart
	maxLooping   = 1 << 20  // of one function: the sum of its loops' depths, times its locals
	maxBranching = 64 << 20 // of one function: blocks, loops and ifs, times its locals
	maxAllWork   = 8        // times maxLooping, and maxBranching, for the module
)

// unit is how many instructions cost one fuel. A check costs at least one.
const unit = 32

// bulkUnit is how many bytes (or table elements) moved by one bulk
// instruction cost one fuel, as a power of two.
const bulkUnit = 10

// Options of Instrument.
type Options struct {
	Fuel     uint32 // at the start, and a good value for the host to refuel with; 0 means 50,000
	MaxTable uint32 // elements that a table may grow to; 0 means 100,000
}

// Instrument returns module with metering. The result imports Module.Tick and
// exports FuelGlobal: when tick is called the host either sets the global to a
// positive number or stops the guest. Instrument never panics; an error says
// what is wrong with the module.
func Instrument(module []byte, o Options) ([]byte, error) {
	if o.Fuel == 0 {
		o.Fuel = 50_000
	}
	if o.MaxTable == 0 {
		o.MaxTable = 100_000
	}
	if o.Fuel > 1<<30 {
		return nil, fmt.Errorf("meter: fuel %d is over %d", o.Fuel, 1<<30)
	}
	m := &rewriter{o: o}
	out, err := m.module(module)
	if err != nil {
		return nil, fmt.Errorf("wasm module: %w", err)
	}
	return out, nil
}

// A rewriter rewrites one module. The counts are those of the original.
type rewriter struct {
	o       Options
	params  []int    // of each type
	imports []uint32 // type of each imported function
	funcs   []uint32 // type of each defined function
	globals uint32
	tables  uint32
	mems    uint32
	elems   uint32
	data    uint32 // as the data count section says
	hasData bool   // there is a data count section
	labels  int    // of all br_tables so far
	work    work   // of all functions so far
	locals  uint32 // of the function at hand, with its parameters
	waste   writer // what the first pass over a function writes
}

// work is what a compiler spends more than linear time and memory on: it
// follows every local through every block, and through every loop around it.
type work struct{ locals, looping, branching int64 }

func (m *rewriter) allFuncs() uint32 { return uint32(len(m.imports) + len(m.funcs)) }

// The layout of the output's function indices: the original imports, tick, the
// defined functions, and for each import a wrapper that ticks first. All the
// guest's references to an import go to its wrapper, also those in tables, so
// that a host function which takes long cannot be called again and again
// without a look at the clock.
func (m *rewriter) tick() uint32 { return uint32(len(m.imports)) }
func (m *rewriter) fn(i uint32) uint32 {
	if n := uint32(len(m.imports)); i < n {
		return n + 1 + uint32(len(m.funcs)) + i
	}
	return i + 1
}

// fuel is the index of the fuel global: after all of the guest's.
func (m *rewriter) fuel() uint32 { return m.globals }
