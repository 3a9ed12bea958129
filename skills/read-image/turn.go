package main

import "image"

// A turn is an EXIF orientation, 1 to 8: how stored pixels have to be turned
// to be the right way up.
type turn int

// swaps reports whether width and height change places.
func (t turn) swaps() bool { return t >= 5 }

// from returns the stored pixel that is at (x, y) after the turn, for stored
// pixels of w x h.
func (t turn) from(x, y, w, h int) (int, int) {
	switch t {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, h - 1 - x
	case 7:
		return w - 1 - y, h - 1 - x
	case 8:
		return w - 1 - y, x
	}
	return x, y
}

// stored returns the stored part that becomes r after the turn, for stored
// pixels of w x h.
func (t turn) stored(r image.Rectangle, w, h int) image.Rectangle {
	x0, y0 := t.from(r.Min.X, r.Min.Y, w, h)
	x1, y1 := t.from(r.Max.X-1, r.Max.Y-1, w, h)
	return image.Rect(min(x0, x1), min(y0, y1), max(x0, x1)+1, max(y0, y1)+1)
}

// apply returns img the right way up.
func (t turn) apply(img *image.RGBA) *image.RGBA {
	if t <= 1 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if t.swaps() {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sx, sy := t.from(x, y, w, h)
			copy(out.Pix[out.PixOffset(x, y):][:4], img.Pix[img.PixOffset(sx, sy):][:4])
		}
	}
	return out
}
