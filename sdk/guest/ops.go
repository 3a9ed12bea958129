package guest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// Do sends a request and reads the whole response. Goroutines may send many at
// once.
func (c *Call) Do(r Request) (*Response, error) { return c.StartRequest(r).Response() }

// StartRequest begins what Do does, and returns at once. The Op's Response is
// what Do returns.
func (c *Call) StartRequest(r Request) *Op {
	if r.Body != nil {
		return c.Start("http.request", r.header(), r.Body)
	}
	return c.Start("http.request", r.header())
}

// header is the header of the operation that r is. It is written by hand,
// because a module that asks many servers at once spends its time on this.
func (r *Request) header() json.RawMessage {
	b := make([]byte, 0, 512)
	method := r.Method
	if method == "" {
		method = "GET"
	}
	b = appendText(append(b, `{"method":`...), method)
	b = appendText(append(b, `,"url":`...), r.URL)
	for i, name := range slices.Sorted(maps.Keys(r.Header)) {
		if i == 0 {
			b = append(b, `,"headers":[`...)
		}
		for _, v := range r.Header[name] {
			b = appendText(append(b, '['), name)
			b = append(appendText(append(b, ','), v), `],`...)
		}
	}
	if last := len(b) - 1; b[last] == ',' {
		b[last] = ']'
	} else if b[last] == '[' { // names without values
		b = append(b, ']')
	}
	if r.KeepRedirects {
		b = append(b, `,"redirect":"manual"`...)
	}
	if ms := r.Timeout.Milliseconds(); ms != 0 {
		b = strconv.AppendInt(append(b, `,"timeout_ms":`...), ms, 10)
	}
	if r.Most != 0 {
		b = strconv.AppendInt(append(b, `,"max_bytes":`...), r.Most, 10)
	}
	return append(b, '}')
}

// appendText adds s as a JSON string.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string: cannot fail
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Response waits for the response to a request that StartRequest began.
func (o *Op) Response() (*Response, error) {
	f, err := o.Wait()
	if err != nil {
		return nil, err
	}
	var reply struct {
		Status  int         `json:"status"`
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers"`
	}
	if err := json.Unmarshal(f.Header, &reply); err != nil {
		return nil, fmt.Errorf("%s: reply: %w", o.name, err)
	}
	response := &Response{Status: reply.Status, URL: reply.URL, Header: map[string][]string{}}
	for _, h := range reply.Headers {
		response.Header[h[0]] = append(response.Header[h[0]], h[1])
	}
	if len(f.Blobs) > 0 {
		response.Body = f.Blobs[0]
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
