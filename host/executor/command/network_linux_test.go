package command

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
)

// A program finds the way out in its environment, it leads to what is granted,
// and there is no other.
func TestNetwork(t *testing.T) {
	needs(t, "curl")
	serve := func(body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	open, shut := serve("OPEN"), serve("SHUT")
	s, err := manifest.Read("skill.toml", []byte(`
name = "x"
version = "1.0.0"
description = "d"
runtime = "exec"
[capabilities]
exec = ["curl"]
network = ["`+open+`"]
[tools.get]
command = ["curl", "--silent", "--show-error", "--max-time", "20", "{url}"]
input.properties.url.type = "string"
[tools.around]
command = ["curl", "--silent", "--show-error", "--max-time", "20", "--noproxy", "*", "{url}"]
input.properties.url.type = "string"
`))
	if err != nil {
		t.Fatal(err)
	}
	s.Home.Digest = "sha256:" + strings.Repeat("0", 64)
	report := sandbox.Probe()
	if !report.Level.Covers(sandbox.Strict) { // there is no network at any other
		if os.Getenv("CI") == "true" {
			t.Fatal(report.Missing)
		}
		t.Skip("LEFT OUT: ", report.Missing)
	}
	l := sandbox.New()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	broker := egress.New(egress.Options{})
	exits := func(l net.Listener) native.Exit { return broker.Serve(l) }
	w := worldWith(t, &s, l, report, exits)
	none := []capability.Layer{{Name: "operator", Speaks: []capability.Topic{{Kind: capability.Network, Verb: capability.Connect}}}}
	for _, tt := range []struct {
		name, tool, url string
		layers          []capability.Layer
		want            string
		failed          bool
	}{
		{"granted", "get", open, nil, "OPEN", false},
		{"not_granted", "get", shut, nil, "network.connect", false}, // curl does not mind a 403
		{"around_the_proxy", "around", open, nil, "curl: (7)", true},
		{"operator_says_none", "get", open, none, "curl: (", true},
		{"proxy_as_option", "get", "--noproxy", nil, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.t, w.layers = t, tt.layers
			r, err := w.run(within(t, time.Minute), tt.tool, fmt.Sprintf(`{"url":%q}`, tt.url))
			if tt.want == "" {
				if err == nil {
					t.Errorf("%+v", r)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Content[0].Text; !strings.Contains(got, tt.want) || r.Failed != tt.failed || strings.Contains(got, "SHUT") {
				t.Errorf("failed %v: %s", r.Failed, got)
			}
		})
	}
}
