package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/skillhost/skill/bench/load"
)

// figures are what was measured, by the names of targets.
type figures map[string][]load.Figures

// compared are figures in the order of their targets.
type compared struct {
	figures
	names []string
}

// compare measures the targets in turn, so that a slow minute hits all alike.
func compare(targets []load.Target, n counts, calls func(load.Target) (single, full int)) (compared, error) {
	c := compared{figures: figures{}}
	for _, t := range targets {
		c.names = append(c.names, t.Name)
	}
	for range n.rounds {
		for _, t := range targets {
			single, full := calls(t)
			f, err := load.Measure(t, single, full)
			if err != nil {
				return c, fmt.Errorf("%s: %w", t.Name, err)
			}
			c.figures[t.Name] = append(c.figures[t.Name], f)
		}
	}
	return c, nil
}

func (f figures) calls(name string) float64 {
	return median(f[name], func(f load.Figures) float64 { return f.Full.Calls })
}

func (f figures) p50(name string) time.Duration {
	return median(f[name], func(f load.Figures) time.Duration { return f.Single.P50 })
}

// tail is how much slower the slowest of a hundred is than the median, with
// Outstanding calls under way.
func (f figures) tail(name string) float64 {
	return median(f[name], func(f load.Figures) float64 { return float64(f.Full.P99) / float64(f.Full.P50) })
}

// print prints a line for each target. against are those that the throughput
// of each is divided by.
func (c compared) print(title string, against ...string) {
	rounds := len(c.figures[c.names[0]])
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, medians of %d rounds\tstart\tRSS %v later\tRSS, most\tp50\tp99\tCPU/call\t%d outstanding\tp50\tp99\tp99 ÷ p50\tCPU/call", title, rounds, load.IdleAfter, load.Outstanding)
	for _, a := range against {
		fmt.Fprintf(w, "\t÷ %s", a)
	}
	fmt.Fprintln(w)
	for _, name := range c.names {
		f := c.figures[name]
		d := func(of func(load.Figures) time.Duration) time.Duration { return median(f, of) }
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f MB\t%.1f MB\t%.1f µs\t%.1f µs\t%.1f µs\t%.0f calls/s\t%.0f µs\t%.0f µs\t%.1f\t%.1f µs", name,
			ms(d(func(f load.Figures) time.Duration { return f.Start })),
			mb(median(f, func(f load.Figures) int64 { return f.IdleRSS })), mb(median(f, func(f load.Figures) int64 { return f.LoadRSS })),
			us(c.p50(name)), us(d(func(f load.Figures) time.Duration { return f.Single.P99 })), us(d(func(f load.Figures) time.Duration { return f.Single.CPU })),
			c.calls(name), us(d(func(f load.Figures) time.Duration { return f.Full.P50 })), us(d(func(f load.Figures) time.Duration { return f.Full.P99 })), c.tail(name), us(d(func(f load.Figures) time.Duration { return f.Full.CPU })))
		for _, a := range against {
			fmt.Fprintf(w, "\t%.2f×", c.calls(name)/c.calls(a))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Println()
}
