package egress

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// checkRedirect prepares req, the request that a redirect asks for, after
// those of via. The grant judges it in RoundTrip as it does any other.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &sdk.Error{Kind: sdk.Limit, Op: "egress", What: fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	if err := carry(req, via[len(via)-1]); err != nil {
		return err
	}
	if leftOrigin(req) {
		for name := range req.Header {
			if personal(name) {
				delete(req.Header, name)
			}
		}
	}
	return nil
}

// carry gives req the method and the body that RFC 9110, section 15.4, asks
// for: 303 makes a GET of all but HEAD, 301 and 302 make a GET of POST, and
// everything else is repeated as it was. (http.Client turns every method into
// GET on 301 and 302.) What cannot be sent twice is not followed.
func carry(req, prev *http.Request) error {
	method := prev.Method
	if method == "" {
		method = http.MethodGet
	}
	status := req.Response.StatusCode
	changed := status == http.StatusSeeOther && method != http.MethodHead && method != http.MethodGet ||
		(status == http.StatusMovedPermanently || status == http.StatusFound) && method == http.MethodPost
	if req.Body != nil {
		req.Body.Close()
	}
	req.Method, req.Body, req.GetBody, req.ContentLength = method, nil, nil, 0
	if changed {
		req.Method = http.MethodGet
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Digest", "Content-Digest", "Last-Modified"} {
		req.Header.Del(name)
		if v := prev.Header.Values(name); !changed && v != nil {
			req.Header[name] = v
		}
	}
	if changed || prev.Body == nil || prev.Body == http.NoBody {
		return nil
	}
	if prev.GetBody == nil {
		return http.ErrUseLastResponse
	}
	body, err := prev.GetBody()
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, Op: "egress", What: "the request's body cannot be sent again", Err: err}
	}
	req.Body, req.GetBody, req.ContentLength = body, prev.GetBody, prev.ContentLength
	return nil
}

// personal reports whether a header of this name may identify its sender to
// the server it was meant for. Names are guessed widely: a header that is
// missing breaks one request, one that is sent to a stranger an account.
func personal(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "cookie", "token", "key", "secret", "session", "password", "credential", "csrf", "referer", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
