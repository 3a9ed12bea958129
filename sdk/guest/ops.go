package guest

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Request is one HTTP request. The host sends it if the call's network
// capability covers it, checks every redirect in the same way, and adds the
// secrets that the operator bound to its host.
type Request struct {
	Method  string // "" means GET
	URL     string
	Header  map[string][]string
	Body    []byte
	Timeout time.Duration // of the whole exchange; 0: the call's own
	Most    int64         // bytes of the response's body; 0: the skill's limit

	// KeepRedirects makes a redirect the response, instead of following it.
	KeepRedirects bool
}

// A Response is the answer to a Request, whatever its status.
type Response struct {
	Status int
	Header map[string][]string // names as Go's net/http writes them, such as "Content-Type"
	Body   []byte
	URL    string // of the last request, after redirects
}

type webRequest struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Headers  [][2]string `json:"headers,omitempty"`
	Redirect string      `json:"redirect,omitempty"`
	Timeout  int64       `json:"timeout_ms,omitempty"`
	Most     int64       `json:"max_bytes,omitempty"`
}

// Do sends a request and reads the whole response. Goroutines may send many at
// once.
func (c *Call) Do(r Request) (*Response, error) {
	w := webRequest{Method: r.Method, URL: r.URL, Timeout: r.Timeout.Milliseconds(), Most: r.Most}
	if r.Method == "" {
		w.Method = "GET"
	}
	if r.KeepRedirects {
		w.Redirect = "manual"
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			w.Headers = append(w.Headers, [2]string{name, v})
		}
	}
	var blobs [][]byte
	if r.Body != nil {
		blobs = append(blobs, r.Body)
	}
	var reply struct {
		Status  int         `json:"status"`
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers"`
	}
	blobs, err := c.do("http.request", w, &reply, blobs...)
	if err != nil {
		return nil, err
	}
	response := &Response{Status: reply.Status, URL: reply.URL, Header: map[string][]string{}}
	for _, h := range reply.Headers {
		response.Header[h[0]] = append(response.Header[h[0]], h[1])
	}
	if len(blobs) > 0 {
		response.Body = blobs[0]
	}
	return response, nil
}

// SecretExists reports whether the operator has bound the secret name. Its
// value never reaches a guest.
func (c *Call) SecretExists(name string) (bool, error) {
	var reply struct {
		Exists bool `json:"exists"`
	}
	_, err := c.do("secret.exists", struct {
		Name string `json:"name"`
	}{name}, &reply)
	return reply.Exists, err
}

// Invoke calls another tool, under what both this call and that tool may do.
// args encodes as a JSON object; nil means {}. That the tool failed is the
// result's Failed, not an error.
func (c *Call) Invoke(tool string, args any) (sdk.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return sdk.Result{}, err
	}
	if args == nil {
		raw = nil
	}
	o := c.Start("invoke", struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args,omitempty"`
	}{tool, raw})
	if _, err := o.Wait(); err != nil {
		return sdk.Result{}, err
	}
	return sdk.ParseResult(o.raw)
}

// Announce tells clients that a list of the skill may be another one: kind is
// "tools", "resources" or "prompts".
func (c *Call) Announce(kind string) error {
	_, err := c.do("announce", struct {
		Kind string `json:"kind"`
	}{kind}, &struct{}{})
	return err
}

// Updated tells clients that the contents of a resource of the skill have
// changed. uri is that of one of its resources, or fits one of its templates.
func (c *Call) Updated(uri string) error {
	_, err := c.do("announce", struct {
		URI string `json:"uri"`
	}{uri}, &struct{}{})
	return err
}

// Now returns the host's time.
func (c *Call) Now() (time.Time, error) {
	var reply struct {
		Unix int64 `json:"now_unix_ns"`
	}
	_, err := c.do("time", nil, &reply)
	return time.Unix(0, reply.Unix), err
}
