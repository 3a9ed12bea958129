// Suite runs what others wrote to judge MCP servers against the real binary: the
// official conformance suite in every revision, the inspector and both
// TypeScript clients. It prints one table and fails if any check failed, or if
// fewer were made than ought to be.
//
//	go run ./examples/conformance/suite bin/skill
//
// It knows nothing of the host: it installs the two skills of this example as
// anybody would, allows them, and starts "skill serve".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// A row is one line of the table.
type row struct {
	about          string
	passed, failed int
	problems       []string // what failed, what is only warned of
}

func (r *row) fail(format string, args ...any) {
	r.failed++
	r.problems = append(r.problems, "FAILED "+fmt.Sprintf(format, args...))
}

// options are the flags.
type options struct {
	cache  string
	readme string
	write  bool
	only   string
	url    string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("conformance: ")
	var o options
	flag.StringVar(&o.cache, "cache", ".cache/conformance", "where the suite and its Node.js are installed, and its reports kept")
	flag.StringVar(&o.readme, "readme", "", "the file whose table between the conformance marks has to be this run's")
	flag.BoolVar(&o.write, "write", false, "with -readme: write the table into it")
	flag.StringVar(&o.only, "only", "", "run what has this in its name")
	flag.StringVar(&o.url, "url", "", "judge the server at this URL instead of starting one; only the official suite runs")
	flag.Parse()
	if flag.NArg() != 1 && o.url == "" || flag.NArg() > 1 {
		log.Fatal("usage: go run ./examples/conformance/suite [flags] PATH/TO/skill")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if err := run(ctx, o, flag.Arg(0), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options, skill string, w io.Writer) error {
	tools, err := install(ctx, o.cache)
	if err != nil {
		return err
	}
	var rows []row
	if o.url != "" {
		rows = official(ctx, tools, o.url, o.only)
	} else if rows, err = judge(ctx, tools, skill, o.only); err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("nothing has %q in its name", o.only)
	}
	failed := show(w, rows)
	switch {
	case failed > 0:
		return fmt.Errorf("%d checks failed; the reports are in %s", failed, tools.reports)
	case o.readme == "" || o.only != "" || o.url != "":
		return nil
	}
	return keep(o.readme, table(rows), o.write)
}

// judge starts the binary with the fixtures and runs everything against it.
func judge(ctx context.Context, tools *toolbox, skill, only string) (rows []row, err error) {
	skill, err = filepath.Abs(skill)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "skill-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	h, err := newHouse(ctx, skill, dir)
	if err != nil {
		return nil, err
	}
	s, err := h.serve(ctx)
	if err != nil {
		return nil, err
	}
	rows = official(ctx, tools, s.url, only)
	rows = append(rows, inspector(ctx, tools, h, s.url, only)...)
	rows = append(rows, clients(ctx, tools, h, s.url, only)...)
	if err := s.stop(); err != nil {
		return nil, fmt.Errorf("skill serve: %w\n%s", err, s.log())
	}
	// What it answered, it also wrote down.
	out, err := h.run(ctx, "audit", "verify")
	if err == nil && !strings.Contains(out, "intact: ") {
		err = errors.New("the record is not intact")
	}
	if err != nil {
		return nil, fmt.Errorf("skill audit verify: %w\n%s", err, out)
	}
	return rows, nil
}

// show prints the rows with what was wrong, and returns how much that was.
func show(w io.Writer, rows []row) (failed int) {
	for _, r := range rows {
		for _, p := range r.problems {
			fmt.Fprintf(w, "%s: %s\n", r.about, p)
		}
		failed += r.failed
	}
	fmt.Fprintf(w, "\n%s", table(rows))
	return failed
}
