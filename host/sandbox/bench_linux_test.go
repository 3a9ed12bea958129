package sandbox

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/skillhost/skill/host/sandbox/stage"
)

// BenchmarkStart measures a program from Start to its end, in the full cage
// and, as an ordinary user only, with nothing but the stage. "true" is this
// very binary, which ends before it is initialised. Report p50, not the mean.
func BenchmarkStart(b *testing.B) {
	all := []Level{Strict, Landlock, None}
	if os.Geteuid() == 0 {
		all = all[:1]
	}
	w := newWorld(b)
	for _, level := range all {
		need(b, level)
		self := Program{File: open(b, "/proc/self/exe"), Args: []string{stage.Trial}, Env: []string{"GOMAXPROCS=1"}}
		c := w.cage(level)
		proxied := c
		proxied.Network = Proxy
		for _, bb := range []struct {
			name string
			c    Cage
			p    Program
		}{
			{"true", c, self},
			{"bash", c, command(b, "bash", "-c", "true")},
			{"bash-init", c, func() Program { p := command(b, "bash", "-c", "true"); p.Init = true; return p }()},
			{"bash-proxy", proxied, command(b, "bash", "-c", "true")},
		} {
			if bb.c.Network == Proxy && level != Strict {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", level, bb.name), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					begin := time.Now()
					proc, err := w.Start(b.Context(), bb.c, bb.p)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := proc.Wait(); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(begin))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)/20].Microseconds()), "p5-µs") // what it is on a machine that does nothing else
			})
		}
	}
}
