package egress

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What curl gets through the way out, when the network list is entries.
func TestExitCurl(t *testing.T) {
	for name, v := range map[string]struct {
		entries []string
		args    []string
		fails   bool
		says    string
		dials   []string
	}{
		"http":                  {entries: []string{"http://api.example.com"}, args: []string{"http://api.example.com/p"}, says: "hello GET api.example.com", dials: []string{public + ":80"}},
		"https":                 {entries: []string{"api.example.com"}, args: []string{"https://api.example.com/p"}, says: "hello GET api.example.com", dials: []string{public + ":443"}},
		"https upper case, dot": {entries: []string{"api.example.com"}, args: []string{"https://API.example.com./p"}, says: "hello GET", dials: []string{public + ":443"}},
		"post":                  {entries: []string{"POST http://api.example.com"}, args: []string{"-d", "x=1", "http://api.example.com/p"}, says: "hello POST", dials: []string{public + ":80"}},
		"address":               {entries: []string{"127.0.0.1:3000"}, args: []string{"https://127.0.0.1:3000/"}, says: "hello GET 127.0.0.1:3000", dials: []string{"127.0.0.1:3000"}},
		"net_unlisted_host":     {entries: []string{"http://api.example.com"}, args: []string{"-i", "http://other.example.com/p?q"}, says: "403 Forbidden"},
		"net_unlisted_tls_host": {entries: []string{"api.example.com"}, args: []string{"-v", "https://other.example.com/"}, fails: true, says: "X-Proxy-Error: net_not_granted"},
		"net_method":            {entries: []string{"GET http://api.example.com"}, args: []string{"-d", "x=1", "http://api.example.com/p"}, says: `network = ["GET http://api.example.com", "POST http://api.example.com"]`},
		"net_redirect_metadata": {entries: []string{"http://api.example.com", "http://*"}, args: []string{"-Li", "http://api.example.com/to?http://169.254.169.254/latest/"}, says: "X-Proxy-Error: net_metadata_ip", dials: []string{public + ":80"}},
		"net_redirect_unlisted": {entries: []string{"http://api.example.com"}, args: []string{"-Li", "http://api.example.com/to?http://other.example.com/"}, says: "X-Proxy-Error: net_not_granted", dials: []string{public + ":80"}},
		"net_decimal_ip":        {entries: []string{"http://*"}, args: []string{"-i", "http://2130706433/"}, says: "403 Forbidden"},
		"net_short_hex_ip":      {entries: []string{"http://*"}, args: []string{"-i", "http://0x7f.1/"}, says: "403 Forbidden"},
		"net_loopback_by_name":  {entries: []string{"http://localhost"}, args: []string{"-i", "http://localhost/"}, says: "X-Proxy-Error: net_loopback"},
		"net_loopback_tls":      {entries: []string{"*"}, args: []string{"-v", "https://localhost/"}, fails: true, says: "X-Proxy-Error: net_loopback"},
		"net_own_interface":     {entries: []string{"http://*"}, args: []string{"-i", "http://93.184.216.99/"}, says: "X-Proxy-Error: net_own_interface"},
		"net_http2_prior":       {entries: []string{"http://api.example.com"}, args: []string{"--http2-prior-knowledge", "-p", "https://api.example.com:80/"}, fails: true},
		"net_h2c_upgrade":       {entries: []string{"http://api.example.com"}, args: []string{"-i", "-H", "Connection: Upgrade, HTTP2-Settings", "-H", "Upgrade: h2c", "-H", "HTTP2-Settings: AA", "http://api.example.com/"}, says: "X-Proxy-Error: net_upgrade"},
		"net_ssh_port":          {entries: []string{"api.example.com"}, args: []string{"-v", "https://api.example.com:22/"}, fails: true, says: "X-Proxy-Error: net_not_granted"},
		"no such host":          {entries: []string{"http://nothing.example.com"}, args: []string{"-i", "http://nothing.example.com/"}, says: "502 Bad Gateway"},
		"connection refused":    {entries: []string{"http://api.example.com:81"}, args: []string{"-i", "http://api.example.com:81/"}, says: "502 Bad Gateway", dials: []string{public + ":81"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.own = []netip.Addr{netip.MustParseAddr("93.184.216.99")}
			h := func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/to" {
					redirect(r.URL.RawQuery, 302)(rw, r)
					return
				}
				hello(rw, r)
			}
			w.serve(public+":80", true, h)
			w.serve(public+":443", false, h)
			w.serve("127.0.0.1:3000", false, h)
			w.serve("127.0.0.1:80", true, h)
			w.serve("169.254.169.254:80", true, h)
			c := w.cage()
			out, err := c.curl(c.open(v.entries...), v.args...)
			if (err != nil) != v.fails || !strings.Contains(out, v.says) {
				t.Errorf("%v:\n%s\nwant %q", err, out, v.says)
			}
			if d := w.dials(); !slices.Equal(d, v.dials) {
				t.Errorf("dialled %q, want %q", d, v.dials)
			}
			if strings.Contains(out, "192.168.7.7") {
				t.Error("names the host's resolver")
			}
		})
	}
}

// Requests as nobody's library sends them.
func TestExitRaw(t *testing.T) {
	const auth = "{auth}\r\n"
	get := func(line string, header ...string) string {
		return line + "\r\nHost: api.example.com\r\n" + strings.Join(header, "") + auth
	}
	for name, v := range map[string]struct {
		send   string
		status int
		rule   string
		says   string // in the body
		dials  int
	}{
		"absolute form":             {send: get("GET http://api.example.com/ HTTP/1.1"), status: 200, says: "hello GET api.example.com", dials: 1},
		"HTTP/1.0":                  {send: get("GET http://api.example.com/ HTTP/1.0"), status: 200, says: "hello GET api.example.com", dials: 1},
		"net_host_header_fronting":  {send: "GET http://api.example.com/ HTTP/1.1\r\nHost: other.example.com\r\n" + auth, status: 200, says: "hello GET api.example.com", dials: 1},
		"net_no_host":               {send: "GET http://api.example.com/ HTTP/1.1\r\n" + auth, status: 400},
		"net_two_hosts":             {send: get("GET http://api.example.com/ HTTP/1.1", "Host: other.example.com\r\n"), status: 400},
		"net_two_lengths":           {send: get("POST http://api.example.com/ HTTP/1.1", "Content-Length: 3\r\nContent-Length: 4\r\n") + "abcd", status: 400},
		"net_bad_length":            {send: get("POST http://api.example.com/ HTTP/1.1", "Content-Length: +3\r\n") + "abc", status: 400},
		"net_space_before_colon":    {send: get("POST http://api.example.com/ HTTP/1.1", "Transfer-Encoding : chunked\r\n") + "0\r\n\r\n", status: 400},
		"net_unknown_coding":        {send: get("POST http://api.example.com/ HTTP/1.1", "Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n", status: 501},
		"net_two_codings":           {send: get("POST http://api.example.com/ HTTP/1.1", "Transfer-Encoding: chunked, identity\r\n") + "0\r\n\r\n", status: 501},
		"net_header_nul":            {send: get("GET http://api.example.com/ HTTP/1.1", "X-A: a\x00b\r\n"), status: 400},
		"net_header_too_large":      {send: get("GET http://api.example.com/ HTTP/1.1", "X-A: "+strings.Repeat("x", 100<<10)+"\r\n"), status: 431},
		"net_origin_form":           {send: get("GET /PATH?QUERY HTTP/1.1"), status: 403, rule: "net_proxy_form"},
		"net_asterisk":              {send: get("OPTIONS * HTTP/1.1"), status: 403, rule: "net_proxy_form"},
		"net_https_url":             {send: get("GET https://api.example.com/ HTTP/1.1"), status: 403, rule: "net_proxy_form", says: "use CONNECT"},
		"net_file_url":              {send: get("GET file:///PATH HTTP/1.1"), status: 403, rule: "net_proxy_form"},
		"net_ftp_url":               {send: get("GET ftp://api.example.com/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_userinfo":              {send: get("GET http://a:b@api.example.com/ HTTP/1.1"), status: 403, rule: "net_userinfo"},
		"net_userinfo_disguise":     {send: get("GET http://api.example.com@other.example.com/ HTTP/1.1"), status: 403, rule: "net_userinfo"},
		"net_decimal_ip":            {send: get("GET http://2130706433/PATH?QUERY HTTP/1.1"), status: 403, rule: "net_invalid_request", says: "ambiguous numeric host"},
		"net_short_hex_ip":          {send: get("GET http://0x7f.1/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_octal_ip":              {send: get("GET http://0177.0.0.1/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_mapped_v6":             {send: get("GET http://[::ffff:127.0.0.1]/ HTTP/1.1"), status: 403, rule: "net_loopback"},
		"net_zone":                  {send: get("GET http://[fe80::1%25eth0]/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_trace":                 {send: get("TRACE http://api.example.com/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_lower_method":          {send: get("get http://api.example.com/ HTTP/1.1"), status: 403, rule: "net_invalid_request"},
		"net_websocket":             {send: get("GET http://api.example.com/ HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), status: 403, rule: "net_upgrade", says: "wss"},
		"net_http2_prior_knowledge": {send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 505, rule: "net_http2"},
		"net_connect_path":          {send: get("CONNECT api.example.com:443/x HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_query":         {send: get("CONNECT api.example.com:443?x HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_fragment":      {send: get("CONNECT api.example.com:443#x HTTP/1.1"), status: 400},
		"net_connect_user":          {send: get("CONNECT u@api.example.com:443 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_no_port":       {send: get("CONNECT api.example.com HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_empty_port":    {send: get("CONNECT api.example.com: HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_port_zero":     {send: get("CONNECT api.example.com:0 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_port_padded":   {send: get("CONNECT api.example.com:0443 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_port_overflow": {send: get("CONNECT api.example.com:65979 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_space":         {send: get("CONNECT api.example.com:443 other.example.com:443 HTTP/1.1"), status: 400},
		"net_connect_cr":            {send: get("CONNECT api.example.com:443\rX HTTP/1.1"), status: 400},
		"net_connect_url":           {send: get("CONNECT http://api.example.com:443 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_slash":         {send: get("CONNECT /api.example.com:443 HTTP/1.1"), status: 403, rule: "net_connect_target"},
		"net_connect_bare_v6":       {send: get("CONNECT ::1:443 HTTP/1.1"), status: 400},
		"net_connect_decimal":       {send: get("CONNECT 2130706433:443 HTTP/1.1"), status: 403, rule: "net_connect_target", says: "ambiguous numeric host"},
		"net_connect_body":          {send: get("CONNECT api.example.com:443 HTTP/1.1", "Content-Length: 3\r\n") + "abc", status: 403, rule: "net_connect_target"},
		"net_connect_loopback":      {send: get("CONNECT 127.0.0.1:443 HTTP/1.1"), status: 403, rule: "net_loopback"},
		"net_connect_metadata":      {send: get("CONNECT [fd00:ec2::254]:443 HTTP/1.1"), status: 403, rule: "net_metadata_ip"},
		"net_connect_ssh":           {send: get("CONNECT api.example.com:22 HTTP/1.1"), status: 502, rule: "net_unreachable", dials: 1}, // "*" is any port; but TLS only
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve(public+":80", true, hello)
			w.serve(second+":80", true, hello)
			c := w.cage()
			resp, body := say(t, c.open("*", "http://*"), v.send)
			if resp.StatusCode != v.status || resp.Header.Get("X-Proxy-Error") != v.rule || !strings.Contains(body, v.says) {
				t.Errorf("got %s, rule %q, %q; want %d, rule %q, %q", resp.Status, resp.Header.Get("X-Proxy-Error"), body, v.status, v.rule, v.says)
			}
			if d := w.dials(); len(d) != v.dials || len(d) == 1 && !strings.HasPrefix(d[0], public+":") {
				t.Error("dialled", d)
			}
			if v.rule != "" && v.dials == 0 && v.rule != "net_http2" && !(v.rule == "net_proxy_form" && v.says == "") {
				if r := w.records(); len(r) == 0 || !strings.HasPrefix(r[len(r)-1], "deny ") {
					t.Errorf("recorded %q, want a denial last", r)
				}
			}
			if strings.Contains(body, "PATH") || strings.Contains(body, "QUERY") {
				t.Error("names a path or a query:", body)
			}
		})
	}
}

// A denial says what, by which rule, who refused, and the line that would allow.
func TestExitDenialText(t *testing.T) {
	c := newWorld(t).cage()
	resp, body := say(t, c.open("api.example.com"), "GET http://other.example.com/path?query HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
	want := `skill: rule net_not_granted: network.connect GET http://other.example.com:80 ` +
		`(refused by manifest skill.toml:1; to allow it, write in [capabilities]: network = ["api.example.com", "http://other.example.com"])` + "\n"
	if resp.StatusCode != 403 || body != want {
		t.Errorf("got %q, want %q", body, want)
	}
	if r := c.records(); !slices.Equal(r, []string{"deny GET http://other.example.com:80"}) {
		t.Errorf("recorded %q", r)
	}
}

func TestExitCredentials(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":80", true, hello)
	w.serve(second+":80", true, hello)
	c := w.cage()
	one := c.url(c.exit.Open("one:1/ü", c.grant("http://api.example.com"), 0, nil))
	two := c.url(c.exit.Open("two", c.grant("http://other.example.com"), 0, nil))
	late, done := c.exit.Open("late", c.grant("http://api.example.com"), 0, nil)
	finished := c.url(late, done)
	done()
	done() // once more does nothing
	const get = "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n"
	pass1, _ := one.User.Password()
	mixed := *two
	mixed.User = one.User
	stolen := *one
	stolen.User = nil
	for name, v := range map[string]struct {
		text   string
		status int
	}{
		"right":              {get + credentials(one), 200},
		"other case":         {get + strings.Replace(credentials(one), "Basic", "bASIC", 1), 200},
		"another call's":     {get + credentials(two), 403}, // only that call's grant
		"none":               {get, 407},
		"finished call":      {get + credentials(finished), 407},
		"wrong token":        {get + strings.Replace(credentials(one), "Basic ", "Basic QQ", 1), 407},
		"token of another":   {get + basic("two", pass1), 407},
		"no user":            {get + basic("", pass1), 407},
		"user alone":         {get + basic("two", ""), 407},
		"bearer":             {get + strings.Replace(credentials(one), "Basic", "Bearer", 1), 407},
		"twice":              {get + credentials(two) + credentials(one), 407},
		"not base64":         {get + "Proxy-Authorization: Basic %%%\r\n", 407},
		"Authorization":      {get + strings.Replace(credentials(one), "Proxy-Auth", "Auth", 1), 407},
		"CONNECT without":    {"CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n", 407},
		"malformed, without": {"GET /x HTTP/1.1\r\nHost: x\r\n", 407},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _ := say(t, one, v.text+"\r\n")
			if resp.StatusCode != v.status {
				t.Errorf("got %s, want %d", resp.Status, v.status)
			}
			if a := resp.Header.Get("Proxy-Authenticate"); (v.status == 407) != (a == `Basic realm="skill"`) {
				t.Errorf("Proxy-Authenticate %q", a)
			}
		})
	}
	if x, _ := one.User.Password(); len(x) < 26 {
		t.Error("a token of", len(x), "characters")
	}
}

func basic(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return "Proxy-" + "Authorization: " + r.Header.Get("Authorization") + "\r\n"
}

// What the server sees of a request, and the child of an answer.
func TestExitHeaders(t *testing.T) {
	w := newWorld(t)
	var seen http.Header
	var length int64
	var coding []string
	w.serve(public+":80", true, func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen, length, coding = r.Header, r.ContentLength, r.TransferEncoding
		if len(r.Trailer) > 0 {
			seen.Set("Saw-Trailer", fmt.Sprint(r.Trailer))
		}
		for name, value := range map[string]string{"Connection": "X-Hop", "X-Hop": "1", "X-End": "1", "X-Proxy-Error": "net_fake", "Proxy-Authenticate": "Basic", "Trailer": "X-Late"} {
			rw.Header().Set(name, value)
		}
		rw.Header()["Content-Type"] = nil
		io.WriteString(rw, "\x1f\x8b not decoded")
		rw.Header().Set("X-Late", "1")
	})
	c := w.cage()
	proxy := c.open("GET,POST http://api.example.com")
	if resp, _ := say(t, proxy, "GET http://api.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}\r\n"); resp.StatusCode != 200 || seen["Accept-Encoding"] != nil {
		t.Error("a host of its own mind:", resp.Status, seen)
	}
	resp, body := say(t, proxy, "POST http://api.example.com/ HTTP/1.1\r\nHost: x\r\n{auth}"+
		"Connection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nTrailer: X-T\r\nExpect: 100-continue\r\n"+
		"Accept-Encoding: br\r\nCookie: a=b\r\nX-End: 1\r\nContent-Length: 5\r\n\r\nhello")
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status, body)
	}
	for _, gone := range []string{"X-Private", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Expect", "Connection", "Saw-Trailer", "Via", "X-Forwarded-For", "Forwarded"} {
		if seen[gone] != nil {
			t.Errorf("the server saw %s: %q", gone, seen[gone])
		}
	}
	for name, value := range map[string]string{"Accept-Encoding": "br", "Cookie": "a=b", "X-End": "1"} {
		if seen.Get(name) != value {
			t.Errorf("the server saw %s: %q", name, seen.Get(name))
		}
	}
	if length != 5 || len(coding) > 0 {
		t.Error("length", length, coding)
	}
	for _, gone := range []string{"X-Hop", "X-Proxy-Error", "Proxy-Authenticate", "Trailer", "X-Late", "Content-Type"} {
		if resp.Header[gone] != nil {
			t.Errorf("the child saw %s: %q", gone, resp.Header[gone])
		}
	}
	if resp.Header.Get("X-End") != "1" || body != "\x1f\x8b not decoded" || len(resp.Trailer) > 0 {
		t.Error(resp.Header, resp.Trailer, body)
	}
}

// git answers a 407 with the credentials that it did not send at first.
func TestExitGit(t *testing.T) {
	git := program(t, "git")
	dir := t.TempDir()
	run := func(env []string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = dir
		cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"}, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run(nil, "init", "-q", "repo")
	run(nil, "-C", "repo", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "--allow-empty", "-m", "first")
	run(nil, "clone", "-q", "--bare", "repo", "repo.git")
	run(nil, "-C", "repo.git", "update-server-info")
	w := newWorld(t)
	files := http.FileServer(http.Dir(dir))
	w.serve(public+":80", true, files.ServeHTTP)
	w.serve(public+":443", false, files.ServeHTTP)
	c := w.cage()
	proxy := c.open("GET http://api.example.com", "api.example.com")
	ca := c.authority()
	for _, scheme := range []string{"http", "https"} {
		run([]string{"http_proxy=" + proxy.String(), "https_proxy=" + proxy.String(), "NO_PROXY=", "GIT_SSL_CAINFO=" + ca}, "clone", "-q", scheme+"://api.example.com/repo.git", scheme)
		run(nil, "-C", scheme, "log", "-1")
	}
}
