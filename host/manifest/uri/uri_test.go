package uri

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	for _, x := range []struct{ template, uri, want string }{
		{"hello://greetings/{language}", "hello://greetings/fi", "map[language:fi]"},
		{"hello://greetings/{language}", "hello://greetings/fi/x", "no"},
		{"hello://greetings/{language}", "hello://greetings/a%2Fb", "map[language:a/b]"},
		{"hello://greetings/{language}", "HELLO://greetings/fi", "no"},
		{"hello://greetings/{language}", "xhello://greetings/fi", "no"},
		{"file:///{+path}", "file:///a/b.txt", "map[path:a/b.txt]"},
		{"test://template/{id}/data", "test://template/123/data", "map[id:123]"},
		{"test://template/{id}/data", "test://template/123/data/", "no"},
		{"x://{a}/{b}", "x://1/2", "map[a:1 b:2]"},
		{"x://s{?q,n}", "x://s?q=cat&n=2", "map[n:2 q:cat]"},
		{"x://s{?q,n}", "x://s?q=cat", "map[q:cat]"},
		{"x://s{?q,n}", "x://s", "map[]"},
		{"x://{a}", "x://1,2", "no"},
		{"x://{a}", "x://", "no"},
		{"x://{+a}", "x://1,2:3@4", "map[a:1,2:3@4]"},
		{"x://{a,b}", "x://1,2", "map[a:1 b:2]"},
		{"x://a{.b}", "x://a.txt", "map[b:txt]"},
		{"x://a{.b}", "x://a", "map[]"},
		{"x://a{/b,c}", "x://a/1/2", "map[b:1 c:2]"},
		{"x://a{;b,c}", "x://a;b=1;c", "map[b:1]"},
		{"x://a{#b}", "x://a#s", "map[b:s]"},
		{"x://a?f=1{&b}", "x://a?f=1&b=2", "map[b:2]"},
		{"x://s{?q,n}", "x://s?n=2", "map[n:2]"},
		{"x://s{?q,n}", "x://s?q=", "map[q:]"},
		{"x://a.b/{c}", "x://axb/1", "no"},
		{"x://{a}", "x://%00", "no"},
		{"x://{a}", "x://%ff", "no"},
		{"x://{a}", "x://%zz", "no"},
		{"x://{a}", "x://" + strings.Repeat("a", MaxURI), "no"},
	} {
		p, err := Parse(x.template)
		if err != nil {
			t.Errorf("%s: %v", x.template, err)
			continue
		}
		got := "no"
		if values, ok := p.Match(x.uri); ok {
			got = fmt.Sprint(values)
		}
		if got != x.want {
			t.Errorf("%s against %.60s: %s, want %s", x.uri, x.template, got, x.want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"no_variable":    "x://a",
		"no_scheme":      "{+all}",
		"scheme_open":    "x{a}://b",
		"unclosed":       "x://{a",
		"nested":         "x://{{a}}",
		"empty":          "x://{}",
		"length":         "x://{a:3}",
		"length_bomb":    "x://" + strings.Repeat("{a:9999}", 8),
		"list":           "x://a{?b*}",
		"many_variables": "x://{a}{b}{c}{d}{e}{f}{g}{h}{i}",
		"same_variable":  "x://{a}/{a}",
		"too_long":       "x://{a}" + strings.Repeat("b", maxTemplate),
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s: %.60s is taken", name, text)
		}
	}
}

func TestFault(t *testing.T) {
	for uri, bad := range map[string]bool{
		"hello://a/b":                      false,
		"hello://a/b?x=../..":              false, // a query is no path
		"urn:isbn:0451450523":              false,
		"file:///a/..":                     true,
		"file:///a/../b":                   true,
		"file:///./a":                      true,
		"file:///a/%2e%2e/b":               true,
		"file:///a/%252e%252e/b":           true,
		"file:///a%2f..%2fb":               true,
		`file:///a/..\b`:                   true,
		"x:..":                             true,
		"x://a/%00":                        true,
		"x://a/100%25":                     false,
		"x://a/%zz":                        true,
		"x://a/\x01":                       true,
		"x://a/\xff":                       true,
		"/a/b":                             true,
		"":                                 true,
		"x://" + strings.Repeat("a", 4000): true,
		"file:///a/...":                    false,
		"file:///a/..b":                    false,
	} {
		if why := Fault(uri); (why != "") != bad {
			t.Errorf("%.60q: %q", uri, why)
		}
	}
}

// TestBomb checks that the worst template and the worst URI take no long time:
// what explodes takes hours.
func TestBomb(t *testing.T) {
	for _, template := range []string{"x:{a}{b}{c}{d}{e}{f}{g}{h}", "x:{+a}{+b}{+c}{+d}{+e}{+f}{+g}{+h}", "x:{+a,b,c,d,e,f,g,h}", "x:{?a,b,c,d,e,f,g,h}", "x:{+a}" + strings.Repeat("a", 480)} {
		p, err := Parse(template)
		if err != nil {
			t.Fatal(err)
		}
		for _, uri := range []string{"x:" + strings.Repeat("a", MaxURI-2), "x:" + strings.Repeat(",", 64) + strings.Repeat("a", 1900), "x:?" + strings.Repeat("a=&b=,", 60), "x:" + strings.Repeat("%61", 680), "x:" + strings.Repeat("a,", 64) + strings.Repeat("a", 1800) + "\x7f"} {
			began := time.Now()
			p.Match(uri)
			if d := time.Since(began); d > time.Second {
				t.Errorf("template_bomb %.40s against %.40s: %v", template, uri, d)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("hello://greetings/{language}", "hello://greetings/fi")
	f.Add("x:{+a}{?b,c}", "x:a/b?b=1&c=%2e")
	f.Fuzz(func(t *testing.T, template, uri string) {
		p, err := Parse(template)
		if err != nil {
			return
		}
		values, ok := p.Match(uri)
		if ok && len(values) > maxVariables {
			t.Errorf("%d values", len(values))
		}
		Fault(uri)
	})
}
