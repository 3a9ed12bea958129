package main

import (
	"strings"
	"testing"

	"github.com/skillhost/skill/bench/load"
)

func TestGrown(t *testing.T) {
	first := load.Sample{RSS: 40 << 20, Descriptors: 20, Threads: 8, Goroutines: 30}
	for _, x := range []struct {
		name string
		last load.Sample
		want []string
	}{
		{"nothing", first, nil},
		{"less", load.Sample{RSS: 30 << 20, Descriptors: 10}, nil},
		{"at the bounds", load.Sample{RSS: 56 << 20, Descriptors: 28, Threads: 24, Goroutines: 38}, nil},
		{"memory", load.Sample{RSS: 57 << 20, Descriptors: 20, Threads: 8, Goroutines: 30}, []string{"RSS"}},
		{"one file per session", load.Sample{RSS: 40 << 20, Descriptors: 10020, Threads: 8, Goroutines: 30}, []string{"open files"}},
		{"all", load.Sample{RSS: 1 << 30, Descriptors: 29, Threads: 25, Goroutines: 39}, []string{"RSS", "open files", "threads", "goroutines"}},
	} {
		err := grown(first, x.last)
		if (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v", x.name, err)
		}
		for _, w := range x.want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not say %q", x.name, err, w)
			}
		}
	}
}
