package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// A kind is what a file's first bytes say it is. Its text names it to people.
type kind string

const (
	kindPNG  kind = "PNG"
	kindJPEG kind = "JPEG"
	kindGIF  kind = "GIF"
	kindWebP kind = "WebP"
	kindBMP  kind = "BMP"
	kindTIFF kind = "TIFF"
	kindSVG  kind = "SVG"
)

// mimes are the kinds that models take as they are.
var mimes = map[kind]string{kindPNG: "image/png", kindJPEG: "image/jpeg", kindGIF: "image/gif", kindWebP: "image/webp"}

// magics tell files apart; "?" stands for any byte. What is not an image is
// named so that the refusal helps.
var magics = []struct {
	magic string
	kind  kind
}{
	{"\x89PNG\r\n\x1a\n", kindPNG},
	{"\xff\xd8\xff", kindJPEG},
	{"GIF87a", kindGIF},
	{"GIF89a", kindGIF},
	{"RIFF????WEBP", kindWebP},
	{"BM????\x00\x00\x00\x00", kindBMP},
	{"II*\x00", kindTIFF},
	{"MM\x00*", kindTIFF},
	{"????ftypavi", "an AVIF image"},
	{"????ftyphei", "a HEIC image"},
	{"????ftypmif1", "a HEIF image"},
	{"????ftyp", "an MP4 or QuickTime file"},
	{"\x00\x00\x01\x00", "an icon (ICO)"},
	{"8BPS", "a Photoshop document"},
	{"\x00\x00\x00\x0cJXL ", "a JPEG XL image"},
	{"\xff\x0a", "a JPEG XL image"},
	{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 image"},
	{"%PDF-", "a PDF document"},
	{"PK\x03\x04", "a ZIP archive or an office document"},
	{"\x1f\x8b", "a gzip file"},
	{"\x7fELF", "an executable"},
	{"MZ", "an executable"},
	{"\x00asm", "a WebAssembly module"},
	{"version https://git-lfs", "a Git LFS pointer: the image itself was not fetched"},
}

// sniff says what data is. It goes by content alone: names lie.
func sniff(data []byte) kind {
	for _, m := range magics {
		if matches(data, m.magic) {
			return m.kind
		}
	}
	if root := xmlRoot(data); strings.EqualFold(root.name, "svg") || strings.HasSuffix(strings.ToLower(root.name), ":svg") {
		return kindSVG
	}
	head := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(data[:min(len(data), 512)], []byte("\xef\xbb\xbf"))))
	switch {
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")), bytes.HasPrefix(head, []byte("<head")):
		return "an HTML page"
	case bytes.HasPrefix(head, []byte("<?xml")), bytes.HasPrefix(head, []byte("<")):
		return "an XML document or markup"
	case bytes.HasPrefix(head, []byte("{")), bytes.HasPrefix(head, []byte("[")):
		return "JSON or other text"
	case !bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == '\ufffd' }):
		return "text"
	}
	return "of no known kind"
}

func matches(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}

// notAnImage refuses a file that cannot be shown, without a byte of it.
func notAnImage(path string, k kind) error {
	hint := "give the path of a PNG, JPEG, GIF, WebP, BMP, TIFF or SVG file"
	if strings.HasSuffix(string(k), "image") || strings.HasPrefix(string(k), "an icon") || strings.HasPrefix(string(k), "a Photoshop") {
		hint = "convert it to PNG or JPEG first"
	}
	return problemf("%q is not an image that can be shown: by its content it is %s (%s)", path, k, hint)
}

// chunks calls yield for every RIFF chunk of a WebP file; yield's false ends
// it. Chunks that overrun the file are cut off.
func chunks(data []byte, yield func(id string, body []byte) bool) {
	for len(data) >= 8 {
		id, n := string(data[:4]), uint64(binary.LittleEndian.Uint32(data[4:]))
		data = data[8:]
		body := data[:min(n, uint64(len(data)))]
		if !yield(id, body) {
			return
		}
		data = data[min(n+n&1, uint64(len(data))):]
	}
}

func (k kind) corrupt(path string, err error) error {
	return problemf("%q is corrupt: it starts like a %s image but cannot be decoded: %s", path, string(k), fmt.Sprint(err))
}
