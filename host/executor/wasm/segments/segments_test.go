package segments

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/tetratelabs/wazero"
)

// moduleOf returns a module of two pages of memory with these segments.
func moduleOf(list []segment, before ...byte) []byte {
	b := []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x02\x07\x0a\x01\x06memory\x02\x00")
	b = append(b, before...)
	content := encode(list)
	b = append(b, sectionData)
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(append(b, content...), "\x00\x05\x04tail"...)
}

// image returns the memory that an instance of module begins with.
func image(t testing.TB, module []byte) ([]byte, error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(4))
	defer r.Close(ctx)
	m, err := r.Instantiate(ctx, module)
	if err != nil {
		return nil, err
	}
	if m.Memory() == nil {
		return nil, nil
	}
	b, _ := m.Memory().Read(0, m.Memory().Size())
	return bytes.Clone(b), nil
}

// many returns n segments of size bytes, step apart.
func many(n int, at, step uint32, size int) []segment {
	var list []segment
	for i := range n {
		list = append(list, segment{at + uint32(i)*step, bytes.Repeat([]byte{byte(i + 1)}, size)})
	}
	return list
}

func TestMerge(t *testing.T) {
	overlap := many(100, 0, 8, 9)
	falling := append(many(100, 1000, 8, 4), segment{0, []byte("x")})
	back := append(many(100, 1000, 8, 4), segment{1003, []byte("x")})
	for name, c := range map[string]struct {
		module []byte
		merged int // segments afterwards, or -1 if the module stays as it is
	}{
		"touching":      {moduleOf(many(200, 16, 8, 8)), 1},
		"small_gaps":    {moduleOf(many(200, 16, 40, 8)), 1},
		"large_gaps":    {moduleOf(many(200, 16, 400, 8)), 200},
		"two_runs":      {moduleOf(append(many(100, 0, 8, 8), many(100, 70000, 8, 8)...)), 2},
		"empty_ones":    {moduleOf(many(200, 16, 8, 0)), 1},
		"few":           {moduleOf(many(63, 16, 8, 8)), -1},
		"overlap":       {moduleOf(overlap), -1},
		"falling":       {moduleOf(falling), 2},
		"falling_over":  {moduleOf(back), -1},
		"high_address":  {moduleOf(many(100, 0xffffff00, 1, 1)), 1},
		"past_4g":       {moduleOf(append(many(100, 0xffff0000, 8, 8), segment{0xffffffff, []byte("xy")})), 2},
		"no_data":       {[]byte("\x00asm\x01\x00\x00\x00"), -1},
		"short":         {[]byte("\x00asm"), -1},
		"numbered":      {moduleOf(many(200, 16, 8, 8), sectionDataCount, 2, 200, 1), -1},
		"cut":           {moduleOf(many(200, 16, 8, 8))[:500], -1},
		"trailing_byte": {bytes.Replace(moduleOf(many(200, 16, 8, 8)), []byte("\x00\x05\x04tail"), nil, 1)[:1000], -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := Merge(c.module)
			if c.merged < 0 {
				if !bytes.Equal(got, c.module) {
					t.Error("the module was changed")
				}
				return
			}
			r := reader{rest: got[8+5+12:]}
			r.byte()
			list, ok := parse(r.bytes(r.u32()))
			if !ok || len(list) != c.merged {
				t.Fatalf("%d segments, well formed %v; want %d", len(list), ok, c.merged)
			}
			want, errWant := image(t, c.module)
			have, errHave := image(t, got)
			if (errWant == nil) != (errHave == nil) || !bytes.Equal(want, have) {
				t.Errorf("memory differs: %v, %v", errWant, errHave)
			}
		})
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(moduleOf(many(200, 16, 8, 8)))
	f.Add(moduleOf(many(70, 16, 400, 8)))
	f.Add(moduleOf(many(70, 0xffff0000, 3, 3)))
	f.Fuzz(func(t *testing.T, module []byte) {
		got := Merge(bytes.Clone(module))
		if bytes.Equal(got, module) {
			return
		}
		want, errWant := image(t, module)
		have, errHave := image(t, got)
		if (errWant == nil) != (errHave == nil) || !bytes.Equal(want, have) {
			t.Errorf("memory differs: %v, %v", errWant, errHave)
		}
	})
}
