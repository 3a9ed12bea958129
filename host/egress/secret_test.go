package egress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

const token = `s3cr3t/"+value`

func bound(t *testing.T, max, hosts string) Secret {
	return Secret{Name: "TOKEN", Value: token, Max: set(t, strings.Fields(max)...), Hosts: set(t, strings.Fields(hosts)...), Header: "authorization", Format: "Bearer {}"}
}

func TestSecretInjected(t *testing.T) {
	w := newWorld(t)
	var got []string
	note := func(rw http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }
	w.serve(public+":443", false, note)
	w.serve(second+":443", false, note)
	w.serve(public+":80", true, note)
	g := w.grant("api.example.com", "other.example.com", "http://api.example.com", "secret:TOKEN")
	for _, c := range []struct{ name, max, hosts, url, want string }{
		{"both lists", "api.example.com", "api.example.com", "https://api.example.com/", "Bearer " + token},
		{"a wildcard", "*.example.com", "api.example.com", "https://api.example.com/", "Bearer " + token},
		{"net_secret_manifest_widens", "api.example.com", "api.example.com other.example.com", "https://other.example.com/", ""},
		{"net_secret_other_host", "api.example.com other.example.com", "api.example.com", "https://other.example.com/", ""},
		{"net_secret_no_maximum", "", "api.example.com", "https://api.example.com/", ""},
		{"net_secret_no_hosts", "api.example.com", "", "https://api.example.com/", ""},
		{"net_secret_over_http", "api.example.com http://api.example.com", "api.example.com http://api.example.com", "http://api.example.com/", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got = nil
			if _, _, err := w.get(w.client(g, bound(t, c.max, c.hosts)), c.url); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("sent %q, want %q", got, c.want)
			}
		})
	}
	if r := w.records(); !slices.Contains(r, "allow TOKEN") || strings.Contains(fmt.Sprint(r), "s3cr3t") {
		t.Error("recorded", r)
	}
}

func TestSecretRefused(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	s := bound(t, "api.example.com", "api.example.com")

	_, _, err := w.get(w.client(w.grant("api.example.com"), s), "https://api.example.com/")
	refused(t, err, sdk.Denied, "secrets.use TOKEN") // and not sent without it

	g := w.grant("api.example.com", "secret:TOKEN")
	_, _, err = w.do(w.client(g, s), "GET", "https://api.example.com/", "", http.Header{"Authorization": {"Bearer mine"}})
	refused(t, err, sdk.Denied, "secret TOKEN")

	for _, v := range []string{"two\nlines", "nul\x00"} {
		s.Value = v
		_, _, err = w.get(w.client(g, s), "https://api.example.com/")
		refused(t, err, sdk.Invalid, "secret TOKEN")
		if strings.Contains(err.Error(), "two") || strings.Contains(err.Error(), "nul") {
			t.Error("names the value:", err)
		}
	}
	s.Value, s.Header = token, "Host"
	_, _, err = w.get(w.client(g, s), "https://api.example.com/")
	refused(t, err, sdk.Invalid)
	s.Header = "Authorization"
	_, _, err = w.get(w.client(g, s, s), "https://api.example.com/")
	refused(t, err, sdk.Invalid, "two secrets")
	if len(w.dials()) != 0 {
		t.Error("dialled", w.dials())
	}

	s.Value = "" // not set: the request goes out as it is
	if _, _, err = w.do(w.client(g, s), "GET", "https://api.example.com/", "", http.Header{"Authorization": {"Bearer mine"}}); err != nil {
		t.Error(err)
	}
}

func TestNetSecretCrossHostRedirect(t *testing.T) {
	w := newWorld(t)
	got := map[string]string{}
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		got["api"+r.URL.Path] = r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/same":
			http.Redirect(rw, r, "/stay", http.StatusFound)
		case "/away":
			http.Redirect(rw, r, "https://other.example.com/", http.StatusFound)
		}
	})
	w.serve(second+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		got["other"] = r.Header.Get("Authorization")
		http.Redirect(rw, r, "https://api.example.com/back", http.StatusFound)
	})
	// The secret may go to both hosts, but a redirect is no reason to send it.
	c := w.client(w.grant("*.example.com", "secret:TOKEN"), bound(t, "*.example.com", "*.example.com"))
	for _, path := range []string{"/same", "/away"} {
		if _, _, err := w.get(c, "https://api.example.com"+path); err != nil {
			t.Fatal(err)
		}
	}
	b := "Bearer " + token
	for where, want := range map[string]string{"api/same": b, "api/stay": b, "api/away": b, "other": "", "api/back": ""} {
		if v, ok := got[where]; !ok || v != want {
			t.Errorf("%s got %q (%v), want %q", where, v, ok, want)
		}
	}
}

func TestNetSecretEcho(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		echo := r.Header.Get("Authorization")
		rw.Header().Set("X-Echo", echo)
		rw.Header().Set(http.TrailerPrefix+"X-Late", echo)
		out := io.Writer(rw)
		switch r.URL.Path {
		case "/gzip":
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			defer z.Close()
			out = z
		case "/br":
			rw.Header().Set("Content-Encoding", "br")
		case "/location":
			rw.Header().Set("Location", "https://other.example.com/?t="+url.QueryEscape(token))
			rw.WriteHeader(302)
			return
		}
		fmt.Fprintf(out, "you sent %s, bye", echo)
	})
	var seen []string
	w.serve(second+":443", false, func(rw http.ResponseWriter, r *http.Request) { seen = append(seen, r.URL.RawQuery) })
	g := w.grant("*.example.com", "secret:TOKEN")
	s := bound(t, "api.example.com", "api.example.com")
	for _, path := range []string{"/", "/gzip"} {
		resp, err := w.client(g, s).Get("https://api.example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "you sent Bearer [secret TOKEN], bye" {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		if v := resp.Header.Get("X-Echo"); v != "Bearer [secret TOKEN]" {
			t.Errorf("%s: header %q", path, v)
		}
		if v := resp.Header.Get("Content-Length"); v != "" || resp.ContentLength != -1 || len(resp.Trailer) != 0 {
			t.Errorf("%s: length %q %d, trailer %v", path, v, resp.ContentLength, resp.Trailer)
		}
		if resp.Request.Header.Get("Authorization") != "" {
			t.Error("the request that comes back holds the secret")
		}
	}
	_, _, err := w.get(w.client(g, s), "https://api.example.com/br")
	refused(t, err, sdk.Unavailable, "secrets cannot be found")

	if _, _, err := w.get(w.client(g, s), "https://api.example.com/location"); err != nil {
		t.Error(err)
	}
	if len(seen) != 1 || strings.Contains(seen[0], "s3cr3t") {
		t.Errorf("the redirect carried %q", seen)
	}
}

// What a server says in place of HTTP does not reach an error either.
func TestNetSecretEchoOutsideTheBody(t *testing.T) {
	w := newWorld(t)
	s := w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		echo := r.Header.Get("Authorization")
		switch r.URL.Path {
		case "/status":
			fmt.Fprintf(c, "HTTP/1.1 200 %s\r\nContent-Length: 0\r\n\r\n", echo)
		case "/garbage":
			fmt.Fprintf(c, "%s\r\n\r\n", echo)
		case "/header":
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%s\r\n\r\n", echo)
		}
	})
	s.TLS.NextProtos = []string{"http/1.1"} // only HTTP/1.1 can be hijacked
	g := w.grant("api.example.com", "secret:TOKEN")
	c := w.client(g, bound(t, "api.example.com", "api.example.com"))
	resp, err := c.Get("https://api.example.com/status")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.Status != "200 OK" {
		t.Errorf("status %q", resp.Status)
	}
	for _, path := range []string{"/garbage", "/header"} {
		_, _, err = w.get(c, "https://api.example.com"+path)
		refused(t, err, sdk.Unavailable, "not valid HTTP")
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Error("the error names the value:", err)
		}
	}
}

func TestSecretIsNotPrinted(t *testing.T) {
	s := Secrets{bound(t, "api.example.com", "api.example.com")}
	j, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q", s, s, s[0], s, &s[0]), string(j)} {
		if strings.Contains(text, "s3cr3t") {
			t.Error(text)
		}
	}
	if !s.Has("TOKEN") || s.Has("OTHER") || (Secrets{{Name: "TOKEN"}}).Has("TOKEN") {
		t.Error("Has is wrong")
	}
}

func TestRedactForms(t *testing.T) {
	forms := Secrets{{Name: "T", Value: token}}.forms()
	quoted, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	for name, echo := range map[string]string{
		"plain": token, "query": url.QueryEscape(token), "query, lower": strings.ToLower(url.QueryEscape(token)), "path": url.PathEscape(token),
		"json": string(quoted[1 : len(quoted)-1]), "base64": base64.StdEncoding.EncodeToString([]byte(token)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(token)),
		"hex": fmt.Sprintf("%x", token),
	} {
		got, _ := replace(nil, []byte("<"+echo+">"), forms, true)
		if string(got) != "<[secret T]>" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// However an answer is cut into reads, what comes out is the same.
func TestRedactAcrossReads(t *testing.T) {
	forms := Secrets{{Name: "A", Value: "abcab"}, {Name: "B", Value: "abcabcdef"}}.forms()
	text := "abc abcab abcabcdef abcabcabcab xabcabcdeabcab " + base64.StdEncoding.EncodeToString([]byte("abcabcdef")) + " ab"
	want := "abc [secret A] [secret B] [secret A]c[secret A] x[secret A]cde[secret A] [secret B] ab"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)), "with the end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(newRedactor(io.NopCloser(r), forms))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, got, want)
		}
		if err := iotest.TestReader(newRedactor(io.NopCloser(strings.NewReader(text)), forms), []byte(want)); err != nil {
			t.Error(err)
		}
	}
	// An error in the middle does not let the held half of a secret out.
	got, err := io.ReadAll(newRedactor(io.NopCloser(io.MultiReader(strings.NewReader("so far abcabcde"), iotest.ErrReader(io.ErrUnexpectedEOF))), forms))
	if err != io.ErrUnexpectedEOF || strings.Contains(string(got), "abcabcde") {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("secret", "a secret and a secre", uint8(3))
	f.Add("a", "banana", uint8(1))
	f.Add("%2F/\"", "%2f/\\\"", uint8(2))
	f.Fuzz(func(t *testing.T, value, text string, cut uint8) {
		if value == "" {
			return
		}
		// The value must not be a part of what replaces it.
		forms := Secrets{{Name: "", Value: value}}.forms()
		whole, rest := replace(nil, []byte(text), forms, true)
		if len(rest) != 0 {
			t.Fatalf("%q is left", rest)
		}
		r := newRedactor(io.NopCloser(strings.NewReader(text)), forms)
		r.chunk = make([]byte, int(cut)+1)
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("%v: in pieces %q, at once %q", err, got, whole)
		}
		for part := range strings.SplitSeq(string(whole), "[secret ]") {
			if strings.Contains(part, value) && !strings.Contains("[secret ]", value) {
				t.Fatalf("%q is left in %q", value, whole)
			}
		}
	})
}

// Every pair of lists over every target: a secret is due where both cover it
// and the scheme is https, and nowhere else.
func TestSecretDue(t *testing.T) {
	lists := []string{"", "api.example.com", "*.example.com", "other.example.com", "http://api.example.com", "GET https://api.example.com", "*"}
	one := func(s string) capability.Set {
		if s == "" {
			return nil
		}
		return set(t, s)
	}
	// Which of lists cover a POST to each target, written out by hand.
	targets := map[string][]bool{
		"https://api.example.com/":      {false, true, true, false, false, false, true},
		"https://other.example.com/":    {false, false, true, true, false, false, true},
		"https://api.example.com:8443/": {false, false, false, false, false, false, true},
		"http://api.example.com/":       {false, false, false, false, false, false, false},
	}
	for target, covers := range targets {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		n, err := Target(u, "POST")
		if err != nil {
			t.Fatal(err)
		}
		for i, most := range lists {
			for j, hosts := range lists {
				s := Secrets{{Name: "T", Value: "v", Max: one(most), Hosts: one(hosts)}}
				if got, want := len(s.due(n)) == 1, covers[i] && covers[j]; got != want {
					t.Errorf("max %q, hosts %q, %s: due %v, want %v", most, hosts, target, got, want)
				}
			}
		}
	}
}

// What the operator takes back while a call runs is added to no request more,
// not even to the next hop of a redirect.
func TestSecretTakenBackInRunningCall(t *testing.T) {
	w := newWorld(t)
	var got []string
	now := Secrets{bound(t, "api.example.com", "api.example.com")}
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		if r.URL.Path == "/hop" {
			now = nil
			http.Redirect(rw, r, "/", http.StatusFound)
		}
	})
	c := w.broker().Client(w.grant("api.example.com", "secret:TOKEN"), func() Secrets { return now }, 1<<20)
	for _, path := range []string{"/", "/hop", "/"} {
		if _, _, err := w.get(c, "https://api.example.com"+path); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Bearer " + token, "Bearer " + token, "", ""}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}
