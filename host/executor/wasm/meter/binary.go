package meter

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// A reader decodes the binary format. After the first error it returns zeros
// and stays at the end, so that loops over it end.
type reader struct {
	b   []byte
	p   int
	err error
}

var errShort = errors.New("ends too early")

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.p = len(r.b)
}

func (r *reader) more() bool { return r.err == nil && r.p < len(r.b) }

func (r *reader) byte() byte {
	if r.p >= len(r.b) {
		if r.err == nil {
			r.err = errShort
		}
		return 0
	}
	c := r.b[r.p]
	r.p++
	return c
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.p) {
		r.fail("%w", errShort)
		return nil
	}
	s := r.b[r.p : r.p+int(n)]
	r.p += int(n)
	return s
}

// u32 reads an unsigned LEB128 number of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := uint(0); shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				r.fail("number over 32 bits")
			}
			if r.err != nil {
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("number over 32 bits")
	return 0
}

// signed reads a signed LEB128 number of at most size bits.
func (r *reader) signed(size uint) int64 {
	var v int64
	for shift := uint(0); ; {
		c := r.byte()
		last := shift + 7
		v |= int64(c&0x7f) << shift
		if last >= size { // the unused bits must repeat the sign
			sign := int8(c<<1) >> 1 >> (size - shift - 1)
			if c >= 0x80 || sign != 0 && sign != -1 {
				r.fail("number over %d bits", size)
				return 0
			}
		}
		shift = last
		if r.err != nil {
			return 0
		}
		if c < 0x80 {
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// count reads the length of a vector whose elements take at least one byte.
func (r *reader) count(what string, limit int) uint32 {
	n := r.u32()
	if r.err == nil && (int64(n) > int64(limit) || int64(n) > int64(len(r.b)-r.p)) {
		r.fail("%d %s are too many", n, what)
		return 0
	}
	return n
}

// index reads an index that must be below n.
func (r *reader) index(what string, n uint32) uint32 {
	i := r.u32()
	if r.err == nil && i >= n {
		r.fail("%s %d does not exist", what, i)
		return 0
	}
	return i
}

func (r *reader) name() string {
	s := string(r.bytes(r.u32()))
	if r.err == nil && !utf8.ValidString(s) {
		r.fail("a name is not UTF-8")
	}
	return s
}

// A writer encodes the binary format.
type writer struct{ b []byte }

func (w *writer) byte(c ...byte) { w.b = append(w.b, c...) }

func (w *writer) u32(v uint32) {
	for v >= 0x80 {
		w.b = append(w.b, byte(v)|0x80)
		v >>= 7
	}
	w.b = append(w.b, byte(v))
}

func (w *writer) signed(v int64) {
	for {
		c, sign := byte(v&0x7f), v>>6
		v >>= 7
		if sign == 0 || sign == -1 {
			w.b = append(w.b, c)
			return
		}
		w.b = append(w.b, c|0x80)
	}
}

func (w *writer) name(s string) {
	w.u32(uint32(len(s)))
	w.b = append(w.b, s...)
}

// section appends a section with body's contents.
func (w *writer) section(id byte, body *writer) {
	w.byte(id)
	w.u32(uint32(len(body.b)))
	w.b = append(w.b, body.b...)
}
