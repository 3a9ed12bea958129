package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// read calls the tool as the host does, with the file name beside args.
func read(t *testing.T, path string, args map[string]any) sdk.Result {
	t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["file_path"] = path
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := guest.Run(t.Context(), &guesttest.Host{}, sdk.Input{Tool: "ReadImage", Args: raw, Scope: sdk.Scope{Workspace: filepath.Dir(path)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shown decodes a result that is a picture.
func shown(t *testing.T, r sdk.Result) (reply, image.Image) {
	t.Helper()
	if r.Failed || len(r.Content) != 2 || r.Content[0].Type != sdk.TypeText || r.Content[1].Type != sdk.TypeImage {
		t.Fatalf("not a picture: %+v", r)
	}
	var s reply
	if err := json.Unmarshal(r.Structured, &s); err != nil {
		t.Fatal(err)
	}
	pic := r.Content[1]
	kind := sniff(pic.Data)
	if pic.MIME != s.MIME || mimes[kind] != s.MIME || len(pic.Data) != s.Shown.Bytes || len(pic.Data) > maxPicture {
		t.Fatalf("%s of %d bytes by its content %s, structured %+v", pic.MIME, len(pic.Data), kind, s)
	}
	src, err := open("", kind, pic.Data)
	if err != nil {
		t.Fatal(err)
	}
	m, err := src.decode()
	if err != nil {
		t.Fatal(err)
	}
	if m.Bounds().Dx() != s.Shown.W || m.Bounds().Dy() != s.Shown.H {
		t.Fatalf("%v pixels, structured %+v", m.Bounds(), s)
	}
	return s, m
}

// near fails unless the pixel is about want.
func near(t *testing.T, m image.Image, x, y int, want color.RGBA) {
	t.Helper()
	got := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
	for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B), int(got.A) - int(want.A)} {
		if d > 40 || d < -40 {
			t.Fatalf("pixel (%d, %d) of %v is %v, want about %v", x, y, m.Bounds(), got, want)
		}
	}
}

var (
	red, green, blue = color.RGBA{240, 0, 0, 255}, color.RGBA{0, 240, 0, 255}, color.RGBA{0, 0, 240, 255}
	white            = color.RGBA{240, 240, 240, 255}
)

// TestPassThrough: what fits is shown byte for byte.
func TestPassThrough(t *testing.T) {
	files := map[string][]byte{
		"a.png":       encoded(t, kindPNG, quarters(64, 48)),
		"a.jpg":       encoded(t, kindJPEG, quarters(64, 48)),
		"a.gif":       encoded(t, kindGIF, quarters(64, 48)),
		"wrong.png":   encoded(t, kindJPEG, quarters(64, 48)),
		"noextension": encoded(t, kindPNG, quarters(64, 48)),
		"exif1.jpg":   withExif(kindJPEG, encoded(t, kindJPEG, quarters(64, 48)), tiffHead(binary.LittleEndian, 1)),
	}
	for _, n := range []string{"lossy", "lossless_alpha", "lossy_alpha"} {
		files[n+".webp"] = webpFile(t, n)
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			path := write(t, name, data)
			r := read(t, path, nil)
			s, _ := shown(t, r)
			sum := sha256.Sum256(data)
			if !bytes.Equal(r.Content[1].Data, data) || s.Scale != 1 || s.Original != s.Shown || s.SHA256 != hex.EncodeToString(sum[:]) || s.Path != path || s.Region != nil || s.Notes != nil {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestPhoto: a photo-sized JPEG is turned, scaled and stays a JPEG, and its
// quarters are where they belong.
func TestPhoto(t *testing.T) {
	data := encoded(t, kindJPEG, quarters(4000, 3000))
	for o := 1; o <= 8; o++ {
		t.Run(fmt.Sprint("orientation_", o), func(t *testing.T) {
			order := binary.AppendByteOrder(binary.LittleEndian)
			if o%2 == 0 {
				order = binary.BigEndian
			}
			r := read(t, write(t, "p.jpg", withExif(kindJPEG, data, tiffHead(order, uint16(o)))), nil)
			s, m := shown(t, r)
			w, h := 1568, 1176
			ow, oh := 4000, 3000
			if o >= 5 {
				w, h, ow, oh = h, w, oh, ow
			}
			if s.Shown.W != w || s.Shown.H != h || s.Original.W != ow || s.Original.H != oh || s.MIME != "image/jpeg" || math.Abs(s.Scale-0.392) > 1e-9 {
				t.Errorf("%+v", s)
			}
			corners := map[int][4]color.RGBA{ // upper left, upper right, lower left, lower right
				1: {red, green, blue, white}, 2: {green, red, white, blue}, 3: {white, blue, green, red}, 4: {blue, white, red, green},
				5: {red, blue, green, white}, 6: {blue, red, white, green}, 7: {white, green, blue, red}, 8: {green, white, red, blue},
			}[o]
			near(t, m, w/4, h/4, corners[0])
			near(t, m, 3*w/4, h/4, corners[1])
			near(t, m, w/4, 3*h/4, corners[2])
			near(t, m, 3*w/4, 3*h/4, corners[3])
			if turned := strings.Contains(r.Content[0].Text, "EXIF orientation"); turned != (o > 1) {
				t.Errorf("text %q", r.Content[0].Text)
			}
			// A region is in pixels of the upright original.
			r = read(t, write(t, "p.jpg", withExif(kindJPEG, data, tiffHead(order, uint16(o)))), map[string]any{"region": map[string]int{"x": ow/2 + 10, "y": 10, "w": 200, "h": 100}})
			s, m = shown(t, r)
			if s.Shown.W != 200 || s.Shown.H != 100 || s.Scale != 1 || *s.Region != (region{ow/2 + 10, 10, 200, 100}) {
				t.Errorf("%+v", s)
			}
			near(t, m, 20, 20, corners[1])
			near(t, m, 180, 80, corners[1])
		})
	}
}

func TestTurnedSmallImageIsEncodedAnew(t *testing.T) {
	for k, data := range map[kind][]byte{kindJPEG: encoded(t, kindJPEG, quarters(64, 48)), kindPNG: encoded(t, kindPNG, quarters(64, 48))} {
		s, m := shown(t, read(t, write(t, "x", withExif(k, data, tiffHead(binary.BigEndian, 6))), nil))
		if s.Original.W != 48 || s.Shown.W != 48 || s.Shown.H != 64 {
			t.Errorf("%s: %+v", k, s)
		}
		near(t, m, 40, 10, red)
	}
}

// TestConverted: kinds that models do not take, and choices of encoding.
func TestConverted(t *testing.T) {
	seeThrough := image.NewNRGBA(image.Rect(0, 0, 2000, 1000))
	for i := range seeThrough.Pix {
		seeThrough.Pix[i] = 128
	}
	for name, c := range map[string]struct {
		data []byte
		args map[string]any
		mime string
		w, h int
		note string
	}{
		"bmp_photo":          {encoded(t, kindBMP, quarters(100, 80)), nil, "image/jpeg", 100, 80, ""},
		"bmp_flat":           {encoded(t, kindBMP, flat(100, 80)), nil, "image/png", 100, 80, ""},
		"tiff_photo":         {encoded(t, kindTIFF, quarters(3000, 100)), nil, "image/jpeg", 1568, 52, ""},
		"png_alpha":          {encoded(t, kindPNG, seeThrough), nil, "image/png", 1568, 784, ""},
		"png_alpha_as_jpeg":  {encoded(t, kindPNG, seeThrough), map[string]any{"format": "jpeg"}, "image/jpeg", 1568, 784, "white"},
		"png_flat":           {encoded(t, kindPNG, flat(4000, 3000)), nil, "image/png", 1568, 1176, ""},
		"png_photo":          {encoded(t, kindPNG, quarters(2000, 1000)), nil, "image/jpeg", 1568, 784, ""},
		"png_16_bit":         {encoded(t, kindPNG, image.NewNRGBA64(image.Rect(0, 0, 1600, 100))), nil, "image/png", 1568, 98, ""},
		"gray_jpeg":          {encoded(t, kindJPEG, image.NewGray(image.Rect(0, 0, 1600, 100))), map[string]any{"max_dimension": 160}, "image/jpeg", 160, 10, ""},
		"jpeg_as_png":        {encoded(t, kindJPEG, quarters(100, 80)), map[string]any{"format": "png"}, "image/png", 100, 80, ""},
		"smaller":            {encoded(t, kindPNG, flat(100, 80)), map[string]any{"max_dimension": 50}, "image/png", 50, 40, ""},
		"one_row":            {encoded(t, kindPNG, flat(4000, 1)), nil, "image/png", 1568, 1, ""},
		"one_column":         {encoded(t, kindPNG, flat(1, 4000)), nil, "image/png", 1, 1568, ""},
		"gif_animated":       {animatedGIF(t), nil, "image/png", 8, 6, "first frame"},
		"webp_animated":      {webpFile(t, "animated"), nil, "image/png", 8, 6, "first frame"},
		"webp_animated_loss": {webpFile(t, "animated_lossy"), nil, "image/jpeg", 8, 6, "first frame"},
		"webp_as_png":        {webpFile(t, "lossy"), map[string]any{"format": "png"}, "image/png", 8, 6, ""},
		"webp_alpha_cut":     {webpFile(t, "lossy_alpha"), map[string]any{"region": region{0, 0, 4, 4}}, "image/png", 4, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, write(t, "x", c.data), c.args)
			s, _ := shown(t, r)
			if s.MIME != c.mime || s.Shown.W != c.w || s.Shown.H != c.h || c.note != "" && !strings.Contains(strings.Join(s.Notes, ""), c.note) || c.note == "" && s.Notes != nil {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestFirstFrameOnItsCanvas(t *testing.T) {
	_, m := shown(t, read(t, write(t, "a.gif", animatedGIF(t)), nil))
	near(t, m, 0, 0, color.RGBA{})
	near(t, m, 4, 4, color.RGBA{255, 0, 0, 255})
	_, m = shown(t, read(t, write(t, "a.webp", webpFile(t, "animated")), nil))
	near(t, m, 1, 1, color.RGBA{255, 0, 0, 255})
	near(t, m, 6, 4, color.RGBA{255, 0, 0, 255})
}

// TestPictureFits: what does not fit at the size asked for is made to fit.
func TestPictureFits(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 2100, 1700))
	seed := uint32(7)
	for i := range noise.Pix {
		seed = seed*1664525 + 1013904223
		noise.Pix[i] = uint8(seed >> 24)
	}
	s, _ := shown(t, read(t, write(t, "alpha.png", encoded(t, kindPNG, noise)), map[string]any{"max_dimension": 3000}))
	if s.MIME != "image/png" || s.Shown.W >= 2100 || len(s.Notes) != 1 {
		t.Errorf("%+v", s)
	}
	for i := 3; i < len(noise.Pix); i += 4 {
		noise.Pix[i] = 255
	}
	s, _ = shown(t, read(t, write(t, "photo.png", encoded(t, kindPNG, noise)), map[string]any{"max_dimension": 3000}))
	if s.MIME != "image/jpeg" {
		t.Errorf("%+v", s)
	}
}

func TestRegion(t *testing.T) {
	path := write(t, "q.png", encoded(t, kindPNG, quarters(400, 200)))
	s, m := shown(t, read(t, path, map[string]any{"region": region{150, 90, 400, 400}, "max_dimension": 25}))
	if *s.Region != (region{150, 90, 250, 110}) || s.Shown.W != 25 || s.Shown.H != 11 || s.Scale != 0.1 || s.Original.W != 400 || len(s.Notes) != 1 {
		t.Errorf("%+v", s)
	}
	near(t, m, 1, 8, blue)
	near(t, m, 20, 8, white)
	for _, r := range []region{{400, 0, 1, 1}, {0, 200, 5, 5}, {math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}} {
		if res := read(t, path, map[string]any{"region": r}); !res.Failed || !strings.Contains(res.Content[0].Text, "outside") {
			t.Errorf("%v: %+v", r, res)
		}
	}
	if s, _ = shown(t, read(t, path, map[string]any{"region": region{399, 199, math.MaxInt, math.MaxInt}})); s.Shown.W != 1 || s.Shown.H != 1 {
		t.Errorf("%+v", s)
	}
}

const secret = "root:x:0:0:secret"

// TestRefused: every bad file is told in words, without what is in it.
func TestRefused(t *testing.T) {
	png, jpg, tif := encoded(t, kindPNG, quarters(64, 48)), encoded(t, kindJPEG, quarters(64, 48)), encoded(t, kindTIFF, quarters(64, 48))
	bigVP8L := append([]byte("RIFF\x2c\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x05\x00\x00VP8L\x0a\x00\x00\x00\x2f"), 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"zero_bytes.png":        {nil, "is empty"},
		"html.png":              {[]byte("\n<!DOCTYPE html><html>" + secret), "an HTML page"},
		"passwd.png":            {[]byte(secret + "\n"), "it is text"},
		"json.jpg":              {[]byte(`{"a":"` + secret + `"}`), "JSON"},
		"xml.svg":               {[]byte(`<?xml version="1.0"?><project>` + secret), "XML"},
		"not_svg_root.svg":      {[]byte(`<!-- <svg> --><html><svg>` + secret), "markup"},
		"pdf.png":               {[]byte("%PDF-1.7 " + secret), "a PDF document"},
		"avif.png":              {[]byte("\x00\x00\x00\x1cftypavif" + secret), "convert it"},
		"lfs.png":               {[]byte("version https://git-lfs.github.com/spec/v1\n" + secret), "LFS"},
		"random.png":            {[]byte("\x01\x02\x03" + secret), "no known kind"},
		"magic_only.png":        {png[:8], "corrupt"},
		"magic_only.jpg":        {jpg[:3], "corrupt"},
		"magic_only.gif":        {[]byte("GIF89a"), "corrupt"},
		"magic_only.webp":       {[]byte("RIFF\x04\x00\x00\x00WEBP"), "corrupt"},
		"magic_only.tif":        {[]byte("II*\x00"), "corrupt"},
		"magic_only.bmp":        {[]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00"), "corrupt"},
		"truncated.png":         {png[:len(png)/2], "corrupt"},
		"truncated.jpg":         {jpg[:len(jpg)/2], "corrupt"},
		"truncated.tif":         {tif[:len(tif)/2], "corrupt"},
		"truncated.webp":        {webpFile(t, "lossy_alpha")[:70], "corrupt"},
		"truncated_anim.webp":   {webpFile(t, "animated")[:60], "corrupt"},
		"no_pixels.png":         {bombPNG(0, 5), "corrupt"},
		"bomb.png":              {bombPNG(60000, 60000), "60000 x 60000"},
		"bomb_wraps.png":        {bombPNG(1<<31-1, 1<<31-1), "corrupt"},
		"bomb_inner_frame.webp": {bigVP8L, "16384 x 16384"},
		"too_large.png":         {append(bytes.Clone(png), make([]byte, maxFile)...), "20 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, write(t, name, c.data), nil)
			if !r.Failed || len(r.Content) != 1 || r.Structured != nil {
				t.Fatalf("%+v", r)
			}
			if text := r.Content[0].Text; !strings.Contains(text, c.want) || !strings.Contains(text, name) || strings.Contains(text, "secret") {
				t.Errorf("text %q", text)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	path := write(t, "picture.png", encoded(t, kindPNG, flat(4, 4)))
	dir := filepath.Dir(path)
	for _, n := range []string{"pictures.jpg", "Picture2.png", "unrelated.txt"} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, _ := shown(t, read(t, filepath.Join(dir, ".", "x", "..", "picture.png"), nil)); s.Path != path {
		t.Errorf("path %q", s.Path)
	}
	// A relative path is below the workspace.
	raw, _ := json.Marshal(map[string]string{"file_path": "picture.png"})
	r, err := guest.Run(t.Context(), &guesttest.Host{}, sdk.Input{Tool: "ReadImage", Args: raw, Scope: sdk.Scope{Workspace: dir}})
	if err != nil || r.Failed {
		t.Errorf("relative: %+v, %v", r, err)
	}
	for p, want := range map[string]string{
		filepath.Join(dir, "pictur.png"):  `similar names there: "picture.png", "Picture2.png"`,
		filepath.Join(dir, "nothing.xyz"): `no such file`,
		dir:                               "is a directory",
		"~/picture.png":                   "not expanded",
		"https://example.com/x.png":       "URL",
		"file:///etc/x.png":               "URL",
		"a\x00b":                          "NUL",
		path + "/x":                       path,
	} {
		if r := read(t, p, nil); !r.Failed || !strings.Contains(r.Content[0].Text, want) || strings.Contains(r.Content[0].Text, "unrelated") {
			t.Errorf("%q: %+v", p, r)
		}
	}
	if os.Geteuid() != 0 && os.PathSeparator == '/' {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if r := read(t, path, nil); !r.Failed || !strings.Contains(r.Content[0].Text, "permission denied: this tool may not read there") {
			t.Errorf("denied: %+v", r)
		}
	}
	if err := unreadable(place{"/x", "/x"}, &os.PathError{Op: "open", Path: "/x", Err: os.ErrPermission}); !strings.Contains(err.Error(), "may not read there") {
		t.Error(err)
	}
}

func TestSVG(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		w, h int
	}{
		"plain":     {`<svg width="30" height="20px"><g/></svg>`, 30, 20},
		"viewbox":   {"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a > b -->\n<!DOCTYPE svg [<!ENTITY a \"b\">]>\n<svg\n viewBox='0 0 24.4 12'>é</svg>", 24, 12},
		"prefix":    {`<svg:svg stroke-width="9" height="5" width="6"/>`, 6, 5},
		"no_size":   {`<svg/>`, 0, 0},
		"bad_sizes": {`<svg width="100%" height="NaN" viewBox="0 0 1"></svg>`, 0, 0},
	} {
		r := read(t, write(t, name, []byte(c.text)), nil)
		var s reply
		if err := json.Unmarshal(r.Structured, &s); err != nil || r.Failed || len(r.Content) != 1 {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		if s.MIME != "image/svg+xml" || s.Original.W != c.w || s.Original.H != c.h || !strings.HasSuffix(r.Content[0].Text, c.text) {
			t.Errorf("%s: %+v %q", name, s, r.Content[0].Text)
		}
	}
	long := "<svg>\n" + strings.Repeat("<é/>\n", 20_000) + "</svg>\n"
	r := read(t, write(t, "long.svg", []byte(long)), nil)
	text := r.Content[0].Text
	if n := len([]rune(text)); n > maxText+500 || !strings.HasSuffix(text, "</svg>\n") || !strings.Contains(text, "characters left out") || strings.Contains(text, "\ufffd") {
		t.Errorf("%d characters, from %q to %q", n, text[:80], text[len(text)-20:])
	}
	if r := read(t, write(t, "a.svg", []byte("<svg>\xff")), nil); !r.Failed {
		t.Errorf("%+v", r)
	}
	if r := read(t, write(t, "a.svg", []byte("<svg>")), map[string]any{"format": "png"}); !r.Failed {
		t.Errorf("%+v", r)
	}
}

// TestShrinkKeepsTheMean holds shrink to its definition, computed plainly.
func TestShrinkKeepsTheMean(t *testing.T) {
	for _, c := range [][4]int{{7, 5, 7, 5}, {7, 5, 3, 2}, {100, 3, 99, 1}, {16, 16, 1, 1}, {1000, 2, 3, 2}, {5, 9, 2, 9}} {
		w, h, dw, dh := c[0], c[1], c[2], c[3]
		src := quarters(w+2, h+2)
		for i := range src.Pix {
			src.Pix[i] = uint8(i * i * 31 / 7)
		}
		got := shrink(src, image.Rect(1, 1, w+1, h+1), dw, dh)
		for y := range dh {
			for x := range dw {
				var want [4]float64
				for sy := range h {
					for sx := range w {
						area := overlap(sx, x, w, dw) * overlap(sy, y, h, dh)
						for c := range want {
							want[c] += area * float64(src.Pix[src.PixOffset(sx+1, sy+1)+c])
						}
					}
				}
				for c := range want {
					mean := want[c] * float64(dw) / float64(w) * float64(dh) / float64(h)
					if d := float64(got.Pix[got.PixOffset(x, y)+c]) - mean; math.Abs(d) > 0.51 {
						t.Fatalf("%d x %d to %d x %d: (%d, %d) channel %d is off by %v", w, h, dw, dh, x, y, c, d)
					}
				}
			}
		}
	}
}

// TestRows: every kind of image gives the pixels that its At gives.
func TestRows(t *testing.T) {
	from := quarters(9, 4)
	for i := range from.Pix {
		from.Pix[i] = uint8(i * 37)
	}
	r := from.Rect
	palette := color.Palette{color.Transparent, color.NRGBA{9, 200, 30, 255}, color.NRGBA{200, 10, 30, 100}}
	for _, m := range []draw.Image{image.NewNRGBA(r), image.NewRGBA64(r), image.NewNRGBA64(r), image.NewGray(r), image.NewGray16(r), image.NewCMYK(r), image.NewPaletted(r, palette)} {
		for y := range 4 {
			for x := range 9 {
				m.Set(x, y, color.NRGBA{uint8(x * 28), uint8(y * 80), 99, uint8(255 - x*y*9)})
			}
		}
		row := rower(m)
		for y := range 4 {
			got := make([]uint8, 4*7)
			row(y, 2, got)
			for x := range 7 {
				r, g, b, a := m.At(x+2, y).RGBA()
				for c, want := range []uint32{r, g, b, a} {
					if d := int(got[4*x+c]) - int(want>>8); d > 1 || d < -1 {
						t.Fatalf("%T (%d, %d) channel %d: got %d, want %d", m, x+2, y, c, got[4*x+c], want>>8)
					}
				}
			}
		}
	}
}

// overlap is how much of source pixel s column d covers.
func overlap(s, d, n, m int) float64 {
	lo, hi := float64(d)*float64(n)/float64(m), float64(d+1)*float64(n)/float64(m)
	return max(0, min(hi, float64(s+1))-max(lo, float64(s)))
}

// FuzzView: whatever a file holds, the tool answers or refuses, and never
// shows more than it may.
func FuzzView(f *testing.F) {
	f.Add(encoded(f, kindPNG, quarters(9, 7)), 16, 1)
	f.Add(withExif(kindJPEG, encoded(f, kindJPEG, quarters(20, 17)), tiffHead(binary.BigEndian, 5)), 16, 0)
	f.Add(encoded(f, kindTIFF, quarters(5, 5)), 16, 2)
	f.Add(encoded(f, kindBMP, quarters(5, 5)), 16, 0)
	f.Add(animatedGIF(f), 16, 0)
	for n := range webps {
		f.Add(webpFile(f, n), 16, 0)
	}
	f.Add([]byte(`<!DOCTYPE svg [<!ENTITY a "b">]><svg width="3" viewBox="0 0 1 1">`), 16, 0)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, longest, cut int) {
		if k := sniff(data); codecs[k].config != nil {
			// Large pictures are allowed but make the fuzzer slow.
			if s, err := open("x", k, data); err != nil || s.w*s.h > 1<<16 {
				return
			}
		}
		path := filepath.Join(dir, "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		in := request{FilePath: path, MaxDimension: max(16, longest&0xff), Format: "auto"}
		if cut > 0 {
			in.Region = &region{0, 0, cut, cut}
		}
		r, err := view("", in)
		if err != nil {
			if _, ok := err.(*problem); !ok {
				t.Fatal(err)
			}
			return
		}
		for _, c := range r.Content {
			if len(c.Data) > maxPicture || r.Structured.Shown.W > in.MaxDimension || r.Structured.Shown.H > in.MaxDimension {
				t.Fatalf("%+v", r.Structured)
			}
		}
	})
}
