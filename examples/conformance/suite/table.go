package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The marks between which a file has the table.
const (
	openMark  = "<!-- conformance -->"
	closeMark = "<!-- /conformance -->"
)

// table is the result as Markdown.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| judge | passed | failed |\n|---|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", r.about, r.passed, r.failed)
	}
	return b.String()
}

var errOther = errors.New("its table of conformance is another one (make conformance writes it)")

// keep wants the table in file, or writes it there.
func keep(file, table string, write bool) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	next, err := replace(old, table)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	case bytes.Equal(old, next):
		return nil
	case !write:
		return fmt.Errorf("%s: %w", file, errOther)
	}
	return os.WriteFile(file, next, 0o644)
}

// replace puts the table between the marks of text.
func replace(text []byte, table string) ([]byte, error) {
	if n, m := bytes.Count(text, []byte(openMark)), bytes.Count(text, []byte(closeMark)); n != 1 || m != 1 {
		return nil, fmt.Errorf("%d marks %s and %d marks %s, want one of each", n, openMark, m, closeMark)
	}
	before, rest, _ := bytes.Cut(text, []byte(openMark))
	_, after, ok := bytes.Cut(rest, []byte(closeMark))
	if !ok {
		return nil, fmt.Errorf("%s comes before %s", closeMark, openMark)
	}
	return fmt.Appendf(nil, "%s%s\n%s%s%s", before, openMark, table, closeMark, after), nil
}
