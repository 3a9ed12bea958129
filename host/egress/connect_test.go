package egress

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// Which CONNECTs are let through, by the entries of the manifest and the operator.
func TestExitConnectTargets(t *testing.T) {
	for name, v := range map[string]struct {
		manifest []string
		operator []string // nil: there is no such layer
		bound    []string
		target   string
		status   int
		rule     string
		says     string
		recorded string // last
	}{
		"listed":                        {manifest: []string{"api.example.com"}, target: "api.example.com:443", status: 200, recorded: "allow https://api.example.com:443"},
		"canonical":                     {manifest: []string{"api.example.com"}, target: "API.Example.com.:443", status: 200, recorded: "allow https://api.example.com:443"},
		"net_unlisted":                  {manifest: []string{"api.example.com"}, target: "other.example.com:443", status: 403, rule: "net_not_granted", says: `network = ["api.example.com", "https://other.example.com"]`, recorded: "deny https://other.example.com:443"},
		"net_only_http":                 {manifest: []string{"http://api.example.com:443"}, target: "api.example.com:443", status: 403, rule: "net_not_granted"},
		"net_port":                      {manifest: []string{"api.example.com"}, target: "api.example.com:22", status: 403, rule: "net_not_granted"},
		"net_method":                    {manifest: []string{"GET,HEAD api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_method_in_tunnel", says: "http.request; or refused by manifest skill.toml:1", recorded: "deny https://api.example.com:443"},
		"net_method_operator":           {manifest: []string{"api.example.com"}, operator: []string{"GET *"}, target: "api.example.com:443", status: 403, rule: "net_method_in_tunnel", says: "policy.toml:3"},
		"net_method_of_another":         {manifest: []string{"GET other.example.com"}, target: "api.example.com:443", status: 403, rule: "net_not_granted"},
		"entry with and one without":    {manifest: []string{"GET api.example.com", "api.example.com"}, target: "api.example.com:443", status: 200},
		"net_secret":                    {manifest: []string{"api.example.com"}, bound: []string{"api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_secret_in_tunnel", recorded: "deny https://api.example.com:443"},
		"net_secret_wildcard":           {manifest: []string{"*"}, bound: []string{"*.example.com"}, target: "api.example.com:443", status: 403, rule: "net_secret_in_tunnel"},
		"net_secret_method":             {manifest: []string{"api.example.com"}, bound: []string{"POST https://api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_secret_in_tunnel"},
		"net_secret_raw":                {manifest: []string{"tcp://api.example.com:443"}, bound: []string{"api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_secret_in_tunnel"},
		"net_secret_not_granted":        {manifest: []string{"other.example.com"}, bound: []string{"api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_not_granted"},
		"secret of another host":        {manifest: []string{"api.example.com"}, bound: []string{"other.example.com"}, target: "api.example.com:443", status: 200},
		"raw":                           {manifest: []string{"tcp://api.example.com:443"}, target: "api.example.com:443", status: 200, recorded: "allow tcp://api.example.com:443"},
		"raw, the operator does not":    {manifest: []string{"tcp://api.example.com:443"}, operator: []string{"https://api.example.com"}, target: "api.example.com:443", status: 403, rule: "net_not_granted", says: "policy.toml:3"},
		"raw, the operator all":         {manifest: []string{"tcp://api.example.com:443"}, operator: []string{"*"}, target: "api.example.com:443", status: 200, recorded: "allow tcp://api.example.com:443"},
		"either, the operator only TLS": {manifest: []string{"tcp://api.example.com:443", "api.example.com"}, operator: []string{"https://api.example.com"}, target: "api.example.com:443", status: 200, recorded: "allow https://api.example.com:443"},
		"raw elsewhere":                 {manifest: []string{"api.example.com", "tcp://api.example.com:22"}, target: "api.example.com:443", status: 200, recorded: "allow https://api.example.com:443"},
		"net_raw_loopback":              {manifest: []string{"tcp://localhost:443"}, target: "localhost:443", status: 403, rule: "net_loopback", says: `"tcp://127.0.0.1:443"`},
		"raw loopback":                  {manifest: []string{"tcp://localhost:443", "tcp://127.0.0.1:443"}, target: "localhost:443", status: 200, recorded: "allow tcp://127.0.0.1:443"},
		"net_rebind":                    {manifest: []string{"rebind.example.com"}, target: "rebind.example.com:443", status: 403, rule: "net_loopback", recorded: "deny https://127.0.0.1:443"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.names["rebind.example.com"] = [][]string{{"127.0.0.1"}, {public}} // and not asked again
			w.serve(public+":443", false, hello)
			w.serve("127.0.0.1:443", false, hello)
			c := w.cage()
			layers := w.grant(v.manifest...).Layers()
			if v.operator != nil {
				layers = append(layers, layerNamed(t, "operator", v.operator...))
			}
			proxy := c.url(c.exit.Open("call", w.stack(layers...), 0, set(t, v.bound...)))
			resp, body := &http.Response{}, ""
			if v.status == 200 {
				_, resp.StatusCode = tunnel(t, proxy, v.target)
			} else {
				resp, body = say(t, proxy, "CONNECT "+v.target+" HTTP/1.1\r\nHost: x\r\n{auth}\r\n")
			}
			if resp.StatusCode != v.status || resp.Header.Get("X-Proxy-Error") != v.rule || !strings.Contains(body, v.says) {
				t.Errorf("got %d, rule %q, %q; want %d, rule %q, %q", resp.StatusCode, resp.Header.Get("X-Proxy-Error"), body, v.status, v.rule, v.says)
			}
			if r := w.records(); v.recorded != "" && (len(r) == 0 || r[len(r)-1] != v.recorded) {
				t.Errorf("recorded %q, want %q last", r, v.recorded)
			}
			if d := w.dials(); v.status != 200 && len(d) > 0 {
				t.Error("dialled", d)
			}
		})
	}
}

// clientHello returns the first bytes of a TLS client that asks for name.
func clientHello(t testing.TB, name string, change func(*tls.Config)) []byte {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	cfg := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	if change != nil {
		change(cfg)
	}
	go func() { tls.Client(near, cfg).Handshake(); near.Close() }()
	defer far.Close()
	raw, _, err := readHello(far)
	if raw == nil {
		t.Fatal(err)
	}
	return raw
}

// records splits the message of hello into records of n bytes.
func records(hello []byte, n int) []byte {
	var out []byte
	for part := range slices.Chunk(hello[5:], n) {
		out = append(append(out, 22, 3, 1, byte(len(part)>>8), byte(len(part))), part...)
	}
	return out
}

// What may come first through a tunnel that is judged as https.
func TestExitFirstBytes(t *testing.T) {
	good := clientHello(t, "api.example.com", nil)
	for name, v := range map[string]struct {
		target string
		send   []byte
		each   int // bytes per segment
		rule   string
	}{
		"hello":                   {send: good},
		"slow hello":              {send: good, each: 100},
		"hello in many records":   {send: records(good, 7)},
		"one byte a record, slow": {send: records(good, 1), each: 500},
		"upper case":              {send: clientHello(t, "API.example.COM", nil)},
		"TLS 1.2":                 {send: clientHello(t, "api.example.com", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })},
		"address, no name":        {target: public + ":443", send: clientHello(t, public, nil)},
		"net_sni":                 {send: clientHello(t, "other.example.com", nil), rule: "net_sni"},
		"net_sni_of_address":      {target: public + ":443", send: good, rule: "net_sni"},
		"net_sni_suffix":          {send: clientHello(t, "api.example.com.evil.test", nil), rule: "net_sni"},
		"net_no_sni":              {send: clientHello(t, "1.2.3.4", nil), rule: "net_no_sni"},
		"net_sni_late":            {send: records(clientHello(t, "other.example.com", nil), 40), each: 60, rule: "net_sni"},
		"net_plaintext_in_tunnel": {send: []byte("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n"), rule: "net_not_tls"},
		"net_connect_in_tunnel":   {send: []byte("CONNECT other.example.com:22 HTTP/1.1\r\n\r\n"), rule: "net_not_tls"},
		"net_ssh_in_tunnel":       {send: []byte("SSH-2.0-OpenSSH_9.9\r\n"), rule: "net_not_tls"},
		"net_one_byte":            {send: []byte("\n"), rule: "net_not_tls"},
		"net_sslv2":               {send: append([]byte{0x80, 0x2e, 1, 0, 2}, make([]byte, 60)...), rule: "net_not_tls"},
		"net_not_a_hello":         {send: []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, rule: "net_bad_client_hello"},
		"net_empty_record":        {send: append([]byte{22, 3, 1, 0, 0}, good...), rule: "net_bad_client_hello"},
		"net_alert_in_hello":      {send: append(append([]byte{22, 3, 1, 0, 4}, good[5:9]...), 21, 3, 1, 0, 2, 1, 0), rule: "net_bad_client_hello"},
		"net_two_messages":        {send: records(append(slices.Clone(good), good[5:]...), 16<<10), rule: "net_bad_client_hello"},
		"net_record_too_long":     {send: append([]byte{22, 3, 1, 0x40, 1}, make([]byte, 0x4001)...), rule: "net_bad_client_hello"},
		"net_hello_too_long":      {send: []byte{22, 3, 1, 0, 4, 1, 1, 0, 0}, rule: "net_bad_client_hello"},
		"net_sni_list_of_two":     {send: twoNames(t), rule: "net_bad_client_hello"},
		"net_sni_fullwidth":       {send: graft(t, append([]byte{0, 0, 0, 22, 0, 20, 0, 0, 17}, "ａpi.example.com"...)), rule: "net_sni"},
		"net_sni_twice":           {send: nameTwice(t), rule: "net_bad_client_hello"},
		"net_sni_twice_control":   {send: graft(t, append([]byte{0, 0, 0, 20, 0, 18, 0, 0, 15}, "api.example.com"...))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var mu sync.Mutex
			var got []byte
			w.raw(public+":443", func(conn net.Conn) {
				buf := make([]byte, 64<<10)
				for {
					n, err := conn.Read(buf)
					mu.Lock()
					got = append(got, buf[:n]...)
					all := len(got) >= len(v.send)
					mu.Unlock()
					if all {
						io.WriteString(conn, "seen")
					}
					if err != nil {
						return
					}
				}
			})
			c := w.cage()
			target := v.target
			if target == "" {
				target = "api.example.com:443"
			}
			conn, status := tunnel(t, c.open("api.example.com", public), target)
			if status != 200 {
				t.Fatal(status)
			}
			if v.each == 0 {
				v.each = len(v.send)
			}
			for part := range slices.Chunk(v.send, v.each) {
				if _, err := conn.Write(part); err != nil {
					break
				}
				if v.each < len(v.send) {
					time.Sleep(2 * time.Millisecond)
				}
			}
			if v.rule == "" {
				answer := make([]byte, 4)
				if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "seen" {
					t.Fatalf("%q, %v", answer, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if string(got) != string(v.send) {
					t.Errorf("the server got other bytes: %x", got)
				}
				return
			}
			isCut(t, conn)
			mu.Lock()
			defer mu.Unlock()
			if len(got) > 0 {
				t.Errorf("the server got %q", got)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.denials) != 1 {
				t.Fatalf("%d denials", len(w.denials))
			}
			refused(t, w.denials[0], sdk.Denied, "(rule "+v.rule+")")
		})
	}
}

// twoNames returns a hello whose list of server names has two entries.
func twoNames(t testing.TB) []byte {
	entry := append([]byte{0, 0, 15}, "api.example.com"...)
	list := append(slices.Clone(entry), entry...)
	return graft(t, append([]byte{0, 0, 0, byte(len(list) + 2), 0, byte(len(list))}, list...))
}

// nameTwice returns a hello that has the extension for the server name twice.
func nameTwice(t testing.TB) []byte {
	ext := append([]byte{0, 0, 0, 20, 0, 18, 0, 0, 15}, "api.example.com"...)
	return graft(t, append(slices.Clone(ext), ext...))
}

// graft returns a hello with ext in place of the one for the server name.
func graft(t testing.TB, ext []byte) []byte {
	good := clientHello(t, "api.example.com", nil)
	name := "api.example.com"
	at := strings.Index(string(good), name) - 9 // type 2, length 2, list length 2, form 1, length 2
	out := append(slices.Clone(good[:at]), ext...)
	out = append(out, good[at+9+len(name):]...)
	grown := len(out) - len(good)
	for _, i := range []int{3, 7, at - extensionsBefore(good, at)} {
		n := int(out[i])<<8 | int(out[i+1])
		n += grown
		out[i], out[i+1] = byte(n>>8), byte(n)
	}
	return out
}

// extensionsBefore returns how far before at the length of the extensions is.
func extensionsBefore(hello []byte, at int) int {
	i := 5 + 4 + 2 + 32
	i += 1 + int(hello[i])
	i += 2 + int(hello[i])<<8 + int(hello[i+1])
	i += 1 + int(hello[i])
	return at - i
}

// raw puts a TCP server at address.
func (w *world) raw(address string, serve func(net.Conn)) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			wg.Go(func() { defer conn.Close(); serve(conn) })
		}
	})
	w.t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	w.place(address, l.Addr().String())
}

// Bytes are bytes where an entry says tcp://. What they ask the other side to
// do, another CONNECT for one, is that side's to allow.
func TestExitRawBytes(t *testing.T) {
	w := newWorld(t)
	w.raw(public+":22", func(conn net.Conn) {
		io.WriteString(conn, "SSH-2.0-x\r\n") // the server speaks first
		b, _ := io.ReadAll(conn)              // until the child has said all
		fmt.Fprintf(conn, "got %q", b)
	})
	c := w.cage()
	conn, status := tunnel(t, c.open("tcp://api.example.com:22"), "api.example.com:22")
	if status != 200 {
		t.Fatal(status)
	}
	io.WriteString(conn, "CONNECT other.example.com:443 HTTP/1.1\r\n\r\n")
	conn.(*net.TCPConn).CloseWrite()
	b, err := io.ReadAll(conn)
	if want := "SSH-2.0-x\r\ngot \"CONNECT other.example.com:443 HTTP/1.1\\r\\n\\r\\n\""; err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
	}
}

// The server may finish first, while the child still writes.
func TestExitServerClosesFirst(t *testing.T) {
	w := newWorld(t)
	got := make(chan string, 1)
	w.raw(public+":22", func(conn net.Conn) {
		conn.(*net.TCPConn).CloseWrite()
		b, _ := io.ReadAll(conn)
		got <- string(b)
	})
	c := w.cage()
	conn, _ := tunnel(t, c.open("tcp://api.example.com:22"), "api.example.com:22")
	if b, err := io.ReadAll(conn); err != nil || len(b) > 0 {
		t.Fatal(b, err)
	}
	io.WriteString(conn, "last words")
	conn.(*net.TCPConn).CloseWrite()
	if g := <-got; g != "last words" {
		t.Errorf("%q", g)
	}
}

// A hello that was sent before the proxy answered is not lost.
func TestExitEarlyHello(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	proxy := w.cage().open("api.example.com")
	conn := dialProxy(t, proxy)
	early := &eager{Conn: conn, head: "CONNECT api.example.com:443 HTTP/1.1\r\nHost: x\r\n" + credentials(proxy) + "\r\n"}
	tc := tls.Client(early, &tls.Config{ServerName: "api.example.com", RootCAs: w.roots})
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(tc, "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(tc), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Error(resp, err)
	}
}

// eager sends head together with the first bytes, and reads past the answer to it.
type eager struct {
	net.Conn
	head string
	r    *bufio.Reader
}

func (e *eager) Write(b []byte) (int, error) {
	if e.head == "" {
		return e.Conn.Write(b)
	}
	_, err := e.Conn.Write(append([]byte(e.head), b...))
	e.head = ""
	return len(b), err
}

func (e *eager) Read(b []byte) (int, error) {
	if e.r == nil {
		e.r = bufio.NewReader(e.Conn)
		if resp, err := http.ReadResponse(e.r, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
			return 0, fmt.Errorf("%v, %w", resp, err)
		}
	}
	return e.r.Read(b)
}
