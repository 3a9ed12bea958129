package loopback

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// Page is the answer of an engine with n results, and about bulk bytes beside
// them.
func Page(engine string, n, bulk int) (contentType, page string) {
	make := pages[engine]
	if make == nil {
		return "", ""
	}
	var all []entry
	for i, doc := range places(engine, n) {
		all = append(all, entry{doc, Document(doc), fmt.Sprintf("Document %d, <of> %s", doc, engine), fmt.Sprintf("Text number %d of %s & others.", i, engine)})
	}
	page = make(all)
	if strings.HasPrefix(page, "<!DOCTYPE html>") {
		return "text/html; charset=utf-8", strings.Replace(page, "<!--bulk-->", filler(bulk), 1)
	}
	if strings.HasPrefix(page, "<") {
		return "application/atom+xml", page
	}
	return "application/json", page
}

type entry struct {
	n              int
	url, title, is string
}

var pages = map[string]func([]entry) string{
	"duckduckgo": func(all []entry) string {
		return paper(each(all, func(e entry) string {
			return fmt.Sprintf(`<div class="result results_links web-result"><div class="links_main result__body"><h2 class="result__title"><a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=%s&amp;rut=0">%s</a></h2><a class="result__snippet" href="#">%s</a></div></div>`, url.QueryEscape(e.url), html.EscapeString(e.title), marked(e.is))
		}), `<div id="links" class="results">%s</div>`)
	},
	"bing": func(all []entry) string {
		return paper(each(all, func(e entry) string {
			return fmt.Sprintf(`<li class="b_algo" data-id><div class="b_tpcn"><a class="tilk" href="%s"><div class="site">site</div></a></div><h2><a href="https://www.bing.com/ck/a?!&amp;&amp;p=0&amp;u=a1%s&amp;ntb=1">%s</a></h2><div class="b_caption"><p><span class="algoSlug_icon">Web</span>%s</p></div></li>`, html.EscapeString(e.url), base64.RawURLEncoding.EncodeToString([]byte(e.url)), html.EscapeString(e.title), marked(e.is))
		}), `<ol id="b_results"><li class="b_ad"><h2><a href="https://ads.example/">Buy</a></h2></li>%s</ol>`)
	},
	"brave": func(all []entry) string {
		return paper(each(all, func(e entry) string {
			return fmt.Sprintf(`<div class="snippet svelte-1" data-type="web"><a href="%s" class="l1"><div class="site-name-wrapper">site</div><div class="title search-snippet-title" title="x">%s</div></a><div class="generic-snippet"><div class="content desktop-default"><span class="t-secondary">January 2, 2026 -</span> %s</div></div></div>`, html.EscapeString(e.url), html.EscapeString(e.title), marked(e.is))
		}), `<div id="results"><div class="snippet ad"><a href="/a/redirect?x=1"><div class="title">Buy</div></a></div>%s</div>`)
	},
	"mojeek": func(all []entry) string {
		return paper(each(all, func(e entry) string {
			return fmt.Sprintf(`<li class="r"><a class="ob" title="" href="%[1]s"><p class="i">site</p></a><h2><a class="title" href="%[1]s">%[2]s</a></h2><p class="s">%[3]s</p></li>`, html.EscapeString(e.url), html.EscapeString(e.title), marked(e.is))
		}), `<ul class="results-standard">%s</ul>`)
	},
	"startpage": func(all []entry) string {
		var list []map[string]string
		for _, e := range all {
			list = append(list, map[string]string{"clickUrl": e.url, "title": html.EscapeString(e.title), "description": marked(e.is)})
		}
		data := encode(map[string]any{"render": map[string]any{"presenter": map[string]any{"regions": map[string]any{"mainline": []any{
			map[string]any{"display_type": "ads", "results": []any{map[string]string{"clickUrl": "https://ads.example/", "title": "Buy"}}},
			map[string]any{"display_type": "web-google", "results": list}}}}}})
		return paper(`<div id="root"></div><script>ReactDOM.hydrate(React.createElement(UIStartpage.AppSerpWeb, `+data+`), document.getElementById("root"))</script>`, `%s`)
	},
	"mwmbl": func(all []entry) string {
		var list []any
		for _, e := range all {
			list = append(list, map[string]any{"url": e.url, "title": pieces(e.title), "extract": pieces(e.is)})
		}
		return encode(list)
	},
	"wikipedia": func(all []entry) string {
		var list []any
		for _, e := range all {
			list = append(list, map[string]any{"ns": 0, "title": fmt.Sprintf("Subject %d", e.n), "snippet": marked(e.is), "timestamp": "2026-02-03T04:05:06Z"})
		}
		return encode(map[string]any{"batchcomplete": true, "query": map[string]any{"searchinfo": map[string]int{"totalhits": len(all)}, "search": list}})
	},
	"github": func(all []entry) string {
		var list []any
		for _, e := range all {
			item := map[string]any{"html_url": fmt.Sprintf("https://github.com/owner-%d/repo-%d", e.n, e.n), "full_name": fmt.Sprintf("owner-%d/repo-%d", e.n, e.n), "description": e.is,
				"pushed_at": "2026-03-04T05:06:07Z", "language": "Go", "stargazers_count": e.n, "license": nil, "owner": map[string]any{"login": "o", "id": e.n}}
			for _, more := range []string{"keys", "forks", "hooks", "issue_events", "assignees", "branches", "blobs", "git_tags", "statuses", "languages", "stargazers", "contributors", "subscribers", "commits", "comments", "contents"} {
				item[more+"_url"] = fmt.Sprintf("https://api.github.com/repos/owner-%d/repo-%d/%s{/id}", e.n, e.n, more) // as theirs do: most of the document
			}
			list = append(list, item)
		}
		return encode(map[string]any{"total_count": len(all), "incomplete_results": false, "items": list})
	},
	"stackexchange": func(all []entry) string {
		var list []any
		for _, e := range all {
			list = append(list, map[string]any{"link": fmt.Sprintf("https://stackoverflow.com/questions/%d/q", e.n), "title": html.EscapeString(e.title), "creation_date": 1770000000, "answer_count": 2, "score": e.n, "is_answered": true, "tags": []string{"go"}, "owner": map[string]any{"display_name": "x"}})
		}
		return encode(map[string]any{"items": list, "has_more": false, "quota_max": 300, "quota_remaining": 299})
	},
	"hackernews": func(all []entry) string {
		var list []any
		for i, e := range all {
			item := map[string]any{"objectID": fmt.Sprint(1000 + e.n), "title": e.title, "url": e.url, "points": 7, "num_comments": 3, "created_at": "2026-04-05T06:07:08Z", "author": "a", "_tags": []string{"story"},
				"_highlightResult": map[string]any{"title": map[string]any{"value": marked(e.title), "matchLevel": "full", "matchedWords": []string{"text"}}}}
			if i == 0 {
				delete(item, "url")
				item["story_text"] = "<p>A question"
			}
			list = append(list, item)
		}
		return encode(map[string]any{"hits": list, "nbHits": len(all), "page": 0})
	},
	"arxiv": func(all []entry) string {
		return `<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Query</title><id>http://arxiv.org/api/x</id>` + each(all, func(e entry) string {
			return fmt.Sprintf("<entry><id>http://arxiv.org/abs/2601.%05dv1</id><published>2026-01-02T03:04:05Z</published><title>%s</title>\n<summary>  %s\n</summary><author><name>A</name></author><link href=\"http://arxiv.org/abs/2601.%05dv1\" rel=\"alternate\"/></entry>", e.n, html.EscapeString(e.title), html.EscapeString(e.is), e.n)
		}) + `</feed>`
	},
}

// paper is a page with content in frame.
func paper(content, frame string) string {
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>x at search</title><style>body{margin:0}</style></head><body><!--bulk--><form action="/"><input name="q" value="x"></form>` +
		strings.Replace(frame, "%s", content, 1) + `<script>var done = "</div>";</script></body></html>`
}

// filler is what pages have beside their results: scripts, styles and menus.
func filler(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `<script nonce="n%d">(function(){var a={id:%d,name:"<b>x</b>",list:[1,2,3].map(function(x){return x*2}).filter(function(x){return x>1&&x<5})};window.q=window.q||[];window.q.push(a)})();</script><div class="menu m%d"><a class="entry link-%d" href="/preferences?item=%d" data-h="%d,%d"><span class="icon i%d"></span>Entry %d</a></div>`, i, i, i, i, i, i, i, i, i)
	}
	return b.String()
}

// marked is text as HTML, with one word stressed.
func marked(text string) string {
	return strings.Replace(html.EscapeString(text), "number", "<b>number</b>", 1)
}

func pieces(text string) []any {
	half := len(text) / 2
	return []any{map[string]any{"value": text[:half], "is_bold": false}, map[string]any{"value": text[half:], "is_bold": true}}
}

func each(all []entry, f func(entry) string) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString(f(e))
	}
	return b.String()
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // texts and numbers: cannot happen
		panic(err)
	}
	return string(b)
}
