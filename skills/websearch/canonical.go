package main

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// An address is where a result leads.
type address struct {
	shown string // for people: as the engine has it, without what only tracks
	key   string // the same for addresses of the same document
	host  string // in lower case, without "www." and the like
}

// maxURL bounds an address, in bytes. Longer ones are no results.
const maxURL = 2048

// locate reads the address of a result. It is false for what is no page of the
// web.
func locate(raw string) (address, bool) {
	raw = strings.TrimSpace(raw)
	if a, ok := plainAddress(raw); ok {
		return a, true
	}
	for range 3 { // an engine's own redirector may lead to another
		if strings.HasPrefix(raw, "//") {
			raw = "https:" + raw
		}
		if len(raw) > maxURL || strings.ContainsFunc(raw, isControl) {
			return address{}, false
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return address{}, false
		}
		target := unwrap(u)
		if target == "" {
			return canonical(u)
		}
		raw = target
	}
	return address{}, false
}

// plainAddress reads an address that is canonical as it stands, as most are:
// "https://", a name in lower case, and a path without anything odd. It is false
// for all others, and finds nothing that locate would not.
func plainAddress(raw string) (address, bool) {
	rest, ok := strings.CutPrefix(raw, "https://")
	if !ok || len(raw) > maxURL {
		return address{}, false
	}
	host := rest
	for i := range len(rest) {
		c := rest[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		case c == '/' && len(host) == len(rest):
			host = rest[:i]
		case len(host) < len(rest) && ('A' <= c && c <= 'Z' || c == '/' || c == '_'):
		default:
			return address{}, false
		}
	}
	if host == "" || host[0] == '.' || host[len(host)-1] == '.' || strings.HasSuffix(host, "duckduckgo.com") || strings.HasSuffix(host, "bing.com") || strings.HasSuffix(host, "google.com") {
		return address{}, false
	}
	return address{shown: raw, key: bare(host) + strings.TrimRight(rest[len(host):], "/"), host: bare(host)}, true
}

func canonical(u *url.URL) (address, bool) {
	u.User = nil
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "" {
		return address{}, false
	}
	port := u.Port()
	if port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		port = ""
	}
	u.Host = host
	if strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	u.RawQuery = untracked(u.RawQuery)
	u.ForceQuery = false
	if strings.HasPrefix(u.Fragment, ":~:") { // which words to show: the engine's choice
		u.Fragment, u.RawFragment = "", ""
	}
	a := address{host: bare(host)}
	a.key = a.host
	if port != "" {
		a.key += ":" + port
	}
	a.key += strings.TrimRight(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		pairs := strings.Split(u.RawQuery, "&")
		slices.Sort(pairs)
		a.key += "?" + strings.Join(pairs, "&")
	}
	a.shown = u.String()
	return a, len(a.shown) <= 2*maxURL
}

// bare is host without the label that only says which edition of a site it is.
func bare(host string) string {
	for _, label := range []string{"www.", "m.", "mobile."} {
		if rest, ok := strings.CutPrefix(host, label); ok && strings.Contains(rest, ".") {
			return rest
		}
	}
	return host
}

// untracked is query without the parameters that only say where a reader came
// from.
func untracked(query string) string {
	if query == "" {
		return ""
	}
	pairs := slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(strings.ToLower(pair), "=")
		return name == "" || strings.HasPrefix(name, "utm_") || slices.Contains(trackers, name)
	})
	return strings.Join(pairs, "&")
}

var trackers = []string{"gclid", "fbclid", "msclkid", "dclid", "yclid", "gbraid", "wbraid", "mc_cid", "mc_eid", "igshid", "srsltid", "_ga", "ref_src", "_hsenc", "_hsmi"}

// unwrap returns where the redirector of an engine leads to, "" if u is none.
func unwrap(u *url.URL) string {
	host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	parameter := ""
	switch {
	case (host == "duckduckgo.com" || strings.HasSuffix(host, ".duckduckgo.com")) && strings.HasPrefix(u.Path, "/l/"):
		parameter = "uddg"
	case (host == "bing.com" || strings.HasSuffix(host, ".bing.com")) && u.Path == "/ck/a":
		encoded, ok := strings.CutPrefix(u.Query().Get("u"), "a1")
		plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
		if !ok || err != nil {
			return ""
		}
		return string(plain)
	case strings.HasPrefix(host, "google.") && u.Path == "/url":
		if parameter = "q"; u.Query().Get("q") == "" {
			parameter = "url"
		}
	case host == "l.facebook.com" && u.Path == "/l.php":
		parameter = "u"
	case host == "out.reddit.com":
		parameter = "url"
	case host == "youtube.com" && u.Path == "/redirect":
		parameter = "q"
	default:
		return ""
	}
	return u.Query().Get(parameter)
}

// within reports whether host is one of the domains or beneath one.
func within(host string, domains []string) bool {
	return slices.ContainsFunc(domains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}

// domains reads names as people write them: "https://www.Example.com/" as well.
func domains(list []string) []string {
	var all []string
	for _, d := range list {
		d = strings.ToLower(strings.TrimSpace(d))
		if _, rest, ok := strings.Cut(d, "://"); ok {
			d = rest
		}
		d, _, _ = strings.Cut(d, "/")
		d = bare(strings.TrimPrefix(strings.TrimSuffix(d, "."), "*."))
		if d != "" {
			all = append(all, d)
		}
	}
	return all
}
