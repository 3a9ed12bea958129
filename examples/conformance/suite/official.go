package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A judgement is one run of the official suite.
type judgement struct {
	name  string // of its reports
	about string
	args  []string
	want  int // checks that have to be made, at least
}

// judgements begin with those that wait longest for an answer: the first calls
// of a server find nothing compiled.
var judgements = []judgement{
	{"2025-03-26", "2025-03-26, all that applies", []string{"--suite", "all", "--spec-version", "2025-03-26"}, 3},
	{"2025-06-18", "2025-06-18, all that applies", []string{"--suite", "all", "--spec-version", "2025-06-18"}, 56},
	{"2025-11-25", "2025-11-25, what it requires", []string{"--requirements", "2025-11-25"}, 84},
	{"2026-07-28", "2026-07-28, what it requires, with tasks", []string{"--requirements", "2026-07-28"}, 197},
	{"all", "every scenario there is, with tasks and skills", []string{"--suite", "all"}, 274},
}

// official runs the official suite against the server at url.
func official(ctx context.Context, t *toolbox, url, only string) (rows []row) {
	for _, j := range judgements {
		r := row{about: "conformance suite: " + j.about}
		if !strings.Contains(r.about, only) {
			continue
		}
		if err := j.run(ctx, t, url, &r); err != nil {
			r.fail("%v", err)
		}
		if r.passed < j.want {
			r.fail("%d checks passed, %d ought to", r.passed, j.want)
		}
		rows = append(rows, r)
	}
	return rows
}

func (j *judgement) run(ctx context.Context, t *toolbox, url string, r *row) error {
	dir := filepath.Join(t.reports, j.name)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := append([]string{t.script("@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", url, "-o", dir}, j.args...)
	out, ran := command(ctx, dir, nil, t.node, args...)
	if err := os.WriteFile(filepath.Join(dir, "output.txt"), []byte(out), 0o644); err != nil {
		return err
	}
	if err := r.count(dir); err != nil {
		return err
	}
	// The status covers only what is scored, and the reports only what was
	// begun: the summary has to agree with what was counted.
	passed, failed, err := total(out)
	switch {
	case err != nil:
		return errors.Join(err, ran)
	case passed != r.passed || failed != r.failed:
		return fmt.Errorf("the suite says %d passed, %d failed; its reports say %d and %d", passed, failed, r.passed, r.failed)
	case ran != nil && r.failed == 0:
		return fmt.Errorf("the suite: %w", ran)
	}
	return nil
}

var totals = regexp.MustCompile(`(?m)^Total: (\d+) passed, (\d+) failed\b`)

// total reads the summary of a run.
func total(out string) (passed, failed int, err error) {
	m := totals.FindAllStringSubmatch(out, -1)
	if len(m) != 1 {
		return 0, 0, fmt.Errorf("%d summaries in what the suite printed, want one", len(m))
	}
	passed, err = strconv.Atoi(m[0][1])
	if err != nil {
		return 0, 0, err
	}
	failed, err = strconv.Atoi(m[0][2])
	return passed, failed, err
}

// count adds up the reports in dir. Only successes and failures count; what was
// warned of is shown, since a check that only warns is missing in the sum.
func (r *row) count(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var checks []struct {
			ID, Status, ErrorMessage, Description string
		}
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		scenario := scenarioOf(file)
		for _, c := range checks {
			why := c.ErrorMessage
			if why == "" {
				why = c.Description
			}
			switch c.Status {
			case "SUCCESS":
				r.passed++
			case "FAILURE":
				r.fail("%s: %s: %s", scenario, c.ID, clip(why))
			case "WARNING":
				r.problems = append(r.problems, fmt.Sprintf("warning: %s: %s: %s", scenario, c.ID, clip(why)))
			case "INFO", "SKIPPED":
			default:
				return fmt.Errorf("%s: %s has the status %q", file, c.ID, c.Status)
			}
		}
	}
	return nil
}

var reportTime = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// scenarioOf takes the name of a scenario out of its report's path.
func scenarioOf(file string) string {
	dir := filepath.Base(filepath.Dir(file))
	return strings.TrimPrefix(reportTime.ReplaceAllString(dir, ""), "server-")
}

// clip shortens what a check says to something that fits a line.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 400 {
		s = string(r[:400]) + "…"
	}
	return s
}
