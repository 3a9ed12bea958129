package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Bounds of the HTTP requests of one call.
const (
	maxRequests = 32  // under way at once; more wait
	maxHeaders  = 128 // lines of one request
	maxHeld     = 4   // largest bodies that are read at the same time, together
)

type httpMessage struct {
	header
	Method   string     `json:"method"`
	URL      string     `json:"url"`
	Headers  [][]string `json:"headers"`
	Redirect string     `json:"redirect"`
	Timeout  *int64     `json:"timeout_ms"`
	Most     *int64     `json:"max_bytes"`
}

type httpReply struct {
	Status  int         `json:"status"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
}

func httpRequest(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	var m httpMessage
	if err := decode(f, &m, 1); err != nil {
		return nil, err
	}
	client, err := j.client(ctx, m.Redirect)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := m.deadline(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	limit := j.bodyLimit()
	if m.Most != nil {
		if *m.Most < 0 {
			return nil, invalid("max_bytes", "want 0 or more")
		}
		limit = min(limit, *m.Most)
	}
	req, err := m.request(ctx, f.Blobs)
	if err != nil {
		return nil, err
	}
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, withoutURL(ctx, err)
	}
	defer resp.Body.Close()
	body, err := j.read(ctx, resp.Body, limit)
	if err != nil {
		return nil, err
	}
	out := httpReply{Status: resp.StatusCode, URL: resp.Request.URL.String(), Headers: [][2]string{}}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, v := range resp.Header[name] {
			out.Headers = append(out.Headers, [2]string{name, v})
		}
	}
	return reply(out, body)
}

func (m *httpMessage) deadline(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if m.Timeout == nil {
		return ctx, func() {}, nil
	}
	if *m.Timeout < 1 || *m.Timeout > int64(24*time.Hour/time.Millisecond) {
		return nil, nil, invalid("timeout_ms", "want 1 to 86400000")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(*m.Timeout)*time.Millisecond,
		&sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("no complete answer within %d ms", *m.Timeout), Hint: "timeout_ms of the request bounds it"})
	return ctx, cancel, nil
}

// request returns the request that m describes. What it may name in headers
// and in the URL is egress's to judge.
func (m *httpMessage) request(ctx context.Context, blobs [][]byte) (*http.Request, error) {
	if len(m.Headers) > maxHeaders {
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%d headers", len(m.Headers)), Hint: fmt.Sprintf("at most %d", maxHeaders)}
	}
	var body io.Reader
	if len(blobs) > 0 {
		body = bytes.NewReader(blobs[0])
	}
	req, err := http.NewRequestWithContext(ctx, m.Method, m.URL, body)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL
		}
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "request", Err: err}
	}
	for _, h := range m.Headers {
		if len(h) != 2 {
			return nil, invalid("headers", `want a list of ["name", "value"]`)
		}
		req.Header.Add(h[0], h[1])
	}
	return req, nil
}

// client returns the call's HTTP client, which lives as long as the call, with
// the redirect rule of one request.
func (j *job) client(ctx context.Context, redirect string) (*http.Client, error) {
	j.once.Do(func() {
		j.http = j.table.deps.Broker.Client(j.Grant, j.Secrets, j.bodyLimit())
		j.slots = make(chan struct{}, maxRequests)
		context.AfterFunc(ctx, j.http.CloseIdleConnections)
	})
	c := *j.http
	switch redirect {
	case "", "follow":
	case "manual":
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	default:
		return nil, invalid("redirect", `want "follow" or "manual"`)
	}
	return &c, nil
}

func (j *job) bodyLimit() int64 {
	if j.Limits.HTTPBody > 0 {
		return j.Limits.HTTPBody
	}
	return manifest.DefaultLimits.HTTPBody
}

// read reads a body of at most limit bytes. The bodies of a call that are
// being read are bounded together, so that 32 servers which answer at once do
// not cost the host 32 times the largest body.
func (j *job) read(ctx context.Context, src io.Reader, limit int64) ([]byte, error) {
	var body bytes.Buffer
	defer func() { j.held.Add(-int64(body.Len())) }()
	for {
		n, err := io.CopyN(&body, src, 64<<10)
		switch together := j.held.Add(n); {
		case int64(body.Len()) > limit:
			return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the answer is larger than %d bytes", limit), Hint: "max_bytes of the request and http_body in [limits] bound it"}
		case together > maxHeld*j.bodyLimit():
			return nil, &sdk.Error{Kind: sdk.Limit, What: "the answers that arrive at the same time are too large together", Hint: "ask for fewer at once"}
		case err == io.EOF:
			return body.Bytes(), nil
		case err != nil:
			return nil, withoutURL(ctx, err)
		}
	}
}

// withoutURL returns the *sdk.Error in err. The *url.Error around it would
// repeat paths and queries, which messages and logs do not name.
func withoutURL(ctx context.Context, err error) error {
	var e *sdk.Error
	if errors.As(err, &e) {
		return e
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return &sdk.Error{Kind: sdk.Unavailable, What: "the server's answer cannot be used"}
}

// ended says why ctx is done.
func ended(ctx context.Context) error { return asError(ctx, "", ctx.Err()) }
