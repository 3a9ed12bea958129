package main

import "testing"

func TestTargets(t *testing.T) {
	all := results("goos: linux\nBenchmarkCorridor/Call-2   100\t 4100 ns/op\t 4000 p50-ns\t 900 B/op\t 41 allocs/op\nBenchmarkCallC-2 9 50000 ns/op\nPASS\n")
	want := []struct {
		got float64
		met bool
	}{{4, true}, {41, false}, {50, false}}
	targets := inHostTargets(all)
	if len(targets) != 7 {
		t.Fatalf("%v", targets)
	}
	for i, w := range want {
		if targets[i].got != w.got || targets[i].met() != w.met {
			t.Errorf("%+v, want %v", targets[i], w)
		}
	}
	if targets[3].met() {
		t.Errorf("met without being measured: %+v", targets[3])
	}
	if (target{got: 3.9, bound: 4, least: true}).met() || !(target{got: 4, bound: 4, least: true}).met() {
		t.Error("a least bound")
	}
}
