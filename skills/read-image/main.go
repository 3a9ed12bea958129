// Read-image is the skill behind the tool ReadImage: it reads an image file
// and answers with a picture that a model can take, small enough and turned
// the right way up. It trusts nothing about a file but its bytes, and says
// nothing of files that are not images but what they seem to be.
package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

type request struct {
	FilePath     string  `json:"file_path" doc:"The absolute path to the image file" minlen:"1" maxlen:"4096"`
	MaxDimension int     `json:"max_dimension,omitempty" doc:"Longest side of the picture to return, in pixels; larger images are scaled down" min:"16" max:"8000" default:"1568"`
	Region       *region `json:"region,omitempty" doc:"Only this part of the image, in pixels of the original"`
	Format       string  `json:"format,omitempty" doc:"Encoding of the picture to return; auto keeps the file's own where it can" enum:"auto,png,jpeg" default:"auto"`
}

type region struct {
	X int `json:"x" doc:"left edge" min:"0"`
	Y int `json:"y" doc:"upper edge" min:"0"`
	W int `json:"w" doc:"width" min:"1"`
	H int `json:"h" doc:"height" min:"1"`
}

type size struct {
	W     int `json:"w" doc:"width in pixels, 0 if the file does not say"`
	H     int `json:"h" doc:"height in pixels, 0 if the file does not say"`
	Bytes int `json:"bytes"`
}

type reply struct {
	Path     string   `json:"path" doc:"the file that was read"`
	MIME     string   `json:"mime" doc:"type of the picture returned"`
	Original size     `json:"original" doc:"the file, turned the right way up"`
	Shown    size     `json:"shown" doc:"the picture returned"`
	Scale    float64  `json:"scale" doc:"pixels of the picture returned per pixel of the original"`
	SHA256   string   `json:"sha256" doc:"of the file"`
	Region   *region  `json:"region,omitempty" doc:"the part of the original that is shown, if not all of it"`
	Notes    []string `json:"notes,omitempty" doc:"what was done to the image"`
}

var _ = guest.Tool("ReadImage", "Read an image file and display it visually. Takes PNG, JPEG, GIF, WebP, BMP and TIFF "+
	"(large ones are scaled down, EXIF orientation is applied) and SVG, which is returned as text.",
	readImage, guest.Title("Read image"), guest.Annotations{ReadOnly: true, Idempotent: true})

func readImage(c *guest.Call, in request) (guest.Reply[reply], error) {
	r, err := view(c.Scope().Workspace, in)
	var p *problem
	if errors.As(err, &p) {
		return guest.Reply[reply]{Text: p.Error(), Failed: true}, nil
	}
	return r, err
}

// A problem is what is wrong with a file or a request, told to the model.
type problem struct{ text string }

func (p *problem) Error() string { return p.text }

func problemf(format string, args ...any) error { return &problem{fmt.Sprintf(format, args...)} }

// view reads, checks and converts the image that in names.
func view(workspace string, in request) (guest.Reply[reply], error) {
	var none guest.Reply[reply]
	file, err := resolve(workspace, in.FilePath)
	if err != nil {
		return none, err
	}
	data, err := readFile(file)
	if err != nil {
		return none, err
	}
	kind := sniff(data)
	r := reply{Path: file.path, SHA256: digest(data)}
	if kind == kindSVG {
		return svgReply(r, data, in)
	}
	src, err := open(file.path, kind, data)
	if err != nil {
		return none, err
	}
	pic, err := src.show(in)
	if err != nil {
		return none, err
	}
	r.MIME, r.Notes = pic.mime, pic.notes
	r.Original = size{src.w, src.h, len(data)}
	r.Shown = size{pic.w, pic.h, len(pic.data)}
	r.Scale, r.Region = pic.scale, pic.region
	return guest.Reply[reply]{
		Text:       r.String(kind),
		Content:    []sdk.Content{{Type: sdk.TypeImage, MIME: pic.mime, Data: pic.data}},
		Structured: r,
	}, nil
}

// String says what is shown, for the model.
func (r *reply) String(k kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %d x %d pixels, %s", r.Path, k, r.Original.W, r.Original.H, amount(r.Original.Bytes))
	if r.Region != nil {
		fmt.Fprintf(&b, "; shown is the part of %d x %d at (%d, %d)", r.Region.W, r.Region.H, r.Region.X, r.Region.Y)
	}
	if r.Scale != 1 {
		fmt.Fprintf(&b, "; shown at %d x %d, scale %.4g: multiply its coordinates by %.4g for those of the original", r.Shown.W, r.Shown.H, r.Scale, 1/r.Scale)
		if r.Region != nil {
			fmt.Fprintf(&b, " and add (%d, %d)", r.Region.X, r.Region.Y)
		}
	}
	for _, n := range r.Notes {
		b.WriteString("\n" + n)
	}
	return b.String()
}

func amount(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

func main() {}
