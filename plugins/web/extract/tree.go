package extract

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// textless are elements that hold no text for a reader.
var textless = []atom.Atom{atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Frame, atom.Frameset, atom.Object, atom.Embed, atom.Svg, atom.Canvas,
	atom.Video, atom.Audio, atom.Input, atom.Select, atom.Textarea, atom.Link}

// walk calls f for n and what is in it, in order, until f returns false for a
// node, of which the rest is left out.
func walk(n *html.Node, f func(*html.Node) bool) {
	if !f(n) {
		return
	}
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling // f may take c out
		walk(c, f)
		c = next
	}
}

func find(n *html.Node, a atom.Atom) (found *html.Node) {
	walk(n, func(c *html.Node) bool {
		if found == nil && c.Type == html.ElementNode && c.DataAtom == a {
			found = c
		}
		return found == nil
	})
	return found
}

func title(doc *html.Node) string {
	n := find(doc, atom.Title)
	if n == nil || n.FirstChild == nil {
		return ""
	}
	return strings.Join(strings.Fields(n.FirstChild.Data), " ")
}

// strip takes out what no reader sees. What describes the document stays.
func strip(doc *html.Node) {
	walk(doc, func(n *html.Node) bool {
		gone := n.Type == html.CommentNode
		if n.Type == html.ElementNode {
			gone = slices.Contains(textless, n.DataAtom) && !(n.DataAtom == atom.Script && attr(n, "type") == "application/ld+json")
			if n.DataAtom == atom.Noscript { // its text was for who has no scripts, as this reader has none
				unwrap(n)
			}
		}
		if gone && n.Parent != nil {
			n.Parent.RemoveChild(n)
			return false
		}
		return true
	})
}

// unwrap parses what is in a noscript, which a parser with scripts leaves as
// text.
func unwrap(n *html.Node) {
	if n.FirstChild == nil || n.FirstChild.Type != html.TextNode || n.FirstChild.NextSibling != nil {
		return
	}
	inner, err := html.ParseFragment(strings.NewReader(n.FirstChild.Data), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		return
	}
	n.RemoveChild(n.FirstChild)
	n.Data, n.DataAtom = "div", atom.Div
	for _, c := range inner {
		n.AppendChild(c)
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// absolute makes whole addresses of links and pictures. What is no address of
// the web goes.
func (p *Page) absolute() {
	at := p.url
	if b := find(p.doc, atom.Base); b != nil {
		if u, err := p.url.Parse(attr(b, "href")); err == nil {
			at = u
		}
	}
	walk(p.doc, func(n *html.Node) bool {
		if n.Type != html.ElementNode {
			return true
		}
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "srcset" || strings.HasPrefix(a.Key, "on") })
		for i := range n.Attr {
			a := &n.Attr[i]
			if a.Key != "href" && a.Key != "src" {
				continue
			}
			u, err := at.Parse(strings.TrimSpace(a.Val))
			switch {
			case err != nil:
				a.Val = ""
			case u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "mailto":
				a.Val = u.String()
			default: // javascript:, data: and their likes
				a.Val = ""
			}
		}
		return true
	})
}

// tidy leaves of the attributes those that say something to a reader.
func tidy(n *html.Node) {
	kept := []string{"href", "src", "alt", "title", "lang", "dir", "colspan", "rowspan", "start", "datetime", "id"}
	walk(n, func(c *html.Node) bool {
		c.Attr = slices.DeleteFunc(c.Attr, func(a html.Attribute) bool { return !slices.Contains(kept, a.Key) || a.Val == "" })
		return true
	})
}

// length counts the characters that a reader sees, without blanks.
func length(n *html.Node) (chars int) {
	walk(n, func(c *html.Node) bool {
		if c.Type == html.TextNode {
			for _, r := range c.Data {
				if !unicode.IsSpace(r) {
					chars++
				}
			}
		}
		return c.Type != html.ElementNode || c.DataAtom != atom.Script
	})
	return chars
}

// roots are the elements that applications are put into.
var roots = []string{"root", "app", "__next", "__nuxt", "___gatsby", "q-app", "svelte", "main-app", "react-root", "ember-app", "docusaurus", "__docusaurus", "swagger-ui", "redoc"}

// tags are elements of applications that have their own.
var tags = []string{"app-root", "redoc", "rapi-doc", "elements-api", "my-app"}

// shell reports whether the document is an empty shell: it has an element for
// an application that is empty or nearly so.
func (p *Page) shell() (yes bool) {
	const nearly = 80 // characters: "Loading…", "Please enable JavaScript"
	walk(p.body, func(n *html.Node) bool {
		if n.Type == html.ElementNode && (slices.Contains(roots, attr(n, "id")) || slices.Contains(tags, n.Data)) && length(n) < nearly {
			yes = true
		}
		return !yes
	})
	return yes && p.Chars < 5*MinChars
}

// MinChars is how many characters of text a page has that needs no browser.
const MinChars = 200

// blocks are elements that begin a line of their own.
var blocks = map[atom.Atom]int{ // and how many line ends are around them
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Dl: 2, atom.Table: 2, atom.Pre: 2, atom.Blockquote: 2,
	atom.Section: 2, atom.Article: 2, atom.Hr: 2, atom.Figure: 2,
	atom.Div: 1, atom.Li: 1, atom.Dt: 1, atom.Dd: 1, atom.Tr: 1, atom.Header: 1, atom.Footer: 1, atom.Nav: 1, atom.Main: 1, atom.Aside: 1, atom.Address: 1,
	atom.Form: 1, atom.Fieldset: 1, atom.Details: 1, atom.Summary: 1, atom.Caption: 1, atom.Figcaption: 1, atom.Br: 1,
}

// plain returns the text of n in lines.
func plain(n *html.Node) string {
	w := &lines{}
	w.write(n, false)
	return strings.TrimSpace(w.b.String()) + "\n"
}

// lines puts text into lines as a browser would: blanks are one blank, unless
// they are in a pre.
type lines struct {
	b     strings.Builder
	ends  int  // line ends at the end of b
	blank bool // a blank is due
}

func (w *lines) end(n int) {
	if n == 0 {
		return
	}
	w.blank = false
	for w.b.Len() > 0 && w.ends < n {
		w.b.WriteByte('\n')
		w.ends++
	}
}

func (w *lines) put(s string) {
	if s == "" {
		return
	}
	if w.blank && w.ends == 0 && w.b.Len() > 0 {
		w.b.WriteByte(' ')
	}
	w.blank, w.ends = false, 0
	w.b.WriteString(s)
}

func (w *lines) text(s string) {
	if first, _ := utf8.DecodeRuneInString(s); unicode.IsSpace(first) {
		w.blank = true
	}
	for i, word := range strings.Fields(s) {
		w.blank = w.blank || i > 0
		w.put(word)
	}
	if last, _ := utf8.DecodeLastRuneInString(s); unicode.IsSpace(last) {
		w.blank = true
	}
}

func (w *lines) write(n *html.Node, pre bool) {
	switch {
	case n.Type == html.TextNode && pre:
		w.put(n.Data)
		if strings.HasSuffix(n.Data, "\n") {
			w.ends = 1
		}
		return
	case n.Type == html.TextNode:
		w.text(n.Data)
		return
	case n.DataAtom == atom.Head || n.DataAtom == atom.Script:
		return
	}
	around := blocks[n.DataAtom]
	w.end(around)
	switch n.DataAtom {
	case atom.Li:
		w.put("- ")
	case atom.Td, atom.Th:
		if w.ends == 0 && w.b.Len() > 0 {
			w.put("\t")
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.write(c, pre || n.DataAtom == atom.Pre)
	}
	w.end(around)
}

// Address parses what somebody gave as the address of a page. Without a scheme
// it is one of https.
func Address(s string) (*url.URL, string) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") && !strings.Contains(strings.SplitN(s, "/", 2)[0], ":") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, "it is not an address"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "only http and https are read"
	case u.Hostname() == "":
		return nil, "it names no host"
	case u.User != nil:
		return nil, "it holds a user or a password"
	}
	return u, ""
}

// Refresh returns what a document that hardly says anything itself has in a meta
// element that sends its reader on, or "".
func Refresh(text string) (content string) {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return ""
	}
	walk(doc, func(n *html.Node) bool {
		if n.Type == html.ElementNode && n.DataAtom == atom.Meta && strings.EqualFold(attr(n, "http-equiv"), "refresh") && content == "" {
			content = attr(n, "content")
		}
		return content == ""
	})
	if body := find(doc, atom.Body); content == "" || body == nil || length(body) >= MinChars {
		return ""
	}
	return content
}
