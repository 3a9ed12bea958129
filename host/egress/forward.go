package egress

import (
	"net/http"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// forward serves a request in absolute form. What follows from the answer, a
// redirect for one, is the child's to ask for, and judged when it does.
func (p *pass) forward(w http.ResponseWriter, r *http.Request, f *flow) {
	n, err := p.plainTarget(r)
	if err != nil {
		fail(w, err)
		return
	}
	resp, err := p.send(r, n, f)
	if err != nil {
		fail(w, err)
		return
	}
	defer resp.Body.Close()
	header := w.Header()
	for name, values := range endToEnd(resp.Header) {
		header[name] = values
	}
	if header["Content-Type"] == nil {
		header["Content-Type"] = nil // or else the server guesses one
	}
	w.WriteHeader(resp.StatusCode)
	if err := p.answer(w, resp, f); err != nil {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
}

// plainTarget returns what r touches, if it is a request for an http:// URL.
// The URL is all there is to know of where r goes: a Host header that differs
// is replaced (RFC 9112, 3.2.2).
func (p *pass) plainTarget(r *http.Request) (capability.Net, error) {
	if r.URL.Host == "" {
		return capability.Net{}, invalid("a request without an http:// URL (rule net_proxy_form)", "this is a proxy: it takes whole URLs, and CONNECT")
	}
	n, err := Target(r.URL, r.Method)
	switch {
	case err != nil:
		return n, unreadable(p.trip.grant, r.URL.Host, err)
	case n.Scheme != "http":
		return n, deny(p.trip.grant, n, "net_proxy_form", "an https URL in a request to the proxy", "use CONNECT")
	case r.Header["Upgrade"] != nil:
		return n, deny(p.trip.grant, n, "net_upgrade", "plain HTTP is not upgraded to another protocol", "use TLS through CONNECT, wss for example")
	}
	return n, nil
}

// send judges the request for n and carries it out.
func (p *pass) send(r *http.Request, n capability.Net, f *flow) (*http.Response, error) {
	h, err := p.trip.way(f.ctx, n, false)
	if err != nil {
		return nil, err
	}
	f.holds(h.needs)
	r.Header = endToEnd(r.Header)
	if err := p.spend(&p.sent, size(r.Header)+len(r.RequestURI)); err != nil {
		return nil, err
	}
	in := r.WithContext(f.ctx)
	in.RequestURI = ""
	if r.Body != nil && r.Body != http.NoBody {
		in.Body = &meter{ReadCloser: r.Body, pass: p, flow: f, total: &p.sent}
	}
	resp, err := p.trip.over(h).RoundTrip(p.trip.outgoing(in, n, h))
	if err != nil {
		return nil, failure(f.ctx, n, err, false)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": the server switched to another protocol"}
	}
	if err := p.spend(&p.got, size(resp.Header)); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// answer copies the body of resp, without trailers. An answer whose length is
// not known may be a stream of events, so nothing of it is held back.
func (p *pass) answer(w http.ResponseWriter, resp *http.Response, f *flow) error {
	c := http.NewResponseController(w)
	body := &meter{ReadCloser: resp.Body, pass: p, flow: f, total: &p.got}
	return copyAll(writer(func(b []byte) (int, error) {
		n, err := w.Write(b)
		if err == nil && resp.ContentLength < 0 {
			err = c.Flush()
		}
		f.touch()
		return n, err
	}), body)
}

// endToEnd returns h without what is meant for the next hop only, what frames
// the message, and what is between the child and its proxy.
func endToEnd(h http.Header) http.Header {
	var named []string
	for _, v := range h["Connection"] {
		for part := range strings.SplitSeq(v, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(part)))
		}
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		hop := reserved[name] && name != "Accept-Encoding" && name != "Content-Length"
		if !hop && !strings.HasPrefix(name, "Proxy-") && name != "X-Proxy-Error" && !slices.Contains(named, name) {
			out[name] = values
		}
	}
	return out
}

// A writer is the Write method of an io.Writer.
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
