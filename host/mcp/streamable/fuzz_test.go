package streamable

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/streamable/mirror"
	"github.com/skillhost/skill/sdk"
)

// FuzzPost holds the handler to its promises for any body and headers: it comes
// to an end, says nothing but JSON or events, and calls no tool that the body
// does not name, or of which the headers say something else.
func FuzzPost(f *testing.F) {
	f.Add([]byte(ping), "", "", "", "")
	f.Add([]byte(call("1", "echo", `{"message":"x"}`)), "2025-03-26", "", "", "")
	f.Add([]byte(modernBody("1", "tools/call", `"name":"echo"`)), "2026-07-28", "tools/call", "echo", "")
	f.Add([]byte(modernBody("1", "tools/call", `"name":"routed","arguments":{"region":"x"}`)), "2026-07-28", "tools/call", "routed", "x")
	f.Add([]byte(`[`+ping+`,`+ping+`]`), "", "", "", "")
	f.Add([]byte(initializeBody("2025-11-25", `{}`)), "", "", "", "")
	f.Add([]byte(modernBody("1", "tools/call", `"name":"ec\u0068o"`)), "2026-07-28", "tools/call", "=?base64?ZWNobw==?=", "")
	f.Fuzz(func(t *testing.T, body []byte, version, method, name, region string) {
		h := newHouse()
		s := New(Options{Room: conversation.NewRoom(h, conversation.Options{}), Scope: sdk.Scope{Caller: "local:fuzz"}})
		defer s.Shutdown(t.Context())
		if strings.Contains(string(body), listenMethod) || strings.Contains(string(body), `\u`) && strings.Contains(string(body), "liste") {
			return // does not end by itself, as it should
		}
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(string(body)))
		r.Host = "localhost"
		r = r.WithContext(contextWith(r, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
		r.Header.Set("Content-Type", "application/json")
		for k, v := range map[string]string{versionHeader: version, mirror.Method: method, mirror.Name: name, "Mcp-Param-Region1": region} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusAccepted && w.Body.Len() == 0:
		case w.Header().Get("Content-Type") == "text/event-stream":
		case !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json":
			t.Fatalf("%d %q: %s", w.Code, w.Header(), w.Body)
		}
		if calls := h.seen(); len(calls) > 0 {
			if w.Code >= 400 && calls[0].Tool != "none" && !strings.Contains(w.Body.String(), "-32602") {
				t.Fatalf("refused with %d, but called %+v", w.Code, calls)
			}
			if version >= "2026-07-28" {
				if calls[0].Tool != name && !strings.HasPrefix(name, "=?base64?") || method != "tools/call" {
					t.Fatalf("called %q, though the headers say %q %q", calls[0].Tool, method, name)
				}
			}
		}
	})
}
