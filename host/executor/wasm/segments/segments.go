// Package segments merges the data segments of a module. The Go linker writes
// tens of thousands of them, and every instance would copy them one by one:
// merged, an instance starts in half the time. It knows nothing of code.
package segments

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

const (
	few = 64 // segments that are not worth merging
	gap = 64 // bytes of zeros that are written rather than begin a new segment
)

// The ids of sections.
const (
	sectionData      = 11
	sectionDataCount = 12
)

// A segment is active, in memory 0, at a constant address.
type segment struct {
	at   uint32
	data []byte
}

func (s segment) end() uint64 { return uint64(s.at) + uint64(len(s.data)) }

// Merge returns module with neighbouring data segments made one. Instances of
// it begin with the same memory. A module that has few segments, or numbers
// them for memory.init, or whose segments overlap, is returned as it is; so is
// one that is malformed, for the compiler to refuse.
func Merge(module []byte) []byte {
	if len(module) < 8 {
		return module
	}
	r := reader{rest: module[8:]}
	for len(r.rest) > 0 {
		start := len(module) - len(r.rest)
		id := r.byte()
		content := r.bytes(r.u32())
		switch {
		case r.bad || id == sectionDataCount:
			return module
		case id != sectionData:
			continue
		}
		list, ok := parse(content)
		if !ok || len(list) < few {
			return module
		}
		merged := encode(join(list))
		out := append(make([]byte, 0, len(module)+len(merged)-len(content)+8), module[:start]...)
		out = append(out, sectionData)
		out = binary.AppendUvarint(out, uint64(len(merged)))
		return append(append(out, merged...), r.rest...)
	}
	return module
}

// parse reads a data section and sorts it by address, which changes nothing as
// long as no two segments write the same byte.
func parse(content []byte) ([]segment, bool) {
	r := reader{rest: content}
	n := r.u32()
	var list []segment
	for range n {
		if r.u32() != 0 || r.byte() != 0x41 {
			return nil, false
		}
		at := uint32(r.i32())
		if r.byte() != 0x0b {
			return nil, false
		}
		s := segment{at, r.bytes(r.u32())}
		if r.bad {
			return nil, false
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(list); i++ {
		if uint64(list[i].at) < list[i-1].end() {
			return nil, false
		}
	}
	return list, len(r.rest) == 0
}

// join makes one segment of those with little or nothing between them, where
// memory holds zeros.
func join(list []segment) []segment {
	var out []segment
	for _, s := range list {
		if len(out) > 0 {
			last := &out[len(out)-1]
			if between := uint64(s.at) - last.end(); between <= gap {
				last.data = append(append(last.data, make([]byte, between)...), s.data...)
				continue
			}
		}
		out = append(out, segment{s.at, append([]byte(nil), s.data...)})
	}
	return out
}

func encode(list []segment) []byte {
	b := binary.AppendUvarint(nil, uint64(len(list)))
	for _, s := range list {
		b = append(b, 0, 0x41)
		b = appendI32(b, int32(s.at))
		b = append(b, 0x0b)
		b = binary.AppendUvarint(b, uint64(len(s.data)))
		b = append(b, s.data...)
	}
	return b
}

// appendI32 appends n as signed LEB128.
func appendI32(b []byte, n int32) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// A reader reads the binary format. It is bad after the first thing that is
// not there, and then gives zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u32() uint32 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || size > 5 || n > math.MaxUint32 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return uint32(n)
}

func (r *reader) i32() int32 {
	var n int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		n |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				n |= -1 << (shift + 7)
			}
			return int32(n)
		}
	}
	r.bad = true
	return 0
}
