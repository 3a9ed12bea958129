// Package head reads the headers of a request: what they accept and carry, and
// whose name they call; and the address that it comes from. It is pure, and does
// not know what a refusal looks like.
package head

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Accepts reports whether a client takes answers as one JSON text and as a
// stream of events, and whether it would rather have the stream: by its weight,
// or because it names that first.
func Accepts(head http.Header) (asJSON, asEvents, rather bool) {
	values := head["Accept"]
	if len(values) == 0 {
		return true, true, false
	}
	text, events, others := -1.0, -1.0, 0.0 // what is named outranks what is not
	for _, value := range values {
		if value == "application/json, text/event-stream" {
			return true, true, false
		}
		for part := range strings.SplitSeq(value, ",") {
			media, params, _ := strings.Cut(part, ";")
			q := weight(params)
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				others = max(others, q)
			case "application/json", "application/*":
				text = max(text, q)
			case "text/event-stream", "text/*":
				rather = rather || text < 0
				events = max(events, q)
			}
		}
	}
	if text < 0 {
		text = others
	}
	if events < 0 {
		events = others
	}
	return text > 0, events > 0, events > text || rather && events == text && events > 0
}

// weight returns the q among the parameters of a media range.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(q > 0) {
				return 0
			}
			return min(q, 1)
		}
	}
	return 1
}

// IsJSON reports whether a request says that its body is JSON.
func IsJSON(head http.Header) bool {
	values := head["Content-Type"]
	if len(values) != 1 {
		return false
	}
	if values[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(values[0])
	charset := params["charset"]
	return err == nil && media == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// Name cuts the port off.
func Name(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// Loopback reports whether a name or an address can only be this machine's.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Client is where a request comes from, as far as that tells one client from
// another: of IPv6, whoever has one address has all of its network.
func Client(remote string) string {
	name := Name(remote)
	a, err := netip.ParseAddr(name)
	if err != nil {
		return name
	}
	if a = a.Unmap().WithZone(""); a.Is4() || a.IsLoopback() {
		return a.String()
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}
