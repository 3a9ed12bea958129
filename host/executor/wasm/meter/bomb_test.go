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
