package redact

import "strings"

// A form is a token that is known by how it begins.
type form struct {
	prefix string
	tail   int // how many token bytes must follow
}

// forms lists the tokens that are told by their prefix. Their issuers publish
// these prefixes for the purpose of secret scanning.
var forms = [...]form{
	{"AKIA", 12}, {"ASIA", 12}, {"AIza", 30}, {"AGE-SECRET-KEY-1", 20}, // AWS, Google, age
	{"SG.", 32}, {"dop_v1_", 32}, {"eyJ", 17}, // SendGrid, DigitalOcean, JSON web tokens
	{"ghp_", 20}, {"gho_", 20}, {"ghu_", 20}, {"ghs_", 20}, {"ghr_", 20}, {"github_pat_", 20}, {"glpat-", 16},
	{"hf_", 24}, {"npm_", 24}, {"pypi-", 24}, {"shpat_", 24}, // Hugging Face, npm, PyPI, Shopify
	{"rk_live_", 16}, {"sk-", 16}, {"sk_live_", 16}, {"sk_test_", 16}, {"whsec_", 16}, // Stripe, OpenAI, Anthropic
	{"xoxa-", 8}, {"xoxb-", 8}, {"xoxe-", 8}, {"xoxp-", 8}, {"xoxr-", 8}, {"xoxs-", 8}, // Slack
	{"ya29.", 16}, // Google OAuth
}

// trigger holds the bytes at which a rule of detect may apply.
var trigger = [256]bool{':': true, '=': true, '-': true, 'B': true, 'b': true, 'A': true, 'd': true, 'e': true, 'g': true, 'h': true,
	'n': true, 'p': true, 'r': true, 's': true, 'S': true, 'w': true, 'x': true, 'y': true}

// detect returns what looks like a secret in s. It reads s once: no rule looks
// further than a fixed distance unless it then consumes what it looked at.
func detect(s string) []span {
	var spans []span
	urlEnd := 0 // the end of the URL that i is in
	for i := 0; i < len(s); {
		next := i + 1
		if !trigger[s[i]] {
			i = next
			continue
		}
		switch s[i] {
		case ':':
			if strings.HasPrefix(s[i:], "://") {
				if i >= urlEnd {
					urlEnd = wordEnd(s, i+3)
					spans = queryOf(spans, s[:urlEnd], i+3)
				}
				spans = userinfo(spans, s[:urlEnd], i+3)
				next = i + 3
				break
			}
			spans, next = assignment(spans, s, i)
			if next == i+1 {
				spans = password(spans, s, i)
			}
		case '=':
			spans, next = assignment(spans, s, i)
		case '-':
			spans, next = pem(spans, s, i)
		case 'B', 'b':
			spans, next = scheme(spans, s, i)
		default:
			if (i == 0 || !alnum(s[i-1])) && begins(s[i:]) {
				spans, next = token(spans, s, i)
			}
		}
		i = next
	}
	return spans
}

// begins reports whether s may begin with a form. It is asked at every word.
func begins(s string) bool {
	if len(s) < 2 {
		return false
	}
	switch s[:2] {
	case "AG", "AI", "AK", "AS", "SG", "do", "ey", "gh", "gi", "gl", "hf", "np", "py", "rk", "sh", "sk", "wh", "xo", "ya":
		return true
	}
	return false
}

// token takes out a token that is known by its prefix.
func token(spans []span, s string, i int) ([]span, int) {
	for k := range forms {
		f := &forms[k]
		if s[i] != f.prefix[0] || !strings.HasPrefix(s[i:], f.prefix) {
			continue
		}
		end := i + len(f.prefix)
		for end < len(s) && tokenByte(s[end]) {
			end++
		}
		if end-i >= len(f.prefix)+f.tail {
			return append(spans, span{i, end}), end
		}
	}
	return spans, i + 1
}

// pem takes out a PEM block, or the rest of the text if the block has no end.
func pem(spans []span, s string, i int) ([]span, int) {
	const begin, end = "-----BEGIN", "-----END"
	if !strings.HasPrefix(s[i:], begin) {
		return spans, i + 1
	}
	stop := len(s)
	if k := strings.Index(s[i:], end); k >= 0 {
		after := i + k + len(end)
		if k := strings.Index(s[after:], "-----"); k >= 0 {
			stop = after + k + len("-----")
		}
	}
	return append(spans, span{i, stop}), stop
}

// scheme takes out the credentials that follow "Bearer" or "Basic".
func scheme(spans []span, s string, i int) ([]span, int) {
	name := ""
	for _, n := range []string{"bearer ", "basic "} {
		if len(s)-i > len(n) && strings.EqualFold(s[i:i+len(n)], n) {
			name = n
		}
	}
	if name == "" || i > 0 && alnum(s[i-1]) {
		return spans, i + 1
	}
	from := i + len(name)
	end, digit := from, false
	for end < len(s) && (tokenByte(s[end]) || strings.IndexByte("~+/=", s[end]) >= 0) {
		digit = digit || s[end] >= '0' && s[end] <= '9' || s[end] == '='
		end++
	}
	if end-from >= 16 || end-from >= 6 && digit { // else "basic authentication"
		return append(spans, span{from, end}), end
	}
	return spans, from
}

// userinfo takes out the user and password of a URL whose authority starts at i.
func userinfo(spans []span, s string, i int) []span {
	end := i
	for end < len(s) && s[end] != '/' && s[end] != '?' && s[end] != '#' {
		end++
	}
	if k := strings.LastIndexByte(s[i:end], '@'); k > 0 {
		spans = append(spans, span{i, i + k})
	}
	return spans
}

// queryOf takes out the query and the fragment of a URL that ends where s ends.
func queryOf(spans []span, s string, i int) []span {
	if k := strings.IndexAny(s[i:], "?#"); k >= 0 && i+k+1 < len(s) {
		spans = append(spans, span{i + k + 1, len(s)})
	}
	return spans
}

// password takes out PASS of "USER:PASS@HOST", as data source names have it.
func password(spans []span, s string, i int) []span {
	if i == 0 || !alnum(s[i-1]) {
		return spans
	}
	for k := i + 1; k < len(s) && k < i+256; k++ {
		switch c := s[k]; {
		case c == '@' && k > i+1:
			return append(spans, span{i + 1, k})
		case c <= ' ' || c == '/' || c == '"':
			return spans
		}
	}
	return spans
}

// assignment takes out VALUE of "KEY=VALUE" and "KEY: VALUE", where KEY is
// Sensitive and i is at the sign between them.
func assignment(spans []span, s string, i int) ([]span, int) {
	end := i
	for end > 0 && i-end < 4 && strings.IndexByte(" \"'\\", s[end-1]) >= 0 {
		end--
	}
	from := end
	for from > 0 && end-from < 48 && (tokenByte(s[from-1])) {
		from--
	}
	if from == end || !Sensitive(s[from:end]) {
		return spans, i + 1
	}
	header := contains(s[from:end], "cookie") || contains(s[from:end], "authorization")
	at := i + 1
	for at < len(s) && (s[at] == ' ' || s[at] == '\\' || s[at] == '=') {
		at++
	}
	stop := at
	if at < len(s) && (s[at] == '"' || s[at] == '\'') {
		quote := s[at]
		at++
		for stop = at; stop < len(s) && s[stop] != quote; stop++ {
			if s[stop] == '\\' && stop+1 < len(s) {
				stop++
			}
		}
		stop = min(stop, len(s))
	} else {
		for stop < len(s) && s[stop] >= ' ' && (header || strings.IndexByte(" ,;&\"'<>)]}", s[stop]) < 0) {
			stop++
		}
	}
	if stop == at {
		return spans, i + 1
	}
	return append(spans, span{at, stop}), stop
}

// Names of secrets: parts of a key wherever they stand, and whole words of it.
var (
	parts = [...]string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "authorization", "cookie",
		"private", "credential", "session"}
	words = [...]string{"otp", "pin", "pwd", "jwt"}
)

// Sensitive reports whether a value under this key is a secret by its name.
func Sensitive(key string) bool {
	for i := range len(key) {
		switch lower(key[i]) {
		case 'a', 'c', 'p', 's', 't':
			for _, w := range parts {
				if begun(key[i:], w) > 0 {
					return true
				}
			}
		}
		switch lower(key[i]) {
		case 'j', 'o', 'p':
			for _, w := range words {
				if n := begun(key[i:], w); n == len(w) && wordAt(key, i, i+n) {
					return true
				}
			}
		}
	}
	return false
}

// contains reports whether key holds the lower-case word.
func contains(key, word string) bool {
	for i := range len(key) {
		if begun(key[i:], word) > 0 {
			return true
		}
	}
	return false
}

// begun returns how many bytes of key spell the lower-case word at its start,
// ignoring case and the separators "_", "-" and "." between letters, or 0.
func begun(key, word string) int {
	n := 0
	for k := range len(key) {
		switch c := lower(key[k]); {
		case c == word[n]:
			if n++; n == len(word) {
				return k + 1
			}
		case n == 0 || c != '_' && c != '-' && c != '.':
			return 0
		}
	}
	return 0
}

// wordAt reports whether key[from:to] is a whole word of key, where words are
// parted by separators, digits and a change to upper case.
func wordAt(key string, from, to int) bool {
	starts := from == 0 || !letter(key[from-1]) || upper(key[from]) && !upper(key[from-1])
	ends := to == len(key) || !letter(key[to]) || upper(key[to]) && !upper(key[to-1])
	return starts && ends
}

// wordEnd returns where the run of bytes that may belong to a URL ends.
func wordEnd(s string, i int) int {
	for i < len(s) && s[i] > ' ' && s[i] != '"' && s[i] != '<' && s[i] != '>' && s[i] != '`' {
		i++
	}
	return i
}

func upper(c byte) bool     { return c >= 'A' && c <= 'Z' }
func letter(c byte) bool    { return upper(c) || c >= 'a' && c <= 'z' }
func alnum(c byte) bool     { return letter(c) || c >= '0' && c <= '9' }
func tokenByte(c byte) bool { return alnum(c) || c == '_' || c == '-' || c == '.' }

func lower(c byte) byte {
	if upper(c) {
		return c + 'a' - 'A'
	}
	return c
}
