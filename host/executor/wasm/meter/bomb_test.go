package meter

import (
	"strings"
	"testing"
)

// TestCompileBombs: what costs the compiler kilobytes for each byte is refused.
func TestCompileBombs(t *testing.T) {
	table := func(n int) []byte { // block (i32.const 0) (br_table 0 … 0) end
		w := &writer{b: []byte{0x02, 0x40, 0x41, 0x00, 0x0e}}
		w.u32(uint32(n))
		w.b = append(w.b, make([]byte, n+1)...)
		return append(w.b, 0x0b)
	}
	body := func(n, times int) []byte {
		return append(append([]byte{0}, []byte(strings.Repeat(string(table(n)), times))...), 0x0b)
	}
	for name, code := range map[string][]byte{"compile_one_br_table": body(500_000, 1), "compile_many_br_tables": body(3000, 2000)} {
		if _, err := Instrument(fn(code...), Options{}); err == nil {
			t.Errorf("%s: a module of %d bytes, which takes the compiler minutes and gigabytes, is accepted", name, len(code))
		}
	}
}

// TestLocalBombs: few bytes that make the compiler follow many locals through
// many blocks.
func TestLocalBombs(t *testing.T) {
	loops := func(depth, locals int) []byte {
		w := &writer{b: []byte{1}}
		w.u32(uint32(locals))
		w.byte(0x7f)
		for range depth {
			w.byte(0x03, 0x40)
		}
		for i := range min(locals, 100) {
			w.byte(0x20)
			w.u32(uint32(i))
			w.byte(0x1a)
		}
		for range depth {
			w.byte(0x41, 0, 0x0d, 0, 0x0b)
		}
		w.byte(0x0b)
		return w.b
	}
	ifs := &writer{b: []byte{1}}
	ifs.u32(20_000)
	ifs.byte(0x7f)
	for range 100_000 {
		ifs.byte(0x41, 0, 0x04, 0x40, 0x0b)
	}
	ifs.byte(0x0b)
	many := module(sec{secType, []byte{1, 0x60, 0, 0}}, sec{secFunction, append([]byte{200, 1}, make([]byte, 200)...)}, func() sec {
		w := &writer{b: []byte{200, 1}}
		for range 200 {
			w.byte(6, 1, 0xd0, 0x86, 3, 0x7f, 0x0b) // 50,000 locals each
		}
		return sec{secCode, w.b}
	}())
	for name, mod := range map[string][]byte{
		"compile_loops_100_1000": fn(loops(100, 1000)...), "compile_loops_4000_50000": fn(loops(4000, 50_000)...),
		"compile_ifs": fn(ifs.b...), "compile_locals_everywhere": many,
	} {
		if _, err := Instrument(mod, Options{}); err == nil || !strings.Contains(err.Error(), "locals") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Instrument(fn(loops(10, 1000)...), Options{}); err != nil {
		t.Errorf("an ordinary function: %v", err)
	}
}
