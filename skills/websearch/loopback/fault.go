package loopback

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// Empty is the answer of an engine that found nothing.
func Empty(engine string) http.HandlerFunc {
	_, page := Page(engine, 0, 0)
	switch engine {
	case "duckduckgo":
		page = paper(`<div class="no-results">No results.</div>`, `<div id="links" class="results">%s</div>`)
	case "bing":
		page = paper(`<li class="b_no"><h1>There are no results</h1></li>`, `<ol id="b_results">%s</ol>`)
	case "mojeek":
		page = paper(`<p>No pages found matching: x</p>`, `<div class="results">%s</div>`)
	case "mwmbl":
		page = "[]"
	case "startpage", "wikipedia", "github", "stackexchange", "hackernews":
		page = strings.Replace(page, "null", "[]", 1) // the list of none
	}
	return Text(200, page)
}

// Captcha is the page by which an engine asks for a human.
func Captcha(engine string) http.HandlerFunc {
	switch engine {
	case "duckduckgo":
		return Text(202, paper(`<div class="anomaly-modal__modal"><div class="anomaly-modal__title">Bots use this too</div><p>Select all squares with a duck</p></div>`, `<form id="challenge-form" action="//duckduckgo.com/anomaly.js">%s</form>`))
	case "startpage":
		return func(rw http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/captcha") {
				http.Redirect(rw, r, strings.Replace(r.URL.Path, "/sp/search", "/sp/captcha", 1), http.StatusFound)
				return
			}
			fmt.Fprint(rw, paper("Type what you see", "<p>%s</p>"))
		}
	case "brave":
		return Text(429, paper(`<button>I'm not a robot</button>`, `<div id="pow-captcha">%s</div>`))
	case "bing":
		return Text(200, paper(`<p>One last step: solve the challenge</p>`, `<div class="captcha">%s</div>`))
	}
	return Text(200, paper(`<p>Our systems have detected unusual traffic.</p>`, `<main>%s</main>`))
}

// Text answers with status and a text.
func Text(status int, text string, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			rw.Header().Set(header[i], header[i+1])
		}
		if rw.Header().Get("Content-Type") == "" {
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		rw.WriteHeader(status)
		fmt.Fprint(rw, text)
	}
}

// Malformed is the answer of an engine that is made in a new way, or broken.
func Malformed(engine string) http.HandlerFunc {
	_, page := Page(engine, 3, 0)
	if strings.HasPrefix(page, "<") {
		return Text(200, paper(`<article><a href="https://new.example/">New</a></article>`, "<section>%s</section>"))
	}
	return Text(200, page[:len(page)*2/3])
}

// Huge is an answer without end.
func Huge(rw http.ResponseWriter, r *http.Request) {
	chunk := strings.Repeat("<div class=\"menu\">more</div>", 2000)
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(rw, chunk); err != nil {
			return
		}
	}
}

// Stuck never answers.
func Stuck(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Gzip is the good answer of an engine, compressed as the client asks for it.
func Gzip(engine string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		contentType, page := Page(engine, 10, 0)
		rw.Header().Set("Content-Type", contentType)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			http.Error(rw, "the client does not take gzip", http.StatusNotAcceptable)
			return
		}
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, page)
		_ = z.Close() // a client that is gone is none of the server's business
	}
}

// Bomb is a small answer that decompresses to a gigabyte.
func Bomb(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(rw)
	zeros := make([]byte, 1<<20)
	for range 1 << 10 {
		if _, err := z.Write(zeros); err != nil {
			return
		}
	}
	_ = z.Close() // as above
}

// Brotli is an answer in an encoding that nobody asked for.
func Brotli(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Encoding", "br")
	fmt.Fprint(rw, "\x8b\x03\x80not what it seems\x03")
}

// Redirect leads to another address, over and over if that leads here.
func Redirect(to string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, to, http.StatusFound) }
}
