package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

func TestAllowed(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s %s %s", r.Proto, r.Host, r.TLS.ServerName)
	})
	c := w.client(w.grant("api.example.com"))
	for range 2 { // the second one on the connection of the first
		status, body, err := w.get(c, "https://API.example.com./path?q=1")
		if err != nil || status != 200 || body != "HTTP/2.0 api.example.com api.example.com" {
			t.Fatal(status, body, err)
		}
	}
	if d := w.dials(); !slices.Equal(d, []string{public + ":443"}) {
		t.Error("dialled", d)
	}
	if l := w.lookups; !slices.Equal(l, []string{"api.example.com"}) {
		t.Error("looked up", l)
	}
	want := []string{"allow GET https://api.example.com:443", "allow GET https://api.example.com:443"}
	if r := w.records(); !slices.Equal(r, want) {
		t.Error("recorded", r) // no path, no query
	}
}

func TestZeroGrantDenies(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.get(w.client(capability.Grant{}), "https://api.example.com/")
	refused(t, err, sdk.Denied)
	if len(w.lookups)+len(w.dials()) != 0 {
		t.Error("touched the network:", w.lookups, w.dials())
	}
}

// What a URL may lead to when the network list is entries, and what is said.
func TestVectors(t *testing.T) {
	for name, v := range map[string]struct {
		entries  []string
		names    map[string]string // the resolver's answers
		own      string
		url      string
		kind     sdk.Kind // "" is allowed
		says     string
		dials    string // the one address that may be dialled
		recorded string // the last record
	}{
		"net_unlisted_host":         {entries: []string{"api.example.com"}, url: "https://other.example.com/", kind: sdk.Denied, says: `network = ["api.example.com", "https://other.example.com"]`, recorded: "deny GET https://other.example.com:443"},
		"net_unlisted_port":         {entries: []string{"api.example.com"}, url: "https://api.example.com:8443/", kind: sdk.Denied, says: `network = ["api.example.com", "https://api.example.com:8443"]`},
		"net_plaintext":             {entries: []string{"api.example.com"}, url: "http://api.example.com/", kind: sdk.Denied, says: `network = ["api.example.com", "http://api.example.com"]`},
		"net_plaintext_any_port":    {entries: []string{"api.example.com:*", "*"}, url: "http://api.example.com:443/", kind: sdk.Denied},
		"net_method_not_granted":    {entries: []string{"HEAD,POST https://api.example.com"}, url: "https://api.example.com/", kind: sdk.Denied, recorded: "deny GET https://api.example.com:443"},
		"net_decimal_ip":            {entries: []string{"*"}, url: "https://2130706433/", kind: sdk.Invalid, says: "ambiguous numeric host"},
		"net_hex_ip":                {entries: []string{"*"}, url: "https://0x7f.1/", kind: sdk.Invalid},
		"net_octal_ip":              {entries: []string{"*"}, url: "https://0177.0.0.1/", kind: sdk.Invalid},
		"net_short_ip":              {entries: []string{"*"}, url: "https://127.1/", kind: sdk.Invalid},
		"net_fullwidth_ip":          {entries: []string{"*"}, url: "https://１２７.0.0.1/", kind: sdk.Denied, says: "rule net_loopback"},
		"net_mapped_v6":             {entries: []string{"*"}, url: "https://[::ffff:127.0.0.1]/", kind: sdk.Denied, says: "rule net_loopback", recorded: "deny GET https://127.0.0.1:443"},
		"net_mapped_v6_by_name":     {entries: []string{"api.example.com"}, names: map[string]string{"api.example.com": "::ffff:10.0.0.1"}, url: "https://api.example.com/", kind: sdk.Denied, says: "rule net_private"},
		"net_nat64":                 {entries: []string{"api.example.com"}, names: map[string]string{"api.example.com": "64:ff9b::a9fe:a9fe"}, url: "https://api.example.com/", kind: sdk.Denied, says: "rule net_nat64"},
		"net_6to4":                  {entries: []string{"api.example.com"}, names: map[string]string{"api.example.com": "2002:7f00:1::"}, url: "https://api.example.com/", kind: sdk.Denied, says: "rule net_6to4"},
		"net_metadata_ip":           {entries: []string{"http://*"}, url: "http://169.254.169.254/latest/meta-data/", kind: sdk.Denied, says: "rule net_metadata_ip"},
		"net_metadata_by_name":      {entries: []string{"http://api.example.com"}, names: map[string]string{"api.example.com": "169.254.169.254"}, url: "http://api.example.com/", kind: sdk.Denied, says: "rule net_metadata_ip", recorded: "deny GET http://169.254.169.254:80"},
		"net_own_interface":         {entries: []string{"api.example.com"}, own: public, url: "https://api.example.com/", kind: sdk.Denied, says: "rule net_own_interface"},
		"net_own_interface_nat64":   {entries: []string{"api.example.com"}, own: public, names: map[string]string{"api.example.com": "64:ff9b::5db8:d822"}, url: "https://api.example.com/", kind: sdk.Denied, says: "rule net_nat64"},
		"net_localhost_name":        {entries: []string{"localhost:3000"}, url: "https://localhost:3000/", kind: sdk.Denied, says: `network = ["localhost:3000", "https://127.0.0.1:3000"]`},
		"net_everywhere_is_public":  {entries: []string{"*", "http://*", "0.0.0.0/0", "http://0.0.0.0/0"}, url: "http://127.0.0.1/", kind: sdk.Denied, says: `network = ["http://127.0.0.1"]`},
		"net_literal_other_port":    {entries: []string{"localhost:*", "127.0.0.1:3001"}, url: "https://localhost:3000/", kind: sdk.Denied, says: "rule net_loopback"},
		"net_literal_other_scheme":  {entries: []string{"http://localhost:3000", "127.0.0.1:3000"}, url: "http://localhost:3000/", kind: sdk.Denied, says: "rule net_loopback"},
		"net_literal_other_method":  {entries: []string{"localhost:3000", "POST https://127.0.0.1:3000"}, url: "https://localhost:3000/", kind: sdk.Denied},
		"listed literal":            {entries: []string{"localhost:3000", "127.0.0.1:3000"}, url: "https://localhost:3000/", dials: "127.0.0.1:3000", recorded: "allow GET https://127.0.0.1:3000"},
		"listed prefix":             {entries: []string{"localhost:3000", "127.0.0.0/8"}, url: "https://localhost:3000/", dials: "127.0.0.1:3000"},
		"literal alone":             {entries: []string{"127.0.0.1:3000"}, url: "https://127.0.0.1:3000/", dials: "127.0.0.1:3000", recorded: "allow GET https://127.0.0.1:3000"},
		"mixed answer":              {entries: []string{"api.example.com"}, names: map[string]string{"api.example.com": "10.0.0.7 " + public}, url: "https://api.example.com/", dials: public + ":443", recorded: "deny GET https://10.0.0.7:443"},
		"everywhere":                {entries: []string{"*"}, url: "https://api.example.com/", dials: public + ":443"},
		"net_userinfo":              {entries: []string{"api.example.com"}, url: "https://user:pass@api.example.com/", kind: sdk.Invalid, says: "net_userinfo"},
		"net_userinfo_disguise":     {entries: []string{"api.example.com"}, url: "https://api.example.com@other.example.com/", kind: sdk.Invalid},
		"net_zone":                  {entries: []string{"*"}, url: "https://[fe80::1%25eth0]/", kind: sdk.Invalid},
		"net_scheme_file":           {entries: []string{"*"}, url: "file:///etc/passwd", kind: sdk.Invalid},
		"net_scheme_ftp":            {entries: []string{"*"}, url: "ftp://api.example.com/", kind: sdk.Invalid},
		"net_port_zero":             {entries: []string{"api.example.com:*"}, url: "https://api.example.com:0/", kind: sdk.Invalid},
		"net_port_leading_zero":     {entries: []string{"api.example.com"}, url: "https://api.example.com:0443/", kind: sdk.Invalid},
		"net_port_overflow":         {entries: []string{"api.example.com"}, url: "https://api.example.com:65979/", kind: sdk.Invalid},
		"net_no_such_name":          {entries: []string{"nothing.example.com"}, url: "https://nothing.example.com/", kind: sdk.Unavailable, says: "no such host"},
		"net_wildcard_not_the_apex": {entries: []string{"*.example.com"}, url: "https://example.com/", kind: sdk.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for n, a := range v.names {
				w.names[n] = [][]string{strings.Fields(a)}
			}
			if v.own != "" {
				w.own = []netip.Addr{netip.MustParseAddr(v.own)}
			}
			w.serve(public+":443", false, hello)
			w.serve("127.0.0.1:3000", false, hello)
			_, _, err := w.get(w.client(w.grant(v.entries...)), v.url)
			if v.kind == "" && err != nil {
				t.Fatal(err)
			} else if v.kind != "" {
				refused(t, err, v.kind, v.says)
				if d := w.dials(); len(d) != 0 {
					t.Error("dialled", d)
				}
			}
			if d := w.dials(); v.dials != "" && !slices.Equal(d, []string{v.dials}) {
				t.Errorf("dialled %q, want %q", d, v.dials)
			}
			if r := w.records(); v.recorded != "" && (len(r) == 0 || r[len(r)-1] != v.recorded) {
				t.Errorf("recorded %q, want %q last", r, v.recorded)
			}
			var e *sdk.Error
			if errors.As(err, &e) && e.Kind == sdk.Denied && (e.Denial == nil || e.Denial.Layer == "") {
				t.Errorf("denial without a layer: %#v", e)
			}
			if err != nil && strings.Contains(err.Error(), "192.168.7.7") {
				t.Error("names the host's resolver:", err)
			}
		})
	}
}

// A layer that lists an address opens it only together with all others.
func TestLiteralNeedsEveryLayer(t *testing.T) {
	topic := capability.Topic{Kind: capability.Network, Verb: capability.Connect}
	layer := func(name string, closed, speaks bool, entries ...string) capability.Layer {
		l := capability.Layer{Name: name, Closed: closed, Allow: set(t, entries...)}
		if speaks {
			l.Speaks = []capability.Topic{topic}
		}
		return l
	}
	for _, c := range []struct {
		name   string
		layers []capability.Layer
		ok     bool
	}{
		{"both list it", []capability.Layer{layer("manifest", true, false, "localhost:3000", "127.0.0.1:3000"), layer("operator", false, true, "localhost:3000", "127.0.0.0/8")}, true},
		{"the operator abstains", []capability.Layer{layer("manifest", true, false, "localhost:3000", "127.0.0.1:3000"), layer("operator", false, false)}, true},
		{"the operator says any host", []capability.Layer{layer("manifest", true, false, "localhost:3000", "127.0.0.1:3000"), layer("operator", false, true, "*")}, false},
		{"the call names it, the manifest says any host", []capability.Layer{layer("manifest", true, false, "*"), layer("call", false, true, "localhost:3000", "127.0.0.1:3000")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.serve("127.0.0.1:3000", false, hello)
			_, _, err := w.get(w.client(w.stack(c.layers...)), "https://localhost:3000/")
			if (err == nil) != c.ok {
				t.Error("got", err, "want ok", c.ok)
			}
		})
	}
}

// A denied address is denied under every name, and behind a translator.
func TestNetDeniedAddress(t *testing.T) {
	for name, v := range map[string]struct{ answer, url string }{
		"by name":    {public, "https://api.example.com/"},
		"by number":  {public, "https://" + public + "/"},
		"mapped":     {"::ffff:" + public, "https://api.example.com/"},
		"nat64":      {"64:ff9b::5db8:d822", "https://api.example.com/"},
		"nat64 URL":  {public, "https://[64:ff9b::5db8:d822]/"},
		"redirected": {"", "https://other.example.com/"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(second+":443", false, redirect("https://api.example.com/", http.StatusFound))
			w.serve(public+":443", false, hello)
			if v.answer != "" {
				w.names["api.example.com"] = [][]string{{v.answer}}
			}
			g := w.stack(capability.Layer{Name: "manifest", Closed: true, Allow: set(t, "*", "0.0.0.0/0", "::/0")},
				capability.Layer{Name: "operator", Pos: capability.Pos{File: "policy.toml", Line: 7}, Deny: set(t, "93.184.216.0/24")})
			_, _, err := w.get(w.client(g), v.url)
			refused(t, err, sdk.Denied, "operator policy.toml:7", "93.184.216.0/24")
			for _, d := range w.dials() {
				if d != second+":443" {
					t.Error("dialled", d)
				}
			}
			if r := w.records(); len(r) == 0 || !strings.HasPrefix(r[len(r)-1], "deny GET https://") {
				t.Error("recorded", r)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	for name, v := range map[string]struct {
		to      string
		entries []string
		kind    sdk.Kind
		says    string
	}{
		"net_redirect_to_private":    {"https://rebind.example.com/", []string{"*"}, sdk.Denied, "rule net_redirect_to_private"},
		"net_redirect_to_metadata":   {"http://169.254.169.254/", []string{"*", "http://*"}, sdk.Denied, "rule net_redirect_to_private"},
		"net_redirect_to_localhost":  {"https://localhost/", []string{"api.example.com", "localhost"}, sdk.Denied, "rule net_redirect_to_private"},
		"net_redirect_unlisted_host": {"https://other.example.com/", []string{"api.example.com"}, sdk.Denied, "the target of a redirect"},
		"net_http_downgrade":         {"http://api.example.com/", []string{"api.example.com"}, sdk.Denied, "http://api.example.com"},
		"net_redirect_scheme":        {"file:///etc/passwd", []string{"*"}, sdk.Invalid, "scheme"},
		"net_redirect_userinfo":      {"https://a:b@api.example.com/", []string{"*"}, sdk.Invalid, "net_userinfo"},
		"net_redirect_loop":          {"/again", []string{"api.example.com"}, sdk.Limit, "more than 10 redirects"},
		"granted downgrade":          {"http://other.example.com/", []string{"api.example.com", "http://other.example.com"}, "", ""},
		"granted host":               {"https://other.example.com/", []string{"api.example.com", "other.example.com"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.names["rebind.example.com"] = [][]string{{"192.168.0.1"}}
			w.serve(public+":443", false, redirect(v.to, http.StatusFound))
			w.serve(second+":443", false, hello)
			w.serve(second+":80", true, hello)
			_, _, err := w.get(w.client(w.grant(v.entries...)), "https://api.example.com/")
			if v.kind == "" && err != nil {
				t.Fatal(err)
			} else if v.kind != "" {
				refused(t, err, v.kind, v.says)
				if d := w.dials(); !slices.Equal(d, []string{public + ":443"}) {
					t.Error("dialled", d)
				}
			}
		})
	}
}

func TestRedirectCount(t *testing.T) {
	w := newWorld(t)
	hops := 0
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		if hops++; hops <= 10 {
			http.Redirect(rw, r, fmt.Sprintf("/%d", hops), http.StatusFound)
		}
	})
	if status, _, err := w.get(w.client(w.grant("api.example.com")), "https://api.example.com/"); err != nil || status != 200 {
		t.Error("ten redirects:", status, err)
	}
}

// RFC 9110, 15.4: method and body after each status.
func TestRedirectMethod(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		want   string
	}{
		{"POST", 301, "GET  "}, {"POST", 302, "GET  "}, {"POST", 303, "GET  "}, {"POST", 307, "POST body text/x"}, {"POST", 308, "POST body text/x"},
		{"PUT", 301, "PUT body text/x"}, {"PUT", 302, "PUT body text/x"}, {"PUT", 303, "GET  "}, {"PUT", 307, "PUT body text/x"},
		{"DELETE", 302, "DELETE body text/x"}, {"DELETE", 303, "GET  "}, {"GET", 301, "GET  "},
	} {
		t.Run(fmt.Sprint(c.method, c.status), func(t *testing.T) {
			w := newWorld(t)
			w.serve(public+":443", false, redirect("https://other.example.com/2", c.status))
			w.serve(second+":443", false, func(rw http.ResponseWriter, r *http.Request) {
				b := make([]byte, 16)
				n, _ := r.Body.Read(b)
				fmt.Fprintf(rw, "%s %s %s", r.Method, b[:n], r.Header.Get("Content-Type"))
			})
			body, header := "body", http.Header{"Content-Type": {"text/x"}}
			if c.method == "GET" {
				body, header = "", nil
			}
			_, got, err := w.do(w.client(w.grant("api.example.com", "other.example.com")), c.method, "https://api.example.com/1", body, header)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestRedirectAcrossOriginsForgetsWho(t *testing.T) {
	w := newWorld(t)
	names := []string{"Authorization", "Cookie", "X-Api-Key", "Private-Token", "Referer", "Accept"}
	seen := func(r *http.Request) (list []string) {
		for _, n := range names {
			if r.Header.Get(n) != "" {
				list = append(list, n)
			}
		}
		return list
	}
	var here, there, home []string
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/home" {
			home = seen(r)
			return
		}
		here = seen(r)
		http.Redirect(rw, r, "https://other.example.com/", http.StatusFound)
	})
	w.serve(second+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		there = seen(r)
		http.Redirect(rw, r, "https://api.example.com/home", http.StatusFound)
	})
	h := http.Header{}
	for _, n := range names {
		h.Set(n, "x")
	}
	if _, _, err := w.do(w.client(w.grant("api.example.com", "other.example.com")), "GET", "https://api.example.com/?token=1", "", h); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(here, names) || !slices.Equal(there, []string{"Accept"}) || !slices.Equal(home, []string{"Accept"}) {
		t.Error("first", here, "other", there, "back", home)
	}
}

func TestNetRebind(t *testing.T) {
	w := newWorld(t)
	w.names["rebind.example.com"] = [][]string{{public}, {"127.0.0.1"}}
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("Connection", "close") })
	w.serve("127.0.0.1:443", false, hello)
	g := w.grant("rebind.example.com")
	c := w.client(g)
	for range 3 { // one call: one answer, also for a new connection
		c.CloseIdleConnections()
		if _, _, err := w.get(c, "https://rebind.example.com/"); err != nil {
			t.Fatal(err)
		}
	}
	if d := slices.Compact(w.dials()); !slices.Equal(d, []string{public + ":443"}) {
		t.Error("dialled", d)
	}
	// The next call gets the second answer, and nothing of the first.
	_, _, err := w.get(w.client(g), "https://rebind.example.com/")
	refused(t, err, sdk.Denied, "rule net_loopback")
	if d := slices.Compact(w.dials()); len(d) != 1 {
		t.Error("dialled", d)
	}
}

func TestNetPoolReuseAcrossGrants(t *testing.T) {
	w := newWorld(t)
	w.serve("127.0.0.1:3000", false, hello)
	b := w.broker()
	if _, _, err := w.get(b.Client(w.grant("localhost:3000", "127.0.0.1:3000"), nil, 1<<10), "https://localhost:3000/"); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.get(b.Client(w.grant("localhost:3000"), nil, 1<<10), "https://localhost:3000/")
	refused(t, err, sdk.Denied, "rule net_loopback")
}

// Within one call, a connection that GET opened is no way for POST.
func TestNetPoolReuseAcrossMethods(t *testing.T) {
	w := newWorld(t)
	w.serve("127.0.0.1:3000", false, hello)
	c := w.client(w.grant("localhost:3000", "GET https://127.0.0.1:3000"))
	if _, _, err := w.get(c, "https://localhost:3000/"); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.do(c, "POST", "https://localhost:3000/", "x", nil)
	refused(t, err, sdk.Denied, "rule net_loopback")
}

// Revoking holds in the middle of a call, also for connections that are open.
func TestNetRevokedMidCall(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	revoked := false
	c := w.client(w.grant("api.example.com").WithLive(func(capability.Access) error {
		if revoked {
			return &sdk.Error{Kind: sdk.Denied, What: "revoked", Denial: &sdk.Denial{Layer: "operator"}}
		}
		return nil
	}))
	if _, _, err := w.get(c, "https://api.example.com/"); err != nil {
		t.Fatal(err)
	}
	revoked = true
	_, _, err := w.get(c, "https://api.example.com/")
	refused(t, err, sdk.Denied)
}

func TestNetProxyEnvIgnored(t *testing.T) {
	for _, v := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(v, "http://203.0.113.9:3128")
	}
	if os.Getenv("HTTPS_PROXY") == "" {
		t.Fatal("no proxy is set")
	}
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	if _, _, err := w.get(w.client(w.grant("api.example.com")), "https://api.example.com/"); err != nil {
		t.Fatal(err)
	}
	if d := w.dials(); !slices.Equal(d, []string{public + ":443"}) {
		t.Error("dialled", d)
	}
}

func TestNetHostHeaderFronting(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	c := w.client(w.grant("api.example.com"))
	req, err := http.NewRequest("GET", "https://api.example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "other.example.com"
	_, err = c.Do(req)
	refused(t, err, sdk.Invalid, "net_host_header_fronting")
	_, _, err = w.do(c, "GET", "https://api.example.com/", "", http.Header{"Host": {"other.example.com"}})
	refused(t, err, sdk.Invalid, "header Host")
	if len(w.dials()) != 0 {
		t.Error("dialled", w.dials())
	}
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	c := w.client(w.grant("api.example.com"))
	for _, h := range []http.Header{
		{"X-A": {"1\r\nHost: other.example.com"}}, {"X-A": {"1\n2"}}, {"X-A": {"a\x00b"}}, {"X-A": {"a\x7f"}},
		{"X-A\r\nX-B": {"1"}}, {"X A": {"1"}}, {"": {"1"}}, {"X:A": {"1"}}, {"Ünicode": {"1"}},
		{"Transfer-Encoding": {"chunked"}}, {"transfer-encoding": {"chunked"}}, {"Content-Length": {"0"}}, {"Connection": {"X-A"}}, {"Keep-Alive": {"1"}},
		{"Proxy-Authorization": {"x"}}, {"PROXY-connection": {"x"}}, {"Te": {"trailers"}}, {"TE": {"trailers"}}, {"Trailer": {"X"}}, {"Upgrade": {"h2c"}}, {"Expect": {"100-continue"}}, {"Accept-Encoding": {"br"}},
	} {
		_, _, err := w.do(c, "GET", "https://api.example.com/", "", h)
		if sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("net_header_crlf %q: %v", h, err)
		}
	}
	_, _, err := w.do(c, "GET", "https://api.example.com/", "", http.Header{"X-A": {strings.Repeat("a", maxRequestHeader)}})
	refused(t, err, sdk.Limit)
	if len(w.dials()) != 0 {
		t.Error("dialled", w.dials())
	}
	if _, _, err := w.do(c, "GET", "https://api.example.com/", "", http.Header{"X-A": {"plain\ttext é"}, "Cookie": {"a=b"}}); err != nil {
		t.Error(err)
	}
}

func TestURLs(t *testing.T) {
	for _, u := range []*url.URL{
		{Scheme: "https", Host: "api.example.com:"}, {Scheme: "https", Host: "[::1]:"}, {Scheme: "https", Host: "[::1]x"}, {Scheme: "https", Host: "a:b"},
		{Scheme: "https", Host: "::1"}, {Scheme: "https", Host: "[127.0.0.1]"}, {Scheme: "https", Host: "a.example.com\r\nX: 1"}, {Scheme: "https", Host: "a..example.com"},
		{Scheme: "https", Opaque: "//api.example.com"}, {Scheme: "HTTPS", Host: "api.example.com"}, {Host: "api.example.com"}, {},
	} {
		if n, err := Target(u, "GET"); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%#v: %v, %v", u, n, err)
		}
	}
}

func TestMethods(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "api.example.com"}
	for _, m := range []string{"get", "CONNECT", "TRACE", "GE T", "GET\r\n", "É", strings.Repeat("A", 33)} {
		if n, err := Target(u, m); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%q: %v, %v", m, n, err)
		}
	}
	for _, m := range []string{"", "GET", "QUERY", "VERSION-CONTROL"} {
		if n, err := Target(u, m); err != nil || m != "" && n.Method != m || n.Method == "" {
			t.Errorf("%q: %v, %v", m, n, err)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"https://api.example.com/", "http://[::1]:80/x", "https://a@b", "https://１２７.0.0.1", "https://[127.0.0.1]", "https://h:", "https://h:0443", "//h", "https:opaque", "https://[fe80::1%25lo]/", "https://b\u0075\u0308cher.de:8443"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil {
			return
		}
		n, err := Target(u, "GET")
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatalf("%q: kind %q", s, sdk.KindOf(err))
			}
			return
		}
		if n.Host == "" || n.Port == 0 || n.Scheme != "https" && n.Scheme != "http" {
			t.Fatalf("%q: %+v", s, n)
		}
		// What goes out is read back as what was judged.
		again, err := url.Parse(n.Scheme + "://" + authority(n) + "/")
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if m, err := Target(again, "GET"); err != nil || m != n {
			t.Fatalf("%q: %+v, then %+v, %v", s, n, m, err)
		}
	})
}
