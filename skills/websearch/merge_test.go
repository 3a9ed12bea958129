package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLocate(t *testing.T) {
	for raw, want := range map[string]address{
		"https://Example.com/":       {"https://example.com/", "example.com", "example.com"},
		"http://www.example.com:80/": {"http://www.example.com/", "example.com", "example.com"},
		"https://m.example.com:443":  {"https://m.example.com", "example.com", "example.com"},
		"https://m.example":          {"https://m.example", "m.example", "m.example"},
		"https://example.com:8443/a/?b=2&a=1&utm_source=x&GCLID=y#part":                                          {"https://example.com:8443/a/?b=2&a=1#part", "example.com:8443/a?a=1&b=2", "example.com"},
		"https://example.com/a#:~:text=x":                                                                        {"https://example.com/a", "example.com/a", "example.com"},
		"https://user:pass@example.com/":                                                                         {"https://example.com/", "example.com", "example.com"},
		"//example.com/x":                                                                                        {"https://example.com/x", "example.com/x", "example.com"},
		" https://example.com/a b?c d ":                                                                          {"https://example.com/a%20b?c d", "example.com/a%20b?c d", "example.com"},
		"https://[2001:DB8::1]:443/x":                                                                            {"https://[2001:db8::1]/x", "2001:db8::1/x", "2001:db8::1"},
		"//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com%2Fx%3Fa%3D1&rut=0":                                   {"https://example.com/x?a=1", "example.com/x?a=1", "example.com"},
		"https://www.bing.com/ck/a?!&&p=0&u=a1aHR0cHM6Ly9leGFtcGxlLmNvbS94&ntb=1":                                {"https://example.com/x", "example.com/x", "example.com"},
		"https://www.google.com/url?q=https://example.com/x&sa=U":                                                {"https://example.com/x", "example.com/x", "example.com"},
		"https://l.facebook.com/l.php?u=https%3A%2F%2Fexample.com%2F":                                            {"https://example.com/", "example.com", "example.com"},
		"https://www.bing.com/ck/a?u=a1" + "Ly9kdWNrZHVja2dvLmNvbS9sLz91ZGRnPWh0dHBzJTNBJTJGJTJGZXhhbXBsZS5jb20": {"https://example.com", "example.com", "example.com"},
		"https://www.bing.com/ck/a?u=a1%%%":                                                                      {"https://www.bing.com/ck/a?u=a1%%%", "bing.com/ck/a?u=a1%%%", "bing.com"},
	} {
		got, ok := locate(raw)
		if !ok || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", raw, got, ok, want)
		}
	}
	for _, raw := range []string{"", "/relative", "javascript:alert(1)", "data:text/html,x", "ftp://example.com/", "https://", "https:///x", "https://ex\nample.com/", "https://a/" + strings.Repeat("x", maxURL), "http://[::1", "mailto:a@example.com",
		"https://www.google.com/url?q=javascript:alert(1)", "https://duckduckgo.com/l/?uddg=file:///etc/passwd"} {
		if got, ok := locate(raw); ok {
			t.Errorf("%q: got %+v", raw, got)
		}
	}
}

// What is plainly canonical is what the long way makes of it.
func FuzzPlainAddress(f *testing.F) {
	f.Add("https://www.example.com/a/B_c-d/")
	f.Add("https://m.example/")
	f.Add("https://a..b//")
	f.Fuzz(func(t *testing.T, raw string) {
		short, ok := plainAddress(raw)
		if !ok {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || unwrap(u) != "" {
			t.Fatalf("%q: %+v, but it is not plain: %v", raw, short, err)
		}
		if long, ok := canonical(u); !ok || long != short {
			t.Fatalf("%q: %+v, and the long way %+v, %v", raw, short, long, ok)
		}
	})
}

// An address that was made canonical stays as it is.
func FuzzLocate(f *testing.F) {
	f.Add("https://www.example.com:443/a/?b=2&utm_x=1&a=1#x")
	f.Add("//duckduckgo.com/l/?uddg=https%3A%2F%2Fexample.com")
	f.Add("http://[::1]:80/%zz?&&=")
	f.Fuzz(func(t *testing.T, raw string) {
		a, ok := locate(raw)
		if !ok {
			return
		}
		if !strings.HasPrefix(a.shown, "http://") && !strings.HasPrefix(a.shown, "https://") || a.key == "" || a.host == "" || strings.ContainsFunc(a.shown, isControl) {
			t.Fatalf("%q: %+v", raw, a)
		}
		again, ok := locate(a.shown)
		if len(a.shown) <= maxURL && (!ok || again.key != a.key || again.shown != a.shown) {
			t.Fatalf("%q: %+v, and again %+v, %v", raw, a, again, ok)
		}
	})
}

// mergeAll is merge of lists as they come from engines.
func mergeAll(lists []ranking, now time.Time) []result {
	lists = slices.Clone(lists)
	for i := range lists {
		lists[i].hits = located(reading{hits: slices.Clone(lists[i].hits)}).hits
	}
	all := merge(lists, filter{}, now)
	present(all)
	return all
}

func TestMerge(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	got := mergeAll([]ranking{
		{"b", 1, []hit{{url: "http://www.one.example/x/?utm_source=b", title: "One", snippet: "short", published: "3 days ago"}, {url: "https://two.example/", title: "Two"}, {url: "https://one.example/x", title: "again"}}},
		{"a", 2, []hit{{url: "https://three.example/", title: "Three"}, {url: "https://one.example/x#top", title: "One, a longer title", snippet: "a longer snippet", published: "2026-05-01T00:00:00Z"}, {url: "nonsense"}}},
	}, now)
	want := []result{
		{Title: "One, a longer title", URL: "https://one.example/x", Snippet: "a longer snippet", Engines: []string{"a", "b"}, Positions: map[string]int{"a": 2, "b": 1}, Score: 0.04865, Published: "2026-05-01", key: "one.example/x", host: "one.example", places: []place{{"a", 2}, {"b", 1}}},
		{Title: "Three", URL: "https://three.example/", Engines: []string{"a"}, Positions: map[string]int{"a": 1}, Score: 0.03279, key: "three.example", host: "three.example", places: []place{{"a", 1}}},
		{Title: "Two", URL: "https://two.example/", Engines: []string{"b"}, Positions: map[string]int{"b": 2}, Score: 0.01613, key: "two.example", host: "two.example", places: []place{{"b", 2}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Whatever engines find: the order in which they answer does not count, no page
// is lost or there twice, each counts by its best place, and of the first ten no
// more than three are of one host unless there are no others.
func TestMergeProperties(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		lists := randomLists(r)
		got := mergeAll(lists, now)
		shuffled := slices.Clone(lists)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := mergeAll(shuffled, now); !reflect.DeepEqual(got, again) {
			t.Fatalf("seed %d: another order gives another list\n%+v\n%+v", seed, got, again)
		}
		want := map[string]float64{}
		for _, l := range lists {
			seen, place := map[string]bool{}, 0
			for _, h := range l.hits {
				if a, ok := locate(h.url); ok {
					place++
					if !seen[a.key] {
						seen[a.key] = true
						want[a.key] += l.weight / float64(rankOffset+place)
					}
				}
			}
		}
		hosts := map[string]int{}
		for i, p := range got {
			score, ok := want[p.key]
			if !ok {
				t.Fatalf("seed %d: %s is there twice, or out of nowhere", seed, p.key)
			}
			if diff := score - p.Score; diff > 1e-5 || diff < -1e-5 {
				t.Fatalf("seed %d: %s has %v, want %v", seed, p.key, p.Score, score)
			}
			delete(want, p.key)
			if i < window {
				hosts[p.host]++
			}
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: lost %v", seed, want)
		}
		spreadWell(t, seed, got, hosts)
	}
}

// spreadWell fails if a host has too many of the first results although another
// could have one more.
func spreadWell(t *testing.T, seed uint64, got []result, hosts map[string]int) {
	t.Helper()
	for host, n := range hosts {
		for i := window; n > perHost && i < len(got); i++ {
			if got[i].host != host && hosts[got[i].host] < perHost {
				t.Fatalf("seed %d: %d of %s go before %s", seed, n, host, got[i].URL)
			}
		}
	}
}

func randomLists(r *rand.Rand) []ranking {
	var lists []ranking
	for e := range r.IntN(6) {
		l := ranking{engine: fmt.Sprintf("e%d", e), weight: []float64{0.5, 1, 2}[r.IntN(3)]}
		for range r.IntN(14) {
			n := r.IntN(25)
			h := hit{url: fmt.Sprintf("https://host%d.example/%d", n%[]int{1, 4, 9}[r.IntN(3)], n), title: fmt.Sprint("t", r.IntN(100)), published: []string{"", "2026-01-02", "1770000000"}[r.IntN(3)]}
			switch r.IntN(8) {
			case 0:
				h.url = strings.Replace(h.url, "https://", "http://www.", 1) + "/?utm_medium=x"
			case 1:
				h.url = "no address"
			}
			l.hits = append(l.hits, h)
		}
		lists = append(lists, l)
	}
	return lists
}

func TestSpread(t *testing.T) {
	var hits []hit
	for i := range 8 {
		hits = append(hits, hit{url: fmt.Sprintf("https://big.example/%d", i)})
	}
	for i := range 9 {
		hits = append(hits, hit{url: fmt.Sprintf("https://small%d.example/", i)})
	}
	var order []string
	for _, r := range mergeAll([]ranking{{"a", 1, hits}}, time.Now()) {
		order = append(order, strings.TrimPrefix(r.URL, "https://"))
	}
	want := "big.example/0 big.example/1 big.example/2 small0.example/ small1.example/ small2.example/ small3.example/ small4.example/ small5.example/ small6.example/ " +
		"big.example/3 big.example/4 big.example/5 big.example/6 big.example/7 small7.example/ small8.example/"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDay(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"2026-01-02": "2026-01-02", "2026-01-02T03:04:05Z": "2026-01-02", "2026-13-02": "", "1770000000": "2026-02-02", "1770000000000": "2026-02-02", "12": "", "-5": "", "January 2, 2026 -": "2026-01-02",
		"Jan 2, 2026": "2026-01-02", "January 2, 2026": "2026-01-02", "2 Jan 2026": "2026-01-02", "Wed, 06 May 2026 01:02:03 GMT": "2026-05-06",
		"3 days ago": "2026-03-28", "1 week ago": "2026-03-24", "2 hours ago": "2026-03-31", "1 year ago": "2025-03-31", "x days ago": "", "99999999 days ago": "", "yesterday": "", "": "",
	} {
		if got := day(in, now); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTidy(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "": "", "  a \n\t b ": "a b", "abcdefghij": "abcdefghij", "abcdefghijk": "abcdefghij…", "123456789 a": "123456789…", "a\u200b\u202eb\x00": "ab", "\u00a0": "", "a\xffb": "a b", "👩\u200d🔬": "👩\u200d🔬",
	} {
		if got := tidy(in, 10); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzTidy(f *testing.F) {
	f.Add("a\u202e b\n\xff", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(0, min(n, 1000))
		got := tidy(text, n)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > n+1 || strings.ContainsFunc(got, isControl) || strings.Contains(got, "  ") {
			t.Fatalf("%q: %q", text, got)
		}
		if tidy(got, n+1) != got {
			t.Fatalf("%q: %q is tidied again", text, got)
		}
	})
}
