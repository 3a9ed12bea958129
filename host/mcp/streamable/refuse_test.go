package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/streamable/bound"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// isError checks a refusal: its status, and a JSON-RPC error with that code and
// a text in it.
func isError(t *testing.T, r reply, status, code int, text string) {
	t.Helper()
	var e struct {
		Version string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Version != "2.0" || e.Error.Message == "" {
		t.Fatalf("no JSON-RPC error: %d %q", r.status, r.body)
	}
	if r.status != status || e.Error.Code != code || !strings.Contains(r.body, text) {
		t.Errorf("got %d %s, want %d, code %d and %q", r.status, r.body, status, code, text)
	}
	if got := r.head.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
}

func TestRefusals(t *testing.T) {
	s := serve(t, Options{Origins: []string{"https://chat.example.com"}, Hosts: []string{"skill.test"}, Limits: Limits{Body: 3000}})
	for _, c := range []struct {
		name, method, path, body string
		head                     []string
		status, code             int
		text                     string
	}{
		{"rebinding_host", "POST", "/mcp", ping, []string{"Host: evil.example"}, 403, -32000, "no such name"},
		{"rebinding_host_port", "POST", "/mcp", ping, []string{"Host: evil.example:80"}, 403, -32000, "no such name"},
		{"rebinding_host_looks_local", "POST", "/mcp", ping, []string{"Host: localhost.evil.example"}, 403, -32000, "no such name"},
		{"rebinding_host_address", "POST", "/mcp", ping, []string{"Host: 10.0.0.1"}, 403, -32000, "no such name"},
		{"rebinding_on_sse", "GET", "/sse", "", []string{"Host: evil.example"}, 403, -32000, "no such name"},
		{"evil_origin", "POST", "/mcp", ping, []string{"Origin: http://evil.example"}, 403, -32000, "origin"},
		{"evil_origin_null", "POST", "/mcp", ping, []string{"Origin: null"}, 403, -32000, "origin"},
		{"evil_origin_other_port", "POST", "/mcp", ping, []string{"Origin: http://127.0.0.1:1"}, 403, -32000, "origin"},
		{"evil_origin_twice", "POST", "/mcp", ping, []string{"Origin: https://chat.example.com", "+Origin: http://evil.example"}, 403, -32000, "origin"},
		{"evil_origin_prefix", "POST", "/mcp", ping, []string{"Origin: https://chat.example.com.evil.example"}, 403, -32000, "origin"},
		{"evil_origin_preflight", "OPTIONS", "/mcp", "", []string{"Origin: http://evil.example"}, 403, -32000, "origin"},
		{"no_such_path", "POST", "/", ping, nil, 404, -32000, "nothing"},
		{"path_with_slash", "POST", "/mcp/", ping, nil, 404, -32000, "nothing"},
		{"metadata_without_issuer", "GET", "/.well-known/oauth-protected-resource", "", nil, 404, -32000, "nothing"},
		{"method_put", "PUT", "/mcp", ping, nil, 405, -32000, "GET, POST, DELETE"},
		{"method_sse", "POST", "/sse", ping, nil, 405, -32000, "GET"},
		{"method_message", "GET", "/message", "", nil, 405, -32000, "POST"},
		{"type_missing", "POST", "/mcp", ping, []string{"Content-Type:"}, 415, -32000, "application/json"},
		{"type_form", "POST", "/mcp", ping, []string{"Content-Type: text/plain"}, 415, -32000, "application/json"},
		{"type_charset", "POST", "/mcp", ping, []string{"Content-Type: application/json; charset=utf-16"}, 415, -32000, "UTF-8"},
		{"type_twice", "POST", "/mcp", ping, []string{"+Content-Type: text/plain"}, 415, -32000, "application/json"},
		{"compressed", "POST", "/mcp", ping, []string{"Content-Encoding: gzip"}, 415, -32000, "compressed"},
		{"accept_json_only", "POST", "/mcp", ping, []string{"Accept: application/json"}, 406, -32000, "accept"},
		{"accept_refused", "POST", "/mcp", ping, []string{"Accept: application/json, text/event-stream;q=0"}, 406, -32000, "accept"},
		{"accept_get", "GET", "/sse", "", []string{"Accept: application/json"}, 406, -32000, "text/event-stream"},
		{"oversized", "POST", "/mcp", `"` + strings.Repeat("x", 3000) + `"`, nil, 413, -32000, "3000 bytes"},
		{"empty_body", "POST", "/mcp", "", nil, 400, -32700, "JSON"},
		{"not_json", "POST", "/mcp", "{", nil, 400, -32700, "JSON"},
		{"invalid_utf8", "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", nil, 400, -32700, "UTF-8"},
		{"nested_deep", "POST", "/mcp", strings.Repeat("[", 1200) + strings.Repeat("]", 1200), nil, 400, -32700, "nested too deep"},
		{"nested_deep_argument", "POST", "/mcp", call("1", "echo", strings.Repeat(`{"a":`, 300)+"1"+strings.Repeat("}", 299)), nil, 400, -32700, "JSON"},
		{"two_values", "POST", "/mcp", ping + ping, nil, 400, -32700, "JSON"},
		{"not_an_object", "POST", "/mcp", `"x"`, nil, 400, -32600, "object"},
		{"no_version", "POST", "/mcp", `{"id":1,"method":"ping"}`, nil, 400, -32600, "2.0"},
		{"empty_batch", "POST", "/mcp", `[]`, nil, 400, -32600, "empty"},
		{"batch_too_late", "POST", "/mcp", `[` + ping + `]`, []string{"Mcp-Protocol-Version: 2025-06-18"}, 400, -32600, "batches"},
		{"batch_modern", "POST", "/mcp", `[` + ping + `]`, []string{"Mcp-Protocol-Version: 2026-07-28"}, 400, -32600, "batches"},
		{"version_never_was", "POST", "/mcp", ping, []string{"Mcp-Protocol-Version: 1.0.0"}, 400, -32022, "2025-11-25"},
		{"version_twice", "POST", "/mcp", ping, []string{"Mcp-Protocol-Version: 2025-11-25", "+Mcp-Protocol-Version: 2025-06-18"}, 400, -32600, "more than one"},
		{"session_unknown", "POST", "/mcp", ping, []string{"Mcp-Session-Id: forged"}, 404, -32000, "session"},
		{"session_twice", "POST", "/mcp", ping, []string{"Mcp-Session-Id: a", "+Mcp-Session-Id: b"}, 400, -32600, "more than one"},
		{"get_without_session", "GET", "/mcp", "", nil, 400, -32600, "Mcp-Session-Id"},
		{"delete_without_session", "DELETE", "/mcp", "", nil, 400, -32600, "Mcp-Session-Id"},
		{"get_unknown_session", "GET", "/mcp", "", []string{"Mcp-Session-Id: forged"}, 404, -32000, "session"},
		{"get_modern", "GET", "/mcp", "", []string{"Mcp-Protocol-Version: 2026-07-28"}, 405, -32000, "POST"},
		{"task_id_bad", "POST", "/mcp?task_id=a/b", ping, nil, 400, -32600, "task_id"},
		{"task_id_long", "POST", "/mcp?task_id=" + strings.Repeat("a", 129), ping, nil, 400, -32600, "task_id"},
		{"task_id_twice", "POST", "/mcp?task_id=a&task_id=b", ping, nil, 400, -32600, "task_id"},
		{"message_without_session", "POST", "/message", ping, nil, 400, -32600, "sessionId"},
		{"message_forged_session", "POST", "/message?sessionId=forged", ping, nil, 404, -32000, "session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			isError(t, s.do(c.method, c.path, c.body, c.head...), c.status, c.code, c.text)
		})
	}
	if n := len(s.seen()); n > 0 {
		t.Errorf("%d calls came through", n)
	}
}

func TestAdmissions(t *testing.T) {
	s := serve(t, Options{Origins: []string{"https://chat.example.com"}, Hosts: []string{"skill.test"}})
	for name, head := range map[string][]string{
		"plain":          nil,
		"accept any":     {"Accept: */*"},
		"accept nothing": {"Accept:"},
		"accept split":   {"Accept: text/event-stream;q=0.5", "+Accept: application/json"},
		"charset":        {"Content-Type: Application/JSON; charset=UTF-8"},
		"same origin":    {"Origin: http://" + s.addr},
		"other origin":   {"Origin: https://chat.example.com"},
		"localhost":      {"Host: LocalHost:80"},
		"ipv6 loopback":  {"Host: [::1]:80"},
		"own name":       {"Host: skill.test:8080"},
		"old revision":   {"Mcp-Protocol-Version: 2024-11-05"},
	} {
		if r := s.post(call("1", "echo", `{"message":"hello"}`), head...); r.status != 200 || !strings.Contains(r.body, `"text":"hello"`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := s.do("OPTIONS", "/mcp", "", "Origin: https://chat.example.com", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: mcp-method")
	if r.status != 204 || r.head.Get("Access-Control-Allow-Origin") != "https://chat.example.com" || r.head.Get("Access-Control-Allow-Headers") != "mcp-method" {
		t.Errorf("preflight: %+v", r)
	}
	if r := s.do("GET", "/healthz", "", "Host: anything"); r.status != 200 || r.body != "ok\n" {
		t.Errorf("healthz: %+v", r)
	}
}

// An address that other machines reach has any name, until the operator lists
// them.
func TestHostsOfOpenAddresses(t *testing.T) {
	for _, c := range []struct {
		local, host string
		hosts       []string
		want        bool
	}{
		{"192.0.2.1:80", "tools.example.com", nil, true},
		{"192.0.2.1:80", "tools.example.com", []string{"tools.example.com"}, true},
		{"192.0.2.1:80", "evil.example", []string{"tools.example.com"}, false},
		{"192.0.2.1:80", "192.0.2.1", []string{"tools.example.com"}, true},
		{"[2001:db8::1]:80", "[2001:db8::1]:80", []string{"tools.example.com"}, true},
		{"127.0.0.1:80", "", nil, false},
		{"[::1]:80", "tools.example.com", nil, false},
	} {
		g := gate{o: &Options{Hosts: c.hosts}}
		r := httptest.NewRequest("POST", "/mcp", nil)
		r.Host = c.host
		a, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.isHost(r.WithContext(contextWith(r, a))); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAuthentication(t *testing.T) {
	s := serve(t, Options{
		Metadata: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) }),
		Authenticate: func(r *http.Request) (string, string, error) {
			switch token := r.Header.Get("Authorization"); token {
			case "":
				return "", "", &Refusal{Status: 401, Challenge: `Bearer realm="skill"`, Err: errors.New("a bearer token is needed")}
			case "poor":
				return "", "", &Refusal{Status: 403, Challenge: `Bearer error="insufficient_scope"`, Err: errors.New("rights are missing")}
			case "later":
				return "", "", &Refusal{Status: 503, Retry: 1500e6, Err: errors.New("the issuer is away")}
			case "broken":
				return "", "", errors.New("secret of the host")
			default:
				return "token:" + token, "read write", nil
			}
		}})
	r := s.post(ping)
	isError(t, r, 401, -32000, "token")
	if r.head.Get("WWW-Authenticate") != `Bearer realm="skill"` {
		t.Errorf("challenge %q", r.head.Get("WWW-Authenticate"))
	}
	isError(t, s.do("GET", "/sse", ""), 401, -32000, "token")
	isError(t, s.do("POST", "/message?sessionId=x", ping), 401, -32000, "token")
	isError(t, s.do("DELETE", "/mcp", ""), 401, -32000, "token")
	isError(t, s.post(ping, "Authorization: poor"), 403, -32000, "rights")
	r = s.post(ping, "Authorization: later")
	isError(t, r, 503, -32000, "away")
	if r.head.Get("Retry-After") != "2" {
		t.Errorf("Retry-After %q", r.head.Get("Retry-After"))
	}
	r = s.post(ping, "Authorization: broken")
	isError(t, r, 500, -32603, "internal")
	if strings.Contains(r.body, "secret") {
		t.Errorf("said too much: %s", r.body)
	}
	if r := s.do("GET", "/.well-known/oauth-protected-resource/mcp", "", "Origin: http://evil.example"); r.status != 200 {
		t.Errorf("metadata: %+v", r)
	}
	if r := s.post(call("1", "echo", `{}`), "Authorization: ada"); r.status != 200 {
		t.Fatalf("%+v", r)
	}
	if c := s.seen()[0]; c.Scope.Caller != "token:ada" || c.Scope.Rights != "read write" {
		t.Errorf("scope %+v", c.Scope)
	}
	// Another caller's session does not exist.
	ada := s.open("2025-11-25", `{}`, "Authorization: ada")
	bob := append([]string{"Authorization: bob"}, ada[1:]...)
	isError(t, s.post(ping, bob...), 404, -32000, "session")
	isError(t, s.do("GET", "/mcp", "", bob...), 404, -32000, "session")
	isError(t, s.do("DELETE", "/mcp", "", bob...), 404, -32000, "session")
	if r := s.post(ping, ada...); r.status != 200 {
		t.Errorf("her own: %+v", r)
	}
}

func TestRate(t *testing.T) {
	s := serve(t, Options{Rate: 0.01, Burst: 2, Authenticate: func(r *http.Request) (string, string, error) { return r.Header.Get("Authorization"), "", nil }})
	for range 2 {
		if r := s.post(ping, "Authorization: ada"); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	r := s.post(ping, "Authorization: ada")
	isError(t, r, 429, -32000, "too many requests")
	if r.head.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if r := s.post(ping, "Authorization: bob"); r.status != 200 {
		t.Errorf("another caller: %+v", r)
	}
}

// no_cors_get: a page of another site cannot open a session by a GET, which has
// no Origin.
func TestGetOfAnotherSite(t *testing.T) {
	s := serve(t, Options{})
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200, "": 200} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", strings.TrimSuffix(s.url, "/mcp")+"/sse", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", site, resp.StatusCode, want)
		}
	}
}

// batch_evades_rate: each message of a batch counts.
func TestRateOfBatches(t *testing.T) {
	s := serve(t, Options{Rate: 0.01, Burst: 4, Authenticate: func(r *http.Request) (string, string, error) { return r.Header.Get("Authorization"), "", nil }})
	batch := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(ping+",", n), ",") + "]" }
	isError(t, s.post(batch(6), "Authorization: ada"), 429, -32000, "more messages than may come at once")
	if r := s.post(strings.Replace(batch(2), `"id":1`, `"id":2`, 1), "Authorization: bob"); r.status != 200 {
		t.Errorf("%+v", r)
	}
	isError(t, s.post(batch(3), "Authorization: bob"), 429, -32000, "too many requests")
}

func TestListenRefusesOpenAddresses(t *testing.T) {
	if l, err := Listen(t.Context(), "0.0.0.0:0", false); err == nil {
		l.Close()
		t.Error("listens for everybody")
	}
	l, err := Listen(t.Context(), "0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestBusyRoom(t *testing.T) {
	s := serveRoom(t, Options{}, conversation.Options{Concurrency: 1, Queue: 1})
	for _, id := range []string{"1", "2"} {
		go http.DefaultClient.Do(s.request(t.Context(), "POST", "/mcp", call(id, "wait", `{"gate":"g"}`)))
	}
	s.called(t, 1)
	// Until both are in, another call may be the one that waits.
	within(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		res, err := http.DefaultClient.Do(s.request(ctx, "POST", "/mcp", call("3", "echo", `{}`)))
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return err == nil && strings.Contains(string(text), "server busy")
	})
	close(s.gate("g"))
}

func contextWith(r *http.Request, local net.Addr) context.Context {
	return context.WithValue(r.Context(), http.LocalAddrContextKey, local)
}

// A client that names events first gets one even if there is nothing but the
// answer. Refusals keep their status.
func TestEventsFirst(t *testing.T) {
	s := serve(t, Options{})
	first := "Accept: text/event-stream, application/json"
	for _, head := range [][]string{nil, s.open("2025-06-18", `{}`)} {
		f := s.stream("POST", "/mcp", call("1", "echo", `{"message":"hello"}`), append(head, first)...)
		f.want("hello")
		f.end()
	}
	f := s.stream("POST", "/mcp", call("1", "echo", `{"message":"hello"}`), append(s.open("2025-11-25", `{}`), first)...)
	if e := f.want(""); e.name != "prime" || e.data != "" {
		t.Errorf("%+v", e)
	}
	f.want("hello")
	f.end()
	isError(t, s.modern("1", "bogus", "", "", first), 404, -32601, "")
}

// token_guessing: who is not let in is told to slow down, by its address, and
// its tokens are looked at no more.
func TestRateOfStrangers(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, Options{Rate: 0.01, Burst: 3, Authenticate: func(r *http.Request) (string, string, error) {
		asked.Add(1)
		switch token := r.Header.Get("Authorization"); token {
		case "ada", "bob":
			return token, "", nil
		case "broken":
			return "", "", errors.New("the host's own fault")
		default:
			return "", "", &Refusal{Status: 401, Challenge: "Bearer", Err: errors.New("no")}
		}
	}})
	from := func(remote, method, path, head string) reply {
		t.Helper()
		r := s.request(t.Context(), method, path, ping, head)
		w := httptest.NewRecorder()
		r.RemoteAddr = remote
		s.h.ServeHTTP(w, r)
		return reply{w.Code, w.Header(), w.Body.String()}
	}
	for _, to := range []struct {
		name   string
		from   func(method, path, head string) reply
		looked bool
		new    int
	}{
		{"afar", func(method, path, head string) reply { return from("192.0.2.1:80", method, path, head) }, false, 429},
		{"proxy", func(method, path, head string) reply { return s.do(method, path, ping, head) }, true, 200}, // all clients have its address
	} {
		isError(t, to.from("POST", "/mcp", "Authorization: broken"), 500, -32603, "")
		if r := to.from("POST", "/mcp", "Authorization: ada"); r.status != 200 {
			t.Fatalf("%s: %+v", to.name, r)
		}
		for i, head := range []string{"", "Authorization: guess1", "Authorization: guess2"} {
			if r := to.from("POST", "/mcp", head); r.status != 401 {
				t.Fatalf("%s: guess %d: %+v", to.name, i, r)
			}
		}
		before := asked.Load()
		for _, r := range []reply{to.from("POST", "/mcp", "Authorization: guess3"), to.from("GET", "/sse", ""), to.from("POST", "/message?sessionId=x", ""), to.from("DELETE", "/mcp", "")} {
			isError(t, r, 429, -32000, "too many")
			if r.head.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", to.name)
			}
		}
		if now := asked.Load(); (now != before) != to.looked {
			t.Errorf("%s: %d more were looked at", to.name, now-before)
		}
		if r := to.from("DELETE", "/mcp", "Authorization: ada"); r.status != 400 { // she has no session
			t.Errorf("%s: who was let in before, at the address of strangers: %+v", to.name, r)
		}
		if r := to.from("POST", "/mcp", "Authorization: bob"); r.status != to.new {
			t.Errorf("%s: who was not, there: %+v", to.name, r)
		}
		s.h.gate.callers = bound.Rates{Rate: 0.01, Burst: 3}
	}
	if r := from("192.0.2.2:80", "POST", "/mcp", ""); r.status != 401 {
		t.Errorf("another address: %+v", r)
	}
}
