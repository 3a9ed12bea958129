package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
)

// A brokered GET over a kept connection, beside the same one without a broker.
func BenchmarkGet(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	broker := New(Options{
		Resolver: everyName{netip.MustParseAddr(public)}, Interfaces: func() ([]netip.Addr, error) { return nil, nil },
		Dial: toServer(s.Listener.Addr().String()),
	})
	l := capability.Layer{Name: "manifest", Closed: true, Allow: set(b, "http://api.example.com"+port)}
	for name, c := range map[string]*http.Client{"brokered": broker.Client(capability.NewGrant([]capability.Layer{l}, nil), nil, 1<<20), "direct": s.Client()} {
		url := "http://api.example.com" + port
		if name == "direct" {
			url = s.URL
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.Get(url)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
		c.CloseIdleConnections()
	}
}

type everyName struct{ addr netip.Addr }

func (r everyName) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{r.addr}, nil
}

func toServer(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// A GET of a program that goes through the proxy, beside the same one without;
// both over kept connections. p50 is in microseconds.
func BenchmarkExitGet(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	broker := New(Options{
		Resolver: everyName{netip.MustParseAddr(public)}, Interfaces: func() ([]netip.Addr, error) { return nil, nil },
		Dial: toServer(s.Listener.Addr().String()),
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	exit := broker.Serve(l)
	defer exit.Close()
	layer := capability.Layer{Name: "manifest", Closed: true, Allow: set(b, "http://api.example.com"+port)}
	text, done := exit.Open("call", capability.NewGrant([]capability.Layer{layer}, nil), 1<<40, nil)
	defer done()
	proxy, err := url.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	for _, v := range []struct {
		name, url string
		proxy     func(*http.Request) (*url.URL, error)
	}{{"direct", s.URL, nil}, {"proxied", "http://api.example.com" + port, http.ProxyURL(proxy)}} {
		tr := &http.Transport{Proxy: v.proxy}
		c := &http.Client{Transport: tr}
		b.Run(v.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				resp, err := c.Get(v.url)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(resp, err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		})
		tr.CloseIdleConnections()
	}
}
