package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/sdk/guest"
)

// maxText bounds the text returned, characters.
const maxText = 30_000

// svgReply answers with the text of an SVG: a model reads it better than a
// rendering, which would take a whole browser.
func svgReply(r reply, data []byte, in request) (guest.Reply[reply], error) {
	if in.Region != nil || in.Format != "auto" {
		return guest.Reply[reply]{}, problemf("%q is an SVG, which is returned as text: region and format do not apply", r.Path)
	}
	if !utf8.Valid(data) {
		return guest.Reply[reply]{}, problemf("%q is an SVG whose text is not UTF-8", r.Path)
	}
	text, omitted := cut(string(data), maxText)
	r.MIME, r.Scale = "image/svg+xml", 1
	w, h := xmlRoot(data).size()
	r.Original, r.Shown = size{w, h, len(data)}, size{w, h, len(text)}
	if omitted > 0 {
		r.Notes = []string{fmt.Sprintf("Its middle, %d characters, is left out.", omitted)}
	}
	return guest.Reply[reply]{Text: r.String(kindSVG) + "\n\n" + text, Structured: r}, nil
}

// cut keeps the first and last halves of a text that is longer than most
// characters, at ends of lines where there are some, and says how many
// characters are left out.
func cut(s string, most int) (string, int) {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s, 0
	}
	head, tail := s, s
	for i, n := 0, 0; n <= most/2; n++ {
		_, w := utf8.DecodeRuneInString(s[i:])
		head, i = s[:i], i+w
	}
	for i, n := len(s), 0; n <= most/2; n++ {
		_, w := utf8.DecodeLastRuneInString(s[:i])
		tail, i = s[i:], i-w
	}
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		tail = tail[i+1:]
	}
	omitted := utf8.RuneCountInString(s[len(head) : len(s)-len(tail)])
	return fmt.Sprintf("%s\n[… %d characters left out …]\n%s", strings.TrimSuffix(head, "\n"), omitted, tail), omitted
}

// A root is the first element of an XML document.
type root struct {
	name string
	tag  string // all of the start tag
}

// xmlRoot finds the first element behind a byte order mark, declarations and
// comments. The zero root means that data is not XML.
func xmlRoot(data []byte) root {
	b := bytes.TrimPrefix(data[:min(len(data), 64<<10)], []byte("\xef\xbb\xbf"))
	for {
		b = bytes.TrimLeft(b, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(b, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(b, []byte("<!")):
			end = ">"
			if open, close := bytes.IndexByte(b, '['), bytes.IndexByte(b, '>'); open >= 0 && open < close { // an internal subset
				end = "]>"
			}
		case bytes.HasPrefix(b, []byte("<")):
			tag := string(b[1:])
			if i := strings.IndexByte(tag, '>'); i >= 0 {
				tag = tag[:i]
			}
			name := tag
			if i := strings.IndexAny(tag, " \t\r\n/"); i >= 0 {
				name = tag[:i]
			}
			return root{name, tag}
		}
		i := bytes.Index(b, []byte(end))
		if end == "" || i < 0 {
			return root{}
		}
		b = b[i+len(end):]
	}
}

// size reads width and height, or those of the viewBox; 0 if it does not know.
func (r root) size() (w, h int) {
	w, h = pixels(r.attribute("width")), pixels(r.attribute("height"))
	if w > 0 && h > 0 {
		return w, h
	}
	box := strings.FieldsFunc(r.attribute("viewBox"), func(c rune) bool { return c == ' ' || c == ',' || c == '\n' || c == '\t' })
	if len(box) == 4 {
		return pixels(box[2]), pixels(box[3])
	}
	return 0, 0
}

func pixels(s string) int {
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "px"), 64)
	if err != nil || !(f > 0 && f < math.MaxInt32) {
		return 0
	}
	return int(math.Round(f))
}

func (r root) attribute(name string) string {
	for rest := r.tag; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return ""
		}
		before := i > 0 && strings.ContainsAny(rest[i-1:i], " \t\r\n")
		rest = strings.TrimLeft(rest[i+len(name):], " \t\r\n")
		if !before || !strings.HasPrefix(rest, "=") {
			continue
		}
		rest = strings.TrimLeft(rest[1:], " \t\r\n")
		if rest == "" || rest[0] != '"' && rest[0] != '\'' {
			return ""
		}
		value, _, _ := strings.Cut(rest[1:], rest[:1])
		return value
	}
}
