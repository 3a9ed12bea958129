package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// maxPixels bounds what is decoded: 50 megapixels.
const maxPixels = 50_000_000

// A source is an image file whose header has been read and found sane.
type source struct {
	path     string
	kind     kind
	data     []byte
	w, h     int // the right way up
	turn     turn
	animated bool
}

// codecs decode each kind. Animations are decoded by first.
var codecs = map[kind]struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}{
	kindPNG:  {png.DecodeConfig, png.Decode},
	kindJPEG: {jpeg.DecodeConfig, jpeg.Decode},
	kindGIF:  {gif.DecodeConfig, gif.Decode},
	kindWebP: {webp.DecodeConfig, webp.Decode},
	kindBMP:  {bmp.DecodeConfig, bmp.Decode},
	kindTIFF: {tiff.DecodeConfig, tiff.Decode},
}

// open reads the header of an image and refuses one that is too large to
// decode before anything is decoded.
func open(path string, k kind, data []byte) (*source, error) {
	codec, ok := codecs[k]
	if !ok {
		return nil, notAnImage(path, k)
	}
	s := &source{path: path, kind: k, data: data}
	var c image.Config
	err := guard(func() (err error) { c, err = codec.config(bytes.NewReader(data)); return err })
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = errors.New("it has no pixels")
	}
	if err != nil {
		return nil, k.corrupt(path, err)
	}
	sizes := []image.Point{{c.Width, c.Height}}
	switch k {
	case kindGIF:
		s.animated = gifFrames(data) > 1
	case kindWebP:
		var inner []image.Point
		inner, s.animated = webpFrames(data)
		sizes = append(sizes, inner...)
	}
	for _, z := range sizes {
		if z.X > maxPixels || z.Y > maxPixels || z.X*z.Y > maxPixels {
			return nil, problemf("%q is too large: %d x %d pixels, and at most %d megapixels are decoded (make a smaller copy first)", path, z.X, z.Y, maxPixels/1_000_000)
		}
	}
	s.w, s.h, s.turn = c.Width, c.Height, turn(orientation(k, data))
	if s.turn.swaps() {
		s.w, s.h = s.h, s.w
	}
	return s, nil
}

// decode returns the pixels as stored, all of them, or fails: an image that
// breaks off would be refused by whoever is shown it.
func (s *source) decode() (img image.Image, err error) {
	err = guard(func() error {
		if s.kind == kindWebP && s.animated {
			img, err = webpFirst(s.data)
		} else {
			img, err = codecs[s.kind].decode(bytes.NewReader(s.data))
		}
		return err
	})
	if err != nil {
		return nil, s.kind.corrupt(s.path, err)
	}
	w, h := s.w, s.h
	if s.turn.swaps() {
		w, h = h, w
	}
	return onCanvas(img, img.Bounds().Min, w, h), nil
}

// guard turns a decoder's panic into an error: files are hostile.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return f()
}

// onCanvas returns img on a transparent canvas of w x h if it does not fill it
// from (0, 0) by itself.
func onCanvas(img image.Image, at image.Point, w, h int) image.Image {
	full := image.Rect(0, 0, w, h)
	if img.Bounds() == full {
		return img
	}
	canvas := image.NewRGBA(full)
	draw.Draw(canvas, image.Rectangle{Min: at, Max: at.Add(img.Bounds().Size())}, img, img.Bounds().Min, draw.Src)
	return canvas
}

// gifFrames counts the images in a GIF, up to two.
func gifFrames(b []byte) (n int) {
	if len(b) < 13 {
		return 0
	}
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	at := 13 + table(b[10])
	skipBlocks := func() {
		for at < len(b) && b[at] != 0 {
			at += int(b[at]) + 1
		}
		at++
	}
	for at < len(b) && n < 2 {
		switch b[at] {
		case 0x21:
			at += 2
			skipBlocks()
		case 0x2c:
			n++
			if at+9 >= len(b) {
				return n
			}
			at += 10 + table(b[at+9]) + 1
			skipBlocks()
		default:
			return n
		}
	}
	return n
}

// webpFrames returns the sizes that the bitstreams in a WebP file name, which
// need not be the canvas's, and whether it is an animation.
func webpFrames(data []byte) (sizes []image.Point, animated bool) {
	var visit func(id string, b []byte) bool
	visit = func(id string, b []byte) bool {
		switch {
		case id == "VP8X" && len(b) > 0:
			animated = b[0]&0x02 != 0
		case id == "VP8 " && len(b) >= 10:
			sizes = append(sizes, image.Pt(int(binary.LittleEndian.Uint16(b[6:]))&0x3fff, int(binary.LittleEndian.Uint16(b[8:]))&0x3fff))
		case id == "VP8L" && len(b) >= 5:
			n := binary.LittleEndian.Uint32(b[1:])
			sizes = append(sizes, image.Pt(int(n&0x3fff)+1, int(n>>14&0x3fff)+1))
		case id == "ANMF" && len(b) > 16:
			chunks(b[16:], visit)
			return len(sizes) == 0 // the first frame is enough
		}
		return true
	}
	chunks(data[12:], visit)
	return sizes, animated
}

// webpFirst decodes the first frame of an animation: golang.org/x/image reads
// still images only, so the frame is wrapped as one.
func webpFirst(data []byte) (img image.Image, err error) {
	err = errors.New("it has no frame")
	var canvas image.Point
	chunks(data[12:], func(id string, b []byte) bool {
		if id == "VP8X" && len(b) >= 10 {
			canvas = image.Pt(int24(b[4:])+1, int24(b[7:])+1)
		}
		if id != "ANMF" || len(b) <= 16 {
			return true
		}
		at := image.Pt(2*int24(b), 2*int24(b[3:]))
		still := []byte("RIFF\x00\x00\x00\x00WEBP")
		if string(b[16:min(20, len(b))]) == "ALPH" {
			still = append(still, "VP8X\x0a\x00\x00\x00\x10\x00\x00\x00"...)
			still = append(still, b[6:12]...) // width and height, less one
		}
		still = append(still, b[16:]...)
		binary.LittleEndian.PutUint32(still[4:], uint32(len(still)-8))
		if img, err = webp.Decode(bytes.NewReader(still)); err == nil {
			img = onCanvas(img, at, canvas.X, canvas.Y)
		}
		return false
	})
	return img, err
}

func int24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
