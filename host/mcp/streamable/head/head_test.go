package head

import (
	"net/http"
	"testing"
)

func TestAccepts(t *testing.T) {
	for accept, want := range map[string][3]bool{
		"":                                      {false, false, false},
		"*/*":                                   {true, true, false},
		"application/json, text/event-stream":   {true, true, false},
		"application/json,text/event-stream":    {true, true, false},
		"text/event-stream, application/json":   {true, true, true},
		"TEXT/*, Application/*":                 {true, true, true},
		"text/event-stream;q=0.1, */*;q=0.9":    {true, true, false},
		"application/json;q=0.1, */*;q=0.5":     {true, true, true},
		"application/json;q=.5, text/*;v=1;q=1": {true, true, true},
		"application/json;q=0, */*":             {false, true, true},
		"text/html":                             {false, false, false},
		"text/event-stream;q=0":                 {false, false, false},
		"text/event-stream;q=x":                 {false, false, false},
	} {
		a, b, c := Accepts(http.Header{"Accept": {accept}})
		if got := [3]bool{a, b, c}; got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for host, want := range map[string]struct {
		name     string
		loopback bool
	}{
		"localhost:80": {"localhost", true}, "LOCALHOST": {"LOCALHOST", true}, "127.1.2.3": {"127.1.2.3", true}, "[::1]:80": {"::1", true}, "[::1]": {"::1", true},
		"[::ffff:127.0.0.1]:1": {"::ffff:127.0.0.1", true}, "localhost.": {"localhost", true},
		"localhost.evil.example": {"localhost.evil.example", false}, "127.0.0.1.evil.example": {"127.0.0.1.evil.example", false},
		"127.1": {"127.1", false}, "0.0.0.0": {"0.0.0.0", false}, "": {"", false}, "10.0.0.1:80": {"10.0.0.1", false}, "[fe80::1%lo]": {"fe80::1%lo", false},
	} {
		if got := Name(host); got != want.name || Loopback(got) != want.loopback {
			t.Errorf("%q: %q %v", host, got, Loopback(got))
		}
	}
}

// Addresses of one network that is given away as a whole count as one.
func TestClient(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64", "[2001:db8:0:0:ffff::2]:1": "2001:db8::/64",
		"[2001:db8:0:1::1]:80": "2001:db8:0:1::/64", "[fe80::1%eth0]:80": "fe80::/64", "odd": "odd", "[::1]:80": "::1", "127.0.0.1:80": "127.0.0.1",
	} {
		if got := Client(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
