package egress

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func inQuery(t *testing.T, hosts string) Secret {
	return Secret{Name: "KEY", Value: token, Max: set(t, strings.Fields(hosts)...), Hosts: set(t, strings.Fields(hosts)...), Query: "api_key"}
}

// A secret that a server takes in its URL goes out in the URL, and is in nothing
// that comes back.
func TestSecretInQuery(t *testing.T) {
	w := newWorld(t)
	var got []string
	w.serve(public+":443", false, func(rw http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.RawQuery)
		rw.Header().Set("X-Echo", r.URL.RequestURI())
		switch r.URL.Path {
		case "/same": // as servers do that add a slash
			http.Redirect(rw, r, "/stay?"+r.URL.RawQuery, http.StatusFound)
		case "/away":
			http.Redirect(rw, r, "https://other.example.com/?"+r.URL.RawQuery, http.StatusFound)
		}
	})
	w.serve(second+":443", false, func(rw http.ResponseWriter, r *http.Request) { got = append(got, r.URL.RawQuery) })
	c := w.client(w.grant("*.example.com", "secret:KEY"), inQuery(t, "*.example.com"))
	key := "api_key=" + url.QueryEscape(token)
	for path, want := range map[string][]string{
		"/?q=x": {"q=x&" + key}, "/": {key}, "/same?q=x": {"q=x&" + key, "q=x&" + key}, "/away?q=x": {"q=x&" + key, "api_key=%5Bsecret+KEY%5D&q=x"},
	} {
		got = nil
		resp, err := c.Get("https://api.example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if path == "/away?q=x" { // what the redirect carried is a mark, not the value
			if len(got) != 2 || got[0] != want[0] || strings.Contains(got[1], "s3cr3t") || strings.Contains(got[1], url.QueryEscape(token)) {
				t.Errorf("%s: sent %q", path, got)
			}
		} else if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: sent %q, want %q", path, got, want)
		}
		if seen := resp.Request.URL.String() + resp.Header.Get("X-Echo") + resp.Header.Get("Location"); strings.Contains(seen, "s3cr3t") {
			t.Errorf("%s: %q comes back", path, seen)
		}
	}
}

// A request that names the parameter itself would act for another account.
func TestSecretInQueryRefused(t *testing.T) {
	w := newWorld(t)
	w.serve(public+":443", false, hello)
	g := w.grant("api.example.com", "secret:KEY")
	for _, q := range []string{"api_key=mine", "q=x&api_key=", "api%5Fkey=mine", "api_key=%5Bsecret+KEY%5D&api_key=mine"} {
		_, _, err := w.get(w.client(g, inQuery(t, "api.example.com")), "https://api.example.com/?"+q)
		refused(t, err, sdk.Denied, "secret KEY")
	}
	_, _, err := w.get(w.client(g, inQuery(t, "api.example.com"), inQuery(t, "api.example.com")), "https://api.example.com/")
	refused(t, err, sdk.Invalid, "two secrets")
	_, _, err = w.get(w.client(w.grant("api.example.com"), inQuery(t, "api.example.com")), "https://api.example.com/")
	refused(t, err, sdk.Denied, "secrets.use KEY")
	if len(w.dials()) != 0 {
		t.Error("dialled", w.dials())
	}
}
