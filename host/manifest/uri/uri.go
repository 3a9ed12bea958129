// Package uri reads URI templates (RFC 6570) and matches URIs against them, in
// a time that is bounded whatever either of them is. It does not know what a
// URI leads to.
package uri

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"
)

// Bounds of what is matched. Matching costs the product of both lengths.
const (
	MaxURI       = 2048 // bytes
	maxTemplate  = 512  // bytes
	maxVariables = 8
)

// A Template stands for many URIs. It is safe for concurrent use.
type Template struct {
	Names  []string // of its variables, in order
	Prefix string   // what every URI of it begins with
	match  *regexp.Regexp
	groups []string // the variable of each group of match
}

// Parse reads a template. Of the RFC, what a URI cannot be read back by is
// refused: variables that are cut off ({x:3}) and lists ({x*}).
func Parse(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("%d bytes are too many for a template: at most %d", len(text), maxTemplate)
	}
	parsed, err := uritemplate.New(text)
	if err != nil {
		return nil, errors.New("not a URI template as RFC 6570 has them")
	}
	t := &Template{Names: parsed.Varnames()}
	literal, rest, more := strings.Cut(text, "{")
	t.Prefix = literal
	switch {
	case len(t.Names) == 0:
		return nil, errors.New("it has no {variable}")
	case len(t.Names) > maxVariables:
		return nil, fmt.Errorf("more than %d variables", maxVariables)
	case !strings.Contains(t.Prefix, ":"):
		return nil, errors.New("its scheme is a variable")
	}
	var b strings.Builder
	b.WriteString("^" + regexp.QuoteMeta(literal))
	for more {
		var expression string
		expression, rest, _ = strings.Cut(rest, "}")
		if err := t.expression(&b, expression); err != nil {
			return nil, err
		}
		literal, rest, more = strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
	}
	t.match, err = regexp.Compile(b.String() + "$")
	return t, err
}

// An operator is what an expression may begin with (RFC 6570, appendix A).
type operator struct {
	first, sep string
	named      bool
	reserved   bool // characters that have a meaning in URIs stay as they are
}

var operators = map[byte]operator{
	'+': {"", ",", false, true}, '#': {"#", ",", false, true}, '.': {".", ".", false, false}, '/': {"/", "/", false, false},
	';': {";", ";", true, false}, '?': {"?", "&", true, false}, '&': {"&", "&", true, false},
}

// The characters of a value.
const (
	unreserved = `(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})`
	anywhere   = `(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})`
)

// expression appends the pattern of one {expression}. A value that stands alone
// is not empty; what has a sign or a name before it may be left out.
func (t *Template) expression(b *strings.Builder, text string) error {
	if strings.ContainsAny(text, ":*") {
		return fmt.Errorf("{%s} cannot be read back from a URI: no lengths and no lists", text)
	}
	op, found := operators[text[0]]
	if !found {
		op = operator{sep: ","}
	} else {
		text = text[1:]
	}
	value := unreserved
	if op.reserved {
		value = anywhere
	}
	for i, name := range strings.Split(text, ",") {
		if len(t.groups) == maxVariables || slices.Contains(t.groups, name) {
			return fmt.Errorf("the variable %q stands there twice", name)
		}
		t.groups = append(t.groups, name)
		before := regexp.QuoteMeta(op.sep)
		if i == 0 {
			before = regexp.QuoteMeta(op.first)
		} else if op.sep != op.first && op.named { // the first one may have been left out
			before = "[?&]"
		}
		switch {
		case op.named && op.first == ";":
			b.WriteString("(?:" + before + regexp.QuoteMeta(name) + "(?:=(" + value + "*))?)?")
		case op.named:
			b.WriteString("(?:" + before + regexp.QuoteMeta(name) + "=(" + value + "*))?")
		case i == 0 && op.first == "":
			b.WriteString("(" + value + "+)")
		default:
			b.WriteString("(?:" + before + "(" + value + "+))?")
		}
	}
	return nil
}

// Match returns the values of t's variables that make it uri, without those
// that uri leaves out; false if there are none. Percent-encoding is undone.
func (t *Template) Match(uri string) (map[string]string, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.Prefix) {
		return nil, false
	}
	at := t.match.FindStringSubmatchIndex(uri)
	if at == nil {
		return nil, false
	}
	values := make(map[string]string, len(t.groups))
	for i, name := range t.groups {
		from, to := at[2*i+2], at[2*i+3]
		if from < 0 {
			continue
		}
		v, err := url.PathUnescape(uri[from:to])
		if err != nil || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
			return nil, false
		}
		values[name] = v
	}
	return values, true
}

// Fault says what is wrong with a URI that somebody asks for, or "". A path
// that goes up, however it is encoded, is never asked for in earnest: clients
// resolve it first (RFC 3986, 5.2.4), and those who read files by URI would
// leave their folder by it.
func Fault(uri string) string {
	if len(uri) > MaxURI {
		return fmt.Sprintf("longer than %d bytes", MaxURI)
	}
	if !utf8.ValidString(uri) || strings.ContainsFunc(uri, unicode.IsControl) {
		return "a control character, or not UTF-8"
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return "not an absolute URI"
	}
	path, _, _ := strings.Cut(uri, "#")
	path, _, _ = strings.Cut(path, "?")
	for range 3 { // as it is, and as readers may decode it, one after the other
		for _, segment := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' || c == ':' }) {
			if segment == ".." || segment == "." {
				return `"." or ".." in its path`
			}
		}
		decoded, err := url.PathUnescape(path)
		switch {
		case err != nil:
			return "" // "100%25": decoded once too often
		case strings.ContainsFunc(decoded, unicode.IsControl):
			return "an encoded control character"
		}
		path = decoded
	}
	return ""
}
