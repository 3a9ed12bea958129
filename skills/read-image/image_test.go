package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// The WebP files hold 8 x 6 pixels: the left half red, the right half blue.
// golang.org/x/image only reads WebP, so they cannot be made here.
var webps = map[string]string{
	"lossy":          "UklGRkoAAABXRUJQVlA4ID4AAAAwAgCdASoIAAYAAsBMJagCdHIAq//cAAawAAD+78nwR/CeDR5n49NIf/gLtHx6aQ/A/7xPuUO3w2CwYQAAAA==",
	"lossless_alpha": "UklGRigAAABXRUJQVlA4TBsAAAAvB0ABEA8wKAdDPgroA/9jCQBB/N96MBHR/xAA",
	"lossy_alpha":    "UklGRnYAAABXRUJQVlA4WAoAAAAQAAAABwAABQAAQUxQSBIAAAABD/DA/4iIABDE/60HExH9DwFWUDggPgAAADACAJ0BKggABgACwEwlqAJ0cgCr/9wABrAAAP7vyfBH8J4NHmfj00h/+Au0fHppD8D/vE+5Q7fDYLBhAAAA",
	// Two frames: all red, then blue.
	"animated":       "UklGRowAAABXRUJQVlA4WAoAAAACAAAABwAABQAAQU5JTQYAAAAAAAAAAABBTk1GLAAAAAAAAAAAAAcAAAUAAGQAAAJWUDhMFAAAAC8HQAEABxD9j/4HAILwv20iov8hQU5NRiwAAAABAAAAAAAFAAAFAABkAAAAVlA4TBQAAAAvBUABAAcQ0f/+BwCC8L9tIqL/IQ==",
	"animated_lossy": "UklGRsAAAABXRUJQVlA4WAoAAAACAAAABwAABQAAQU5JTQYAAAAAAAAAAABBTk1GSAAAAAAAAAAAAAcAAAUAAGQAAAJWUDggMAAAANABAJ0BKggABgACADQloAJ0ugH4AAOwAP7wxAv/ILlhdcjX/yA/5Af8gP/48gAAAEFOTUZEAAAAAQAAAAAABQAABQAAZAAAAFZQOCAsAAAAlAEAnQEqBgAGAAAANCWgAnS6AAOYAP75k2//kB//kB//kB//ID/iF3sgMAA=",
}

func webpFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(webps[name])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// quarters is an image whose quarters are red, green, blue and white, from the
// upper left, with a little noise where it is a photo.
func quarters(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	seed := uint32(1)
	for y := range h {
		for x := range w {
			c := [4]uint8{0, 0, 0, 255}
			switch {
			case x >= w/2 && y >= h/2:
				c = [4]uint8{240, 240, 240, 255}
			case x >= w/2:
				c[1] = 240
			case y >= h/2:
				c[2] = 240
			default:
				c[0] = 240
			}
			seed = seed*1664525 + 1013904223
			c[seed>>8%3] |= uint8(seed>>28) & 0x0f
			copy(m.Pix[m.PixOffset(x, y):], c[:])
		}
	}
	return m
}

func flat(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	for x := range w / 2 {
		m.SetRGBA(x, h/2, color.RGBA{0, 0, 0, 255})
	}
	return m
}

func encoded(t testing.TB, k kind, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch k {
	case kindPNG:
		err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m)
	case kindJPEG:
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 90})
	case kindGIF:
		err = gif.Encode(&b, m, nil)
	case kindBMP:
		err = bmp.Encode(&b, m)
	case kindTIFF:
		err = tiff.Encode(&b, m, &tiff.Options{Compression: tiff.Deflate})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tiffHead is an EXIF block that holds an orientation.
func tiffHead(order binary.AppendByteOrder, o uint16) []byte {
	b := []byte("II")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM")
	}
	b = order.AppendUint16(b, 42)
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, e := range [][2]uint16{{271, 0}, {274, o}} {
		b = order.AppendUint16(b, e[0])
		b = order.AppendUint16(b, 3)
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(b, e[1])
		b = order.AppendUint16(b, 0)
	}
	return order.AppendUint32(b, 0)
}

// withExif puts an orientation into a JPEG or PNG.
func withExif(k kind, data, exif []byte) []byte {
	if k == kindPNG {
		chunk := append([]byte("eXIf"), exif...)
		out := append([]byte(nil), data[:33]...) // signature and IHDR
		out = binary.BigEndian.AppendUint32(out, uint32(len(exif)))
		out = append(out, chunk...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
		return append(out, data[33:]...)
	}
	out := append([]byte(nil), data[:2]...)
	out = append(out, 0xff, 0xe0, 0, 4, 1, 1) // another segment first
	out = append(out, 0xff, 0xff, 0xe1)       // with a fill byte
	out = binary.BigEndian.AppendUint16(out, uint16(2+len(exifHeader)+len(exif)))
	out = append(append(out, exifHeader...), exif...)
	return append(out, data[2:]...)
}

// bombPNG has a header of w x h pixels and hardly anything behind it.
func bombPNG(w, h uint32) []byte {
	ihdr := []byte("IHDR")
	ihdr = binary.BigEndian.AppendUint32(ihdr, w)
	ihdr = binary.BigEndian.AppendUint32(ihdr, h)
	ihdr = append(ihdr, 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	b = append(b, ihdr...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(ihdr))
}

func animatedGIF(t testing.TB) []byte {
	t.Helper()
	p := color.Palette{color.Transparent, color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}}
	g := &gif.GIF{Config: image.Config{Width: 8, Height: 6, ColorModel: p}}
	for i := range 3 {
		m := image.NewPaletted(image.Rect(2, 2, 8, 6), p)
		for j := range m.Pix {
			m.Pix[j] = uint8(min(i+1, 2))
		}
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, 10)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
