// Package extract makes text of documents: of HTML what a reader would call the
// page, as text, Markdown or plain HTML; of PDF its text. It loads nothing and
// knows no network.
package extract

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// A Format is what a document is turned into.
type Format string

// The formats.
const (
	Markdown Format = "markdown"
	Text     Format = "text"
	HTML     Format = "html"
)

// A Page is an HTML document that was parsed.
type Page struct {
	Title  string
	Byline string
	Chars  int  // of text that a reader sees, without blanks
	App    bool // it is the shell of an application, which a browser would fill

	doc  *html.Node
	body *html.Node // what is read: all of the document's body, or what the selector matched
	url  *url.URL
	size int // bytes of HTML
	part bool
}

// maxReadable is the size of a document, in bytes, beyond which it is not asked
// which part of it is the article: that takes more than linear time.
const maxReadable = 2 << 20

// keeps is the part of a page's text that an article must hold: index pages and
// manuals are all article, and what is taken for theirs is a chapter at most.
const keeps = 0.25

// UTF8 returns an HTML document in UTF-8. contentType is that of its header.
func UTF8(b []byte, contentType string) string {
	r, err := charset.NewReader(bytes.NewReader(b), contentType)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return string(out)
}

// ErrDeep is the error of a document with more elements in each other than a
// parser goes through.
var ErrDeep = errors.New("its elements are nested too deeply")

// Parse parses the HTML document text, which came from address.
func Parse(text string, address *url.URL) (*Page, error) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDeep, err)
	}
	p := &Page{doc: doc, url: address, size: len(text)}
	p.Title = title(doc)
	strip(doc)
	p.absolute()
	p.body = find(doc, atom.Body)
	if p.body == nil {
		p.body = doc
	}
	p.Chars = length(p.body)
	p.App = p.shell()
	return p, nil
}

// Select narrows p to what a CSS selector matches, and reports whether there is
// anything.
func (p *Page) Select(selector string) (bool, error) {
	s, err := cascadia.ParseGroup(selector)
	if err != nil {
		return false, err
	}
	found := cascadia.QueryAll(p.doc, s)
	if len(found) == 0 {
		return false, nil
	}
	p.body = &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	last := (*html.Node)(nil)
	for _, n := range found {
		if last != nil && within(n, last) { // it is there already
			continue
		}
		last = n
		n.Parent.RemoveChild(n)
		p.body.AppendChild(n)
	}
	p.part, p.Chars = true, length(p.body)
	return true, nil
}

func within(n, above *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == above {
			return true
		}
	}
	return false
}

// Render returns what is to be read of p. It may be called once.
func (p *Page) Render(f Format) (string, error) {
	node := p.main()
	switch f {
	case Text:
		return plain(node), nil
	case HTML:
		var out strings.Builder
		tidy(node)
		for n := range contents(node) {
			if err := html.Render(&out, n); err != nil {
				return "", err
			}
		}
		return strings.TrimSpace(out.String()) + "\n", nil
	}
	out, err := markdown(node)
	return strings.TrimSpace(out) + "\n", err
}

// contents yields node, or what is in it if it is a document or a body.
func contents(node *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		if node.Type == html.ElementNode && node.DataAtom != atom.Body {
			yield(node)
			return
		}
		for c := node.FirstChild; c != nil; c = c.NextSibling {
			if !yield(c) {
				return
			}
		}
	}
}

// main returns the article of p, if it holds enough of the page, or else all of
// the page.
func (p *Page) main() *html.Node {
	if p.part || p.size > maxReadable {
		return p.body
	}
	parser := readability.NewParser()
	parser.KeepClasses = true // those of code say its language
	article, err := parser.ParseDocument(p.doc, p.url)
	if err != nil || article.Node == nil {
		return p.body
	}
	p.Byline = strings.Join(strings.Fields(article.Byline()), " ")
	if t := strings.TrimSpace(article.Title()); t != "" && p.Title == "" {
		p.Title = t
	}
	if float64(length(article.Node)) < keeps*float64(p.Chars) {
		return p.body
	}
	return article.Node
}

func markdown(node *html.Node) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(table.WithHeaderPromotion(true)),
	))
	out, err := c.ConvertNode(node)
	return string(out), err
}

// Whole says that all of p is to be read: nothing of it is beside the point.
func (p *Page) Whole() { p.part = true }
