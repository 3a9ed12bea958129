package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"slices"
)

// maxPicture bounds the picture returned: 5 MB as base64.
const maxPicture = 3_750_000

// A picture is what is shown of a source.
type picture struct {
	data   []byte
	mime   string
	w, h   int
	scale  float64
	region *region
	notes  []string
}

// show converts s as asked, or hands on its bytes if they will do.
func (s *source) show(in request) (*picture, error) {
	part := image.Rect(0, 0, s.w, s.h)
	p := &picture{}
	if in.Region != nil {
		r := in.Region
		// An edge beyond the image is cut off; so large a number that it wraps
		// around is too.
		want := image.Rect(min(r.X, s.w), min(r.Y, s.h), min(r.X, s.w)+min(r.W, s.w), min(r.Y, s.h)+min(r.H, s.h))
		if part = want.Intersect(part); part.Empty() {
			return nil, problemf("the region at (%d, %d) of %d x %d lies outside of %q, which has %d x %d pixels", r.X, r.Y, r.W, r.H, s.path, s.w, s.h)
		}
		if part.Dx() != r.W || part.Dy() != r.H {
			p.note("The region was cut off at the edge of the image.")
		}
		p.region = &region{part.Min.X, part.Min.Y, part.Dx(), part.Dy()}
	}
	img, err := s.decode()
	if err != nil {
		return nil, err
	}
	if s.passes(in, img) {
		p.data, p.mime, p.w, p.h, p.scale = s.data, mimes[s.kind], s.w, s.h, 1
		return p, nil
	}
	if s.turn > 1 {
		p.note(fmt.Sprintf("It was turned the right way up (EXIF orientation %d).", s.turn))
	}
	if s.animated {
		p.note("It is animated: only the first frame is shown.")
	}
	longest := min(in.MaxDimension, max(part.Dx(), part.Dy()))
	return p, s.encode(p, img, part, longest, in.Format)
}

// passes reports whether the file can be shown as it is.
func (s *source) passes(in request, img image.Image) bool {
	mime := mimes[s.kind]
	_, cmyk := img.(*image.CMYK) // few who show images know it
	return mime != "" && in.Region == nil && s.turn <= 1 && !s.animated && !cmyk &&
		(in.Format == "auto" || mime == "image/"+in.Format) &&
		max(s.w, s.h) <= in.MaxDimension && len(s.data) <= maxPicture
}

// encode fills p with part of img, longest pixels long or less, so that it is
// no larger than maxPicture.
func (s *source) encode(p *picture, img image.Image, part image.Rectangle, longest int, format string) error {
	b := img.Bounds()
	stored := s.turn.stored(part, b.Dx(), b.Dy())
	photo := s.photo(img)
	for ; ; longest = longest * 3 / 4 {
		p.scale = min(1, float64(longest)/float64(max(part.Dx(), part.Dy())))
		p.w, p.h = scaled(part.Dx(), p.scale), scaled(part.Dy(), p.scale)
		w, h := p.w, p.h
		if s.turn.swaps() {
			w, h = h, w
		}
		small := s.turn.apply(shrink(img, stored, w, h))
		as := format
		if as == "auto" {
			as = "png"
			if photo && small.Opaque() {
				as = "jpeg"
			}
		}
		if as == "png" {
			data, err := encodePNG(small)
			if err != nil {
				return err
			}
			if p.data, p.mime = data, "image/png"; len(data) <= maxPicture {
				return nil
			}
		}
		if as == "jpeg" || format == "auto" && small.Opaque() {
			if err := p.encodeJPEG(small); err != nil || len(p.data) <= maxPicture {
				return err
			}
		}
		if longest <= 16 {
			return problemf("%q does not fit in %s at any size", s.path, amount(maxPicture))
		}
		p.note("It was scaled down further, to fit the size of a picture.")
	}
}

// note adds a sentence for the model, once.
func (p *picture) note(s string) {
	if !slices.Contains(p.notes, s) {
		p.notes = append(p.notes, s)
	}
}

func scaled(n int, scale float64) int { return max(1, int(math.Round(float64(n)*scale))) }

func encodePNG(img *image.RGBA) ([]byte, error) {
	var out bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestSpeed} // the default is ten times slower
	err := e.Encode(&out, img)
	return out.Bytes(), err
}

// encodeJPEG encodes img at the best quality that fits, or the least.
// Transparency, which JPEG has not, becomes white.
func (p *picture) encodeJPEG(img *image.RGBA) error {
	if !img.Opaque() {
		for i := 0; i < len(img.Pix); i += 4 {
			white := 255 - img.Pix[i+3] // pixels are premultiplied
			for c := range 3 {
				img.Pix[i+c] += white
			}
			img.Pix[i+3] = 255
		}
		p.note("Its transparency became white.")
	}
	p.mime = "image/jpeg"
	for _, quality := range []int{85, 70, 50} {
		var out bytes.Buffer
		if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
			return err
		}
		if p.data = out.Bytes(); len(p.data) <= maxPicture {
			return nil
		}
	}
	return nil
}

// photo reports whether JPEG will do for img: it came from a lossy file, or
// few neighbours among its pixels are alike, as they are in drawings, text and
// screenshots.
func (s *source) photo(img image.Image) bool {
	if _, ok := img.(*image.YCbCr); ok || s.kind == kindJPEG {
		return true
	}
	b := img.Bounds()
	row, line := rower(img), make([]uint8, 4*b.Dx())
	alike, all := 0, 0
	for y := b.Min.Y; y < b.Max.Y; y += max(1, b.Dy()/64) {
		row(y, b.Min.X, line)
		for i := 4; i < len(line); i += 4 {
			if [4]uint8(line[i:]) == [4]uint8(line[i-4:]) {
				alike++
			}
			all++
		}
	}
	return alike*5 < all*2
}
