package main

import (
	"testing"
	"time"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// BenchmarkRead reads the pages of a search, as large as those of the engines.
func BenchmarkRead(b *testing.B) {
	for _, k := range builtin {
		b.Run(k.name, func(b *testing.B) {
			_, page := loopback.Page(k.name, 10, 100<<10)
			s := &source{kind: k, name: k.name, base: k.base}
			a := answer{status: 200, url: "https://en.wikipedia.org/w/api.php?x", body: []byte(page)}
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				if r := judge(s, a); len(r.hits) != 10 {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}

// BenchmarkMerge merges what eleven engines found, and writes the text.
func BenchmarkMerge(b *testing.B) {
	var lists []ranking
	for _, k := range builtin {
		_, page := loopback.Page(k.name, 10, 0)
		r := judge(&source{kind: k, name: k.name, base: k.base}, answer{status: 200, url: "https://en.wikipedia.org/w/api.php?x", body: []byte(page)})
		lists = append(lists, ranking{k.name, k.weight, r.hits})
	}
	b.ReportAllocs()
	for b.Loop() {
		r := reply{Query: "x", Results: merge(lists, filter{}, time.Unix(1, 0))[:10]}
		present(r.Results)
		render(&r)
	}
}
