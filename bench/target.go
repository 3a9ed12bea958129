package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A target is a figure and what it is to be.
type target struct {
	what  string
	got   float64
	bound float64
	unit  string
	least bool // bound is the least, else the most
}

func (t target) met() bool {
	if t.least {
		return t.got >= t.bound
	}
	return t.got <= t.bound
}

func printTargets(all []target) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\twant\tgot\tmet")
	for _, t := range all {
		sign, met := "≤", "no"
		if t.least {
			sign = "≥"
		}
		if t.met() {
			met = "yes"
		}
		fmt.Fprintf(w, "%s\t%s %g %s\t%.4g %s\t%s\n", t.what, sign, t.bound, t.unit, t.got, t.unit, met)
	}
	w.Flush()
	fmt.Println()
}

// A result is one line of "go test -bench": its name without "Benchmark" and
// the number of processors, and its values by unit.
type result struct {
	name   string
	values map[string]float64
}

func results(out string) (all []result) {
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		r := result{name, map[string]float64{}}
		for i := 2; i+1 < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				r.values[f[i+1]] = v
			}
		}
		all = append(all, r)
	}
	return all
}

// inHostTargets returns the targets of what was measured. One whose benchmark
// is not there was not measured, and is not met.
func inHostTargets(all []result) (targets []target) {
	for _, t := range []struct {
		what, benchmark, unit string
		per, bound            float64
		shown                 string
	}{
		{"the corridor, p50", "Corridor/Call", "p50-ns", 1e3, 5, "µs"},
		{"the corridor, allocations", "Corridor/Call", "allocs/op", 1, 40, ""},
		{"a call of a guest in C", "CallC", "ns/op", 1e3, 40, "µs"},
		{"a call of a guest in Go", "Call/skill_go", "ns/op", 1e6, 3, "ms"},
		{"bash -c true in the strict cage, p50", "Start/strict/bash", "p50-µs", 1e3, 5, "ms"},
		{"a plugin from nothing to its first answer, p50", "Spawn", "µs-p50", 1e3, 12, "ms"},
		{"a warm plugin's answer to 100 bytes, p50", "Warm", "µs-p50", 1, 80, "µs"},
	} {
		found := false
		for _, r := range all {
			if v, ok := r.values[t.unit]; ok && r.name == t.benchmark {
				found = true
				targets = append(targets, target{t.what, v / t.per, t.bound, t.shown, false})
			}
		}
		if !found {
			targets = append(targets, target{t.what + " (not measured)", math.NaN(), t.bound, t.shown, false})
		}
	}
	return targets
}
