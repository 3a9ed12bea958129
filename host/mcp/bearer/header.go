package bearer

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// maxToken bounds a token: those of the larger issuers have some 2 KiB.
const maxToken = 16 << 10

var (
	errAbsent    = errors.New("no bearer token")
	errSeveral   = errors.New("more than one Authorization header")
	errMalformed = errors.New(`the Authorization header is not "Bearer" and a token`)
	errLong      = errors.New("the token is too long")
)

// credential returns the token in the values of the Authorization header. A
// scheme that is not ours is as good as no header.
func credential(values []string) (string, error) {
	switch {
	case len(values) == 0:
		return "", errAbsent
	case len(values) > 1: // two readers could choose differently
		return "", errSeveral
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errAbsent
	}
	token = strings.TrimLeft(token, " ")
	if len(token) > maxToken {
		return "", errLong
	}
	body := strings.TrimRight(token, "=")
	if body == "" {
		return "", errMalformed
	}
	for i := range len(body) {
		if !isTokenByte(body[i]) {
			return "", errMalformed
		}
	}
	return token, nil
}

// isTokenByte reports whether RFC 6750 has c in a token.
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~+/", c) >= 0
}

// hasToken reports whether an address carries a token, which logs and browsers
// would keep. Half-broken addresses are read as well as anybody may read them.
func hasToken(query string) bool {
	for query != "" {
		i := strings.IndexAny(query, "&;")
		pair := query
		if i >= 0 {
			pair, query = query[:i], query[i+1:]
		} else {
			query = ""
		}
		key, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(key); err == nil {
			key = plain
		}
		if strings.EqualFold(strings.TrimSpace(key), "access_token") {
			return true
		}
	}
	return false
}

// loopback reports whether host can only be this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
