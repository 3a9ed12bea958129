package extract

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func parse(t testing.TB, text string) *Page {
	t.Helper()
	u, err := url.Parse("https://example.com/docs/a")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(text, u)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func render(t testing.TB, text string, f Format) string {
	t.Helper()
	out, err := parse(t, text).Render(f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestArticle: of a page with an article, what is around it is left out; of an
// index, which is all links, nothing is.
func TestArticle(t *testing.T) {
	said := strings.Repeat("<p>This sentence is a part of what the author wanted to say, and there are more, with commas, of its kind.</p>", 12)
	out := render(t, "<nav><a href=/>Home</a> <a href=/buy>Buy now</a></nav><article><h1>Head</h1>"+said+"</article><footer>All rights reserved</footer>", Markdown)
	if !strings.Contains(out, "what the author wanted") || strings.Contains(out, "Buy now") || strings.Contains(out, "All rights") {
		t.Error(out)
	}
	var index strings.Builder
	index.WriteString("<h1>Index</h1><p>An introduction of one sentence, which is all the prose that there is on this page.</p><table>")
	for i := range 300 {
		fmt.Fprintf(&index, "<tr><td><a href=f%d>function_%d</a></td><td>int, char, long</td></tr>", i, i)
	}
	out = render(t, index.String()+"</table>", Markdown)
	for _, want := range []string{`function\_0]`, `function\_299]`, "https://example.com/docs/f299"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestText(t *testing.T) {
	got := render(t, "<h1>A  title</h1>some<b>bold</b> <i>text</i>\n  here<p>para<br>break</p><ul><li>one<li>two</ul><pre>  keep\n\tthis</pre><table><tr><td>1<td>2<tr><td>3<td>4</table><style>no</style><script>no</script><template>no</template>", Text)
	want := "A title\n\nsomebold text here\n\npara\nbreak\n\n- one\n- two\n\n  keep\n\tthis\n\n1\t2\n3\t4\n"
	if got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestHTML: nothing of a page acts, wherever it is shown.
func TestHTML(t *testing.T) {
	got := render(t, `<p onclick="evil()" style="x">text <a href="javascript:evil()" class=c>link</a> <a href="data:text/html,evil">d</a> <img src="x.png" onerror="evil()" srcset="evil"></p><iframe src="https://evil.example"></iframe><object data=evil></object><script>evil()</script><form action="/evil"><input value=evil></form>`, HTML)
	if strings.Contains(got, "evil") || !strings.Contains(got, `src="https://example.com/docs/x.png"`) || !strings.Contains(got, "text") {
		t.Error(got)
	}
}

func TestShell(t *testing.T) {
	for text, want := range map[string]bool{
		`<div id=root></div><script src=/a.js></script>`:                                               true,
		`<div id="__next"><p>Loading…</p></div>`:                                                       true,
		`<app-root></app-root>`:                                                                        true,
		`<noscript>You need to enable JavaScript to run this app.</noscript><div id=app></div>`:        true,
		`<div id=root><h1>Rendered</h1>` + strings.Repeat("<p>by the server, at length</p>", 50):       false,
		`<p>short, and no shell`:                                                                       false,
		`<div id=app></div>` + strings.Repeat("<p>the page says much without its application</p>", 50): false,
	} {
		if p := parse(t, text); p.App != want {
			t.Errorf("%.60s: %v", text, p.App)
		}
	}
}

func TestSelect(t *testing.T) {
	p := parse(t, "<div class=a><p>one</p></div><div><p>two</p></div>")
	if found, err := p.Select("div.a, div.a p"); !found || err != nil || p.Chars != 3 {
		t.Errorf("%v %v %d", found, err, p.Chars)
	}
	if out, err := p.Render(Text); out != "one\n" || err != nil {
		t.Errorf("%q %v", out, err)
	}
}

func TestRefresh(t *testing.T) {
	for text, want := range map[string]string{
		`<meta http-equiv="refresh" content="0; url=/x">`:                                   "0; url=/x",
		`<noscript><meta http-equiv="refresh" content="0; url=/x"></noscript>`:              "",
		`<meta http-equiv="refresh" content="60">` + strings.Repeat("<p>news of today", 50): "",
		`<p>nothing`: "",
	} {
		if got := Refresh(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestDeep(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com"}
	if _, err := Parse(strings.Repeat("<div>", 100_000), u); !errors.Is(err, ErrDeep) {
		t.Error(err)
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"<p>x", "<table><tr><td>x", "<ul><li><pre>x", "<a href=//x>", "<noscript><p>x</noscript>", "<base href=:><a href=x>", "<svg><title>x", "<h1><table><h1>", "<select><template><p>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
		for _, format := range []Format{Markdown, Text, HTML} {
			p, err := Parse(s, u)
			if err != nil {
				return
			}
			if _, err := p.Render(format); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
	})
}

func BenchmarkMarkdown(b *testing.B) {
	var s strings.Builder
	s.WriteString("<title>Manual</title><main>")
	for i := range 200 {
		fmt.Fprintf(&s, "<h2>Section %d</h2><p>What there is to say of <a href=%d>this</a>, with <code>code</code> and commas, and so on.</p>", i, i)
	}
	text := s.String()
	u := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p, err := Parse(text, u)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Render(Markdown); err != nil {
			b.Fatal(err)
		}
	}
}
