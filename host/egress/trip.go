package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A trip is the RoundTripper of one call. Its connections go to addresses of
// the public internet (open), and are kept for the call's next request, or to
// addresses that need a permission of their own (special), which is asked for
// anew by every request and method, so that those are never kept.
type trip struct {
	broker  *Broker
	grant   capability.Grant
	secrets func() Secrets
	body    int64
	open    *http.Transport
	special *http.Transport

	mu   sync.Mutex
	pins map[string]pin // by host
	own  pin            // the host's own addresses
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *trip) CloseIdleConnections() {
	t.open.CloseIdleConnections()
	t.special.CloseIdleConnections()
}

// RoundTrip judges req and carries it out. A redirect comes back as another
// request, with the answer that caused it in req.Response.
func (t *trip) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil && req.Body != nil {
		req.Body.Close()
	}
	return resp, err
}

func (t *trip) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	n, err := Target(req.URL, req.Method)
	if err != nil {
		return nil, err
	}
	if err := t.judge(req, n); err != nil {
		return nil, err
	}
	h, err := t.way(ctx, n, req.Response != nil)
	if err != nil {
		return nil, err
	}
	due := t.secrets().due(n)
	out := t.outgoing(req, n, h)
	if out.Body != nil && out.Body != http.NoBody && out.ContentLength <= 0 {
		out.Body, out.GetBody = &bounded{src: out.Body, left: t.body, over: t.tooLarge(n, "request")}, nil
	}
	if err := due.inject(out, t.grant, leftOrigin(req)); err != nil {
		return nil, err
	}
	resp, err := t.over(h).RoundTrip(out)
	if err != nil {
		return nil, failure(ctx, n, err, len(due) > 0)
	}
	return t.incoming(req, resp, n, due)
}

// way asks the grant about n and returns where a connection to it may go.
func (t *trip) way(ctx context.Context, n capability.Net, redirected bool) (*hop, error) {
	if !n.IP.IsValid() { // an address is checked by pin
		if err := t.grant.Check(access(n)); err != nil {
			return nil, refusal(err, n, netip.Addr{}, class{}, redirected)
		}
	}
	return t.pin(ctx, n, redirected)
}

// over returns the transport for h.
func (t *trip) over(h *hop) *http.Transport {
	if h.special {
		return t.special
	}
	return t.open
}

// judge refuses what is wrong with req itself, whoever would allow its target.
func (t *trip) judge(req *http.Request, n capability.Net) error {
	if err := judgeHeaders(req.Header); err != nil {
		return err
	}
	if req.Host != "" && req.Host != req.URL.Host {
		return invalid("Host differs from the URL's (rule net_host_header_fronting)", "leave it out")
	}
	if req.ContentLength > t.body {
		return t.tooLarge(n, "request")
	}
	return nil
}

// outgoing returns the request as it goes out: with the host in the form that
// was judged, and nothing that the caller could have said about the connection.
func (t *trip) outgoing(req *http.Request, n capability.Net, h *hop) *http.Request {
	out := req.Clone(context.WithValue(req.Context(), hopKey{}, h))
	out.Method, out.URL.Host, out.Host = n.Method, authority(n), ""
	out.Close, out.TransferEncoding, out.Trailer, out.Response = false, nil, nil, nil
	if out.Header == nil {
		out.Header = http.Header{}
	}
	if out.Header["User-Agent"] == nil {
		out.Header.Set("User-Agent", "skill")
	}
	return out
}

// incoming returns the answer as the caller may see it.
func (t *trip) incoming(req *http.Request, resp *http.Response, n capability.Net, due Secrets) (*http.Response, error) {
	refuse := func(err error) (*http.Response, error) {
		resp.Body.Close()
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return refuse(&sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": the server switched to another protocol"})
	}
	if req.Method != http.MethodHead && resp.ContentLength > t.body {
		return refuse(t.tooLarge(n, "response"))
	}
	// A copy: the transport fills in the original's trailers, which nobody
	// bounds or searches. The reason phrase is the server's text as well.
	in := *resp
	in.Request, in.Trailer = req, nil
	in.Status = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	in.Body = &bounded{src: resp.Body, left: t.body, over: t.tooLarge(n, "response"),
		explain: func(err error) error { return failure(req.Context(), n, err, len(due) > 0) }}
	if forms := due.forms(); len(forms) > 0 {
		if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") && resp.Body != http.NoBody {
			return refuse(&sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String() + ": the answer is encoded in a way in which secrets cannot be found"})
		}
		in.Header = redactHeader(resp.Header, forms)
		if req.Method != http.MethodHead {
			in.Header.Del("Content-Length")
			in.ContentLength = -1
		}
		in.Body = newRedactor(in.Body, forms)
	}
	return &in, nil
}

func (t *trip) tooLarge(n capability.Net, which string) error {
	return &sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("%s: the %s body is larger than %d bytes", n.String(), which, t.body), Hint: "http_body in [limits] bounds it"}
}

// bounded reads at most left bytes and fails with over if there are more.
type bounded struct {
	src     io.ReadCloser
	left    int64
	over    error
	explain func(error) error // of an error that is not io.EOF; nil keeps it
	err     error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more byte tells the end from too much
	}
	n, err := b.src.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.over
	} else if err != nil && err != io.EOF && b.explain != nil {
		err = b.explain(err)
	}
	b.left -= int64(n)
	b.err = err
	return n, err
}

func (b *bounded) Close() error { return b.src.Close() }

// failure returns err, which a transport gave, as an *sdk.Error without what
// a guest should not learn: the host's own addresses, and, if a secret went
// out, anything that the server may have echoed.
func failure(ctx context.Context, n capability.Net, err error, secret bool) error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e
	}
	if ctx.Err() != nil {
		return ended(ctx, n)
	}
	e = &sdk.Error{Kind: sdk.Unavailable, Op: "egress", What: n.String()}
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	switch text := err.Error(); {
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "header list larger"):
		e.Kind, e.What = sdk.Limit, fmt.Sprintf("%s: more than %d bytes of response headers", n.String(), maxResponseHeader)
	case errors.As(err, &cert):
		e.Err = cert
	case errors.As(err, &op):
		e.Err = fmt.Errorf("%s: %w", op.Op, op.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Err = errors.New("it takes too long")
	case secret:
		e.Err = errors.New("the answer is not valid HTTP")
	default:
		e.Err = err
	}
	return e
}

// ended says why ctx is done.
func ended(ctx context.Context, n capability.Net) error {
	cause := context.Cause(ctx)
	var e *sdk.Error
	switch {
	case errors.As(cause, &e):
		return e
	case errors.Is(cause, context.DeadlineExceeded):
		return &sdk.Error{Kind: sdk.Limit, Op: "egress", What: n.String() + ": the time is over", Err: cause}
	}
	return &sdk.Error{Kind: sdk.Canceled, Op: "egress", What: n.String(), Err: cause}
}

// leftOrigin reports whether the redirects that led to req ever went to
// another scheme, host or port. It stays true when they come back: what a
// stranger sends home is still the stranger's choice.
func leftOrigin(req *http.Request) bool {
	for req.Response != nil && req.Response.Request != nil {
		before := req.Response.Request
		if origin(before.URL) != origin(req.URL) {
			return true
		}
		req = before
	}
	return false
}

// origin is empty for a URL that nobody may ask for.
func origin(u *url.URL) string {
	n, err := Target(u, "")
	if err != nil {
		return ""
	}
	return n.String()
}
