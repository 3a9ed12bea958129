package page

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var rule = NewRule(Select("ol#r"), Select("li.hit"), []Field{
	{Of: Select("h2 a"), Attr: "href"},
	{Of: Select("h2 a")},
	{Of: Select("p"), Not: Select("span.icon")},
}, Select("ol#r"), Select("form#challenge"))

func TestExtract(t *testing.T) {
	for _, tt := range []struct {
		name, page string
		want       [][]string
		marks      string // one letter for each mark that is there
	}{
		{"plain", `<ol id=r><li class="hit x"><h2><a href="/a?b=1&amp;c=2">Title <b>one</b></a></h2><p>Some  text<br>more</p></li></ol>`, [][]string{{"/a?b=1&c=2", "Title one", "Some text more"}}, "a"},
		{"no_list", `<ul id=r><li class=hit><h2><a href=x>y</a></h2></ul>`, nil, ""},
		{"empty_list", `<ol id="r"></ol>`, nil, "a"},
		{"unclosed", `<ol id=r><li class=hit><h2><a href=1>A</a></h2><li class=hit><h2><a href=2>B`, [][]string{{"1", "A", ""}, {"2", "B", ""}}, "a"},
		{"first_counts", `<ol id=r><li class=hit><h2><a href=1>A</a></h2><h2><a href=2>B</a></h2><p>one</p><p>two</p></ol>`, [][]string{{"1", "A", "one"}}, "a"},
		{"left_out", `<ol id=r><li class=hit><p><span class=icon>Web <i>x</i></span>snippet</p></ol>`, [][]string{{"", "", "snippet"}}, "a"},
		{"script", `<ol id=r><li class=hit><p>a<script>var p = "</p><li class=hit>";</script>b</p></ol>`, [][]string{{"", "", "a b"}}, "a"},
		{"comment", `<ol id=r><!-- <li class=hit> --><li class=hit><p>a<!-- b -->c</p></ol>`, [][]string{{"", "", "ac"}}, "a"},
		{"class_in_word", `<ol id=r><li class="hitlist not-hit"><p>x</p></ol>`, nil, "a"},
		{"quoted_gt", `<ol id=r><li class=hit title="a > b"><p title='<li class=hit>'>x</p></ol>`, [][]string{{"", "", "x"}}, "a"},
		{"upper_case", `<OL ID=r><LI CLASS=hit><H2><A HREF=1>A</A></H2></LI></OL>`, [][]string{{"1", "A", ""}}, "a"},
		{"entities", `<ol id=r><li class=hit><p>&#8220;x&#x201D;&nbsp;&amp;lt; &unknown; &eacute; AT&T &#0; &#99999999999;</p></ol>`, [][]string{{"", "", "“x” &lt; &unknown; é AT&T \uFFFD \uFFFD"}}, "a"},
		{"not_utf8", "<ol id=r><li class=hit><p>a\xff\xfeb</p></ol>", [][]string{{"", "", "a\uFFFD\uFFFDb"}}, "a"},
		{"stray_ends", `</div></li></ol><ol id=r></p><li class=hit><p>x</b></i></p></li></ol></ol>`, [][]string{{"", "", "x"}}, "a"},
		{"said_in_a_script", `<script>$("#r").html("<ol>r</ol>");</script><p id="r"></p><ol id="r2"></ol><ol class=x id='r'><li class=hit><p>x</p></li></ol><li class=hit><p>outside</p></li>`, [][]string{{"", "", "x"}}, "a"},
		{"second_region", `<ol id=r><li class=ad></li></ol><ol id=r><li class=hit><p>x</p></li></ol>`, [][]string{{"", "", "x"}}, "a"},
		{"nested_lists", `<ol id=r><li class=hit><ol><li>a<li>b</ol><p>x</p></li><li class=hit><p>y</p></li></ol>`, [][]string{{"", "", "x"}, {"", "", "y"}}, "a"},
		{"captcha", `<form id="challenge"><ol id=x></ol></form>`, nil, "b"},
		{"no_page", "\x00\x01 nothing <", nil, ""},
		{"nothing", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Extract([]byte(tt.page), rule)
			marks := ""
			for i, m := range Marks([]byte(tt.page), rule) {
				if m {
					marks += string(rune('a' + i))
				}
			}
			if !reflect.DeepEqual(got, tt.want) || marks != tt.marks {
				t.Errorf("got  %q, marks %q\nwant %q, marks %q", got, marks, tt.want, tt.marks)
			}
		})
	}
}

// Feeds are read by the same rules as pages.
func TestExtractAtom(t *testing.T) {
	r := NewRule(Select("feed"), Select("entry"), []Field{{Of: Select("id")}, {Of: Select("title")}, {Of: Select("link"), Attr: "href"}, {Of: Select("summary")}})
	got := Extract([]byte("<?xml version='1.0'?>\n<feed><title>Feed</title><entry>\n<id>http://a/1</id><title>On <![CDATA[<b>]]>\n  X &amp; Y</title><link href='http://a/1'/><summary>one\n<![CDATA[two < three]]></summary></entry><entry><id>2</id></entry></feed>"), r)
	want := [][]string{{"http://a/1", "On <![CDATA[<b>]]> X & Y", "http://a/1", "one two < three"}, {"2", "", "", ""}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "", "a <em>b</em>c": "a bc", "a<br>b": "a b", "x &lt;b&gt; y": "x <b> y", "<script>alert(1)</script>ok": "ok", "a\n\tb": "a b", "<": "<", "a<b": "a", "1 < 2": "1 < 2",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// What a page makes the reader keep is bounded, whatever the page.
func TestBounds(t *testing.T) {
	many := Extract([]byte(`<ol id=r>`+strings.Repeat(`<li class=hit><p>`+strings.Repeat("word ", 2000)+`</p></li>`, 300)), rule)
	if len(many) != maxItems || len(many[0][2]) > maxText {
		t.Errorf("%d items of %d bytes", len(many), len(many[0][2]))
	}
	deep := Extract([]byte(`<ol id=r><li class=hit>`+strings.Repeat("<div>", 100_000)+"<p>x</p>"), rule)
	if len(deep) != 1 {
		t.Errorf("%d items", len(deep))
	}
}

func FuzzExtract(f *testing.F) {
	f.Add([]byte(`<ol id=r><li class="hit x"><h2><a href="/a?b=1&amp;c=2">Title <b>one</b></a></h2><p>Some  text<br>more</p></li></ol>`))
	f.Add([]byte("<ol id=r><li class=hit><p>&#x1F600;&#xD800;<![CDATA[x]]><!--y--><script>z</scr"))
	f.Add([]byte(`<title><textarea></title></textarea><li class='hit`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := slices.Clone(body)
		got := Extract(body, rule)
		if !slices.Equal(body, before) {
			t.Fatal("the page was changed")
		}
		for _, item := range got {
			for i, field := range item {
				if len(field) > maxText+utf8.UTFMax {
					t.Fatalf("a field of %d bytes", len(field))
				}
				if i > 0 && !utf8.ValidString(field) || i > 0 && strings.Contains(field, "  ") {
					t.Fatalf("bad text %q", field)
				}
			}
		}
		if again := Extract(body, rule); !reflect.DeepEqual(again, got) {
			t.Fatal("read twice, and not the same")
		}
		Marks(body, rule)
		Text(string(body))
	})
}
