package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skillhost/skill/plugins/web/extract"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// An answer is a document as plain HTTP has it.
type answer struct {
	*document
	encoded bool // in a way that only the browser undoes
}

const (
	acceptText = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/pdf;q=0.8, text/plain;q=0.8, */*;q=0.5"
	acceptHTML = "text/html, application/xhtml+xml;q=0.9, application/pdf;q=0.8, text/plain;q=0.8, */*;q=0.5"
	agent      = "Mozilla/5.0 (compatible; skill ReadDocs)"
)

// fetch asks for what is at address, and goes where that leads.
func (r *reader) fetch(ctx context.Context, c *guest.Call, in args, address *url.URL) (answer, error) {
	var passed []string
	for at := address; ; {
		resp, err := request(ctx, c, in, at)
		if err != nil {
			return answer{}, denied(err, at, len(passed) > 0)
		}
		to, err := next(resp, at)
		if err != nil {
			return answer{}, err
		}
		var a answer
		if to == nil {
			if a, err = r.understand(ctx, in, at, resp); err != nil {
				return answer{}, err
			}
			to = a.refresh(at)
		}
		if to == nil {
			a.redirects = passed
			return a, nil
		}
		if passed = append(passed, at.String()); len(passed) > maxRedirects {
			return answer{}, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%s leads on more than %d times", address.Host, maxRedirects)}
		}
		at = to
	}
}

// request makes one request, without following where it leads.
func request(ctx context.Context, c *guest.Call, in args, at *url.URL) (*guest.Response, error) {
	accept := acceptText
	if in.Format == string(extract.HTML) {
		accept = acceptHTML
	}
	left := time.Millisecond
	if end, ok := ctx.Deadline(); ok {
		left = max(left, time.Until(end))
	}
	bare := *at
	bare.Fragment, bare.RawFragment = "", ""
	return c.Do(guest.Request{URL: bare.String(), Timeout: left, Most: maxBody, KeepRedirects: true,
		Header: map[string][]string{"Accept": {accept}, "Accept-Language": {"en, *;q=0.5"}, "User-Agent": {agent}}})
}

// next returns where resp leads, or nil.
func next(resp *guest.Response, at *url.URL) (*url.URL, error) {
	switch resp.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := http.Header(resp.Header).Get("Location")
	if location == "" {
		return nil, nil
	}
	to, err := at.Parse(location)
	if err == nil && to.Fragment == "" {
		to.Fragment = at.Fragment // RFC 9110, 10.2.2
	}
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s leads to %.200q, which is no address that is read", at.Host, location)}
	}
	return to, nil
}

// denied adds to a denial that it is about where the address leads. What would
// end it the host says to its caller.
func denied(err error, at *url.URL, led bool) error {
	var e *sdk.Error
	if !led || !errors.As(err, &e) || e.Kind != sdk.Denied {
		return err
	}
	told := *e
	told.What = "it leads on to " + at.Host + ": " + told.What
	return &told
}

// understand makes a document of resp.
func (r *reader) understand(ctx context.Context, in args, at *url.URL, resp *guest.Response) (answer, error) {
	header := http.Header(resp.Header)
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || kind == "" {
		kind = sniff(resp.Body)
	}
	d := &document{address: at.String(), status: resp.Status, mime: kind, bytes: len(resp.Body),
		fresh: strings.Contains(strings.ToLower(header.Get("Cache-Control")), "no-store")}
	a := answer{document: d}
	switch encoding := strings.ToLower(header.Get("Content-Encoding")); {
	case encoding == "" || encoding == "identity":
	case isHTML(kind) && in.Render != "never":
		d.page, a.encoded = true, true
		return a, nil
	default:
		return a, &sdk.Error{Kind: sdk.Unavailable, What: fmt.Sprintf("the server packs the document as %.40q, which it was not asked to", encoding)}
	}
	switch {
	case bytes.HasPrefix(resp.Body, []byte("%PDF-")) || kind == "application/pdf":
		d.mime = "application/pdf"
		return a, r.readPDF(ctx, d, resp.Body)
	case isHTML(kind):
		d.page = true
		d.html = extract.UTF8(resp.Body, header.Get("Content-Type"))
	case isText(kind) || (kind == "application/octet-stream" && sniff(resp.Body) == "text/plain"):
		if bytes.IndexByte(resp.Body, 0) >= 0 && utf8.Valid(resp.Body) {
			return a, refuse(kind, len(resp.Body))
		}
		d.text = extract.UTF8(resp.Body, "text/plain; charset="+charsetOf(header, resp.Body))
	default:
		return a, refuse(kind, len(resp.Body))
	}
	return a, nil
}

func refuse(kind string, size int) error {
	hint := "only HTML, PDF and text are read"
	if strings.HasPrefix(kind, "image/") {
		hint += "; download the image and read it with ReadImage"
	}
	return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("the address is that of %s, %d bytes, which is no text", kind, size), Hint: hint}
}

// readPDF puts the text of a PDF into d.
func (r *reader) readPDF(ctx context.Context, d *document, body []byte) error {
	program, args := r.pdf()
	text, pages, err := extract.PDF(ctx, body, program, args...)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "the PDF cannot be read", Err: err}
	}
	d.text = text
	d.notes = append(d.notes, fmt.Sprintf("a PDF of %d pages", pages))
	if strings.TrimSpace(text) == "" {
		d.notes = append(d.notes, "it has no text: its pages may be pictures")
	}
	return nil
}

func isHTML(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }

func isText(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/ecmascript",
		"application/x-sh", "application/x-ndjson", "application/jsonl", "application/graphql", "application/sql", "application/rtf", "application/x-tex", "application/x-httpd-php":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasPrefix(kind, "application/") && (strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml"))
}

// sniff says what a body is whose server does not.
func sniff(body []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(body), ";")
	return kind
}

// charsetOf returns the character set of a text: that of its header, or else
// UTF-8 if it can be that.
func charsetOf(header http.Header, body []byte) string {
	if _, params, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil && params["charset"] != "" {
		return params["charset"]
	}
	if utf8.Valid(body) {
		return "utf-8"
	}
	return "windows-1252"
}

// maxRefresh is the longest delay of a page that sends its reader on, seconds.
const maxRefresh = 5

// refresh returns where a page sends its reader by a meta element instead of
// saying something itself, or nil.
func (a *answer) refresh(at *url.URL) *url.URL {
	if a.document == nil || !a.page || a.html == "" || len(a.html) > 16<<10 {
		return nil
	}
	content := extract.Refresh(a.html)
	delay, rest, _ := strings.Cut(content, ";")
	if n, err := strconv.ParseFloat(strings.TrimSpace(delay), 64); err != nil || n > maxRefresh {
		return nil
	}
	rest = strings.TrimSpace(rest)
	if len(rest) < 4 || !strings.EqualFold(rest[:3], "url") {
		return nil
	}
	rest = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[3:]), "=")), `"'`)
	to, err := at.Parse(rest)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil || to.String() == at.String() {
		return nil
	}
	return to
}
