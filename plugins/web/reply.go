package web

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/skillhost/skill/plugins/web/extract"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// reply puts d into the format that was asked for, and that into parts.
func (d *document) reply(in args, address *url.URL) (guest.Reply[output], error) {
	var reply guest.Reply[output]
	out := output{URL: address.String(), FinalURL: d.address, Status: d.status, MIME: d.mime, Title: d.title, Rendered: d.rendered, Bytes: d.bytes,
		Redirects: d.redirects, Blocked: d.blocked, Notes: d.notes}
	text := d.text
	if d.page {
		at, err := url.Parse(d.address)
		if err != nil {
			return reply, err
		}
		p, err := extract.Parse(d.html, at)
		if err != nil {
			return reply, &sdk.Error{Kind: sdk.Invalid, What: "the page cannot be read", Err: err}
		}
		if in.Selector != "" && !d.part {
			if found, err := p.Select(in.Selector); err != nil || !found {
				return reply, &sdk.Error{Kind: sdk.Invalid, What: "nothing on the page matches the selector", Hint: strings.Join(d.notes, "; "), Err: err}
			}
		}
		if d.part {
			p.Whole()
		}
		if text, err = p.Render(extract.Format(cmp.Or(in.Format, string(extract.Markdown)))); err != nil {
			return reply, &sdk.Error{Kind: sdk.Invalid, What: "the page cannot be read", Err: err}
		}
		out.Title, out.Byline = cmp.Or(d.title, p.Title), p.Byline
	}
	out.Chars = utf8.RuneCountInString(text)
	if in.Offset > 0 && in.Offset >= out.Chars {
		return reply, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("offset %d: the text has %d characters", in.Offset, out.Chars)}
	}
	out.Content = part(text, in.Offset, cmp.Or(in.MaxChars, pageChars))
	if end := in.Offset + utf8.RuneCountInString(out.Content); end < out.Chars {
		out.Truncated, out.NextOffset = true, end
	}
	reply.Structured, reply.Text = out, out.text(in.Offset)
	reply.Failed, reply.Whole = d.status >= 400, true
	return reply, nil
}

// part returns at most most characters of s from offset on, if possible up to
// the end of a line.
func part(s string, offset, most int) string {
	from := index(s, offset)
	to := from + index(s[from:], most)
	if to < len(s) {
		if i := strings.LastIndexByte(s[from:to], '\n'); i > (to-from)/2 {
			to = from + i + 1
		}
	}
	return s[from:to]
}

// index returns where the nth character of s begins, or its length.
func index(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// closing is what would end the frame around a page's text.
var closing = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)</web_page`) })

// text renders a result for a model. What the page says is in a frame that it
// cannot end.
func (o *output) text(offset int) string {
	var b strings.Builder
	if o.Status >= 400 {
		fmt.Fprintf(&b, "[the server answered with status %d]\n", o.Status)
	}
	if o.FinalURL != o.URL {
		fmt.Fprintf(&b, "[%s led to %s]\n", o.URL, o.FinalURL)
	}
	fmt.Fprintf(&b, "<web_page url=%q title=%q>\n", o.FinalURL, clean(o.Title))
	b.WriteString(closing().ReplaceAllString(o.Content, "&lt;/web_page"))
	if !strings.HasSuffix(o.Content, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("</web_page>\n")
	switch {
	case o.Chars == 0:
		b.WriteString("[there is no text]\n")
	case o.Truncated:
		fmt.Fprintf(&b, "[characters %d to %d of %d; go on with offset %d]\n", offset, o.NextOffset, o.Chars, o.NextOffset)
	case offset > 0:
		fmt.Fprintf(&b, "[characters %d to %d: the end]\n", offset, o.Chars)
	}
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "[%s]\n", clean(n))
	}
	if len(o.Blocked) > 0 {
		var hosts []string
		for _, x := range o.Blocked {
			if host := clean(x.Host); !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
		fmt.Fprintf(&b, "[the page asked for %s and was refused; the operator may allow it: skill allow web --network HOST]\n", strings.Join(hosts, ", "))
	}
	return b.String()
}

// clean returns s as a part of one line.
func clean(s string) string {
	return closing().ReplaceAllString(strings.Join(strings.Fields(s), " "), "&lt;/web_page")
}
