package main

import (
	"encoding/binary"
	"image"
	"image/color"
)

// shrink returns the part r of img in w x h pixels, at most as many as r has.
// Every pixel is the mean of the area it stands for, which keeps the thin
// lines of screenshots that a two-by-two filter drops, and it needs no copy of
// the whole image: rows are converted and summed one at a time.
func shrink(img image.Image, r image.Rectangle, w, h int) *image.RGBA {
	if m, ok := img.(*image.YCbCr); ok {
		if out := shrinkYCbCr(m, r, w, h); out != nil {
			return out
		}
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	columns := spans(r.Dx(), w)
	row := rower(img)
	source := make([]uint8, 4*r.Dx())
	flatten(4*w, r.Dy(), h, func(y int, narrow []uint32) {
		row(r.Min.Y+y, r.Min.X, source)
		narrowRow(narrow, source, columns, r.Dx(), w)
	}, out.Pix)
	return out
}

// shrinkYCbCr shrinks the three planes of a photo, which is several times less
// work, and makes colours of what is left. It returns nil if there are fewer
// colour samples than pixels wanted.
func shrinkYCbCr(m *image.YCbCr, r image.Rectangle, w, h int) *image.RGBA {
	chroma := image.Rectangle{}
	chroma.Min.Y, chroma.Min.X = divmod(m.COffset(r.Min.X, r.Min.Y), m.CStride)
	chroma.Max.Y, chroma.Max.X = divmod(m.COffset(r.Max.X-1, r.Max.Y-1), m.CStride)
	chroma.Max = chroma.Max.Add(image.Pt(1, 1))
	if chroma.Dx() < w || chroma.Dy() < h {
		return nil
	}
	luma := r.Sub(m.Rect.Min)
	y := shrinkPlane(m.Y, m.YStride, luma, w, h)
	cb, cr := shrinkPlane(m.Cb, m.CStride, chroma, w, h), shrinkPlane(m.Cr, m.CStride, chroma, w, h)
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range y {
		p := out.Pix[4*i : 4*i+4]
		p[0], p[1], p[2] = color.YCbCrToRGB(y[i], cb[i], cr[i])
		p[3] = 255
	}
	return out
}

func divmod(n, by int) (int, int) { return n / by, n % by }

// shrinkPlane is shrink for one byte a pixel.
func shrinkPlane(pix []uint8, stride int, r image.Rectangle, w, h int) []uint8 {
	out := make([]uint8, w*h)
	columns := spans(r.Dx(), w)
	n := uint64(r.Dx())
	flatten(w, r.Dy(), h, func(y int, narrow []uint32) {
		row := pix[(r.Min.Y+y)*stride+r.Min.X:][:r.Dx()]
		for i, s := range columns {
			var full uint32
			for _, v := range row[s.from:s.to] {
				full += uint32(v)
			}
			sum := uint64(full) * uint64(w)
			if s.before > 0 {
				sum += uint64(row[s.from-1]) * s.before
			}
			if s.after > 0 {
				sum += uint64(row[s.to]) * s.after
			}
			narrow[i] = uint32(sum * 257 / n)
		}
	}, out)
	return out
}

// flatten takes the mean of n rows of so many values, which row gives with 16
// bits each, into h rows of 8 bits.
func flatten(values, n, h int, row func(y int, narrow []uint32), out []uint8) {
	narrow, sum := make([]uint32, values), make([]uint64, values)
	// A row given is h units high and one of out is n, so that all weights are
	// whole numbers.
	high := uint64(n)
	room := high
	for y := range n {
		row(y, narrow)
		for left := uint64(h); left > 0; {
			weight := min(left, room)
			for i, v := range narrow {
				sum[i] += uint64(v) * weight
			}
			left, room = left-weight, room-weight
			if room == 0 {
				for i := range sum {
					out[i] = uint8((sum[i]/high + 128) / 257)
					sum[i] = 0
				}
				out, room = out[values:], high
			}
		}
	}
}

// A span is the source pixels of one column: all of [from, to), and shares of
// the pixels before and after, in units of which a pixel has as many as there
// are columns.
type span struct {
	from, to      int
	before, after uint64
}

// spans divides n source pixels into w columns.
func spans(n, w int) []span {
	all := make([]span, w)
	for i := range all {
		lo, hi := i*n, (i+1)*n // in units of 1/w pixel
		s := span{from: (lo + w - 1) / w, to: hi / w}
		s.before, s.after = uint64(s.from*w-lo), uint64(hi-s.to*w)
		all[i] = s
	}
	return all
}

// narrowRow sums the 8-bit source into columns of 16 bits a channel.
func narrowRow(dst []uint32, src []uint8, columns []span, n, w int) {
	for i, s := range columns {
		var sums [4]uint64
		for full := src[4*s.from : 4*s.to]; len(full) > 0; {
			// Two channels are added at once, in 16 bits each: room for 257 pixels.
			part := full[:min(len(full), 4*257)]
			full = full[len(part):]
			var rb, ga uint32
			for len(part) >= 4 {
				v := binary.LittleEndian.Uint32(part)
				rb, ga, part = rb+v&0xff00ff, ga+v>>8&0xff00ff, part[4:]
			}
			sums[0], sums[2] = sums[0]+uint64(rb&0xffff), sums[2]+uint64(rb>>16)
			sums[1], sums[3] = sums[1]+uint64(ga&0xffff), sums[3]+uint64(ga>>16)
		}
		for c := range sums {
			sums[c] *= uint64(w)
			if s.before > 0 {
				sums[c] += uint64(src[4*(s.from-1)+c]) * s.before
			}
			if s.after > 0 {
				sums[c] += uint64(src[4*s.to+c]) * s.after
			}
			dst[4*i+c] = uint32(sums[c] * 257 / uint64(n))
		}
	}
}

// rower returns a function that writes the pixels of row y from column x on,
// with premultiplied alpha, until dst is full.
func rower(img image.Image) func(y, x int, dst []uint8) {
	switch m := img.(type) {
	case *image.YCbCr:
		return func(y, x int, dst []uint8) {
			for i := 0; i < len(dst); i, x = i+4, x+1 {
				yi, ci := m.YOffset(x, y), m.COffset(x, y)
				dst[i], dst[i+1], dst[i+2] = color.YCbCrToRGB(m.Y[yi], m.Cb[ci], m.Cr[ci])
				dst[i+3] = 255
			}
		}
	case *image.RGBA:
		return func(y, x int, dst []uint8) { copy(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.Gray:
		return func(y, x int, dst []uint8) {
			for i, v := range m.Pix[m.PixOffset(x, y):][:len(dst)/4] {
				dst[4*i], dst[4*i+1], dst[4*i+2], dst[4*i+3] = v, v, v, 255
			}
		}
	case *image.NRGBA:
		return func(y, x int, dst []uint8) {
			src := m.Pix[m.PixOffset(x, y):]
			copy(dst, src)
			premultiply(dst)
		}
	case *image.RGBA64:
		return func(y, x int, dst []uint8) { highBytes(dst, m.Pix[m.PixOffset(x, y):]) }
	case *image.NRGBA64:
		return func(y, x int, dst []uint8) {
			highBytes(dst, m.Pix[m.PixOffset(x, y):])
			premultiply(dst)
		}
	case *image.Paletted:
		palette := make([][4]uint8, 256) // an index past the palette is transparent
		for i, c := range m.Palette {
			r, g, b, a := c.RGBA()
			palette[i] = [4]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}
		}
		return func(y, x int, dst []uint8) {
			for i, v := range m.Pix[m.PixOffset(x, y):][:len(dst)/4] {
				copy(dst[4*i:], palette[v][:])
			}
		}
	}
	at := func(x, y int) color.RGBA64 {
		r, g, b, a := img.At(x, y).RGBA()
		return color.RGBA64{R: uint16(r), G: uint16(g), B: uint16(b), A: uint16(a)}
	}
	if m, ok := img.(image.RGBA64Image); ok {
		at = m.RGBA64At
	}
	return func(y, x int, dst []uint8) {
		for i := 0; i < len(dst); i, x = i+4, x+1 {
			c := at(x, y)
			dst[i], dst[i+1], dst[i+2], dst[i+3] = uint8(c.R>>8), uint8(c.G>>8), uint8(c.B>>8), uint8(c.A>>8)
		}
	}
}

func premultiply(p []uint8) {
	for i := 0; i < len(p); i += 4 {
		if a := uint32(p[i+3]); a < 255 {
			for c := range 3 {
				p[i+c] = uint8((uint32(p[i+c])*a + 127) / 255)
			}
		}
	}
}

// highBytes makes 8 bits of 16, the higher of which come first.
func highBytes(dst, src []uint8) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = src[2*i]
	}
}
