package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

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
