// Package nearest finds the names that a mistyped name may have been meant to be.
// It knows nothing of what the names stand for.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear bounds the names that Names compares, in bytes: nobody mistypes a
// name longer than this, and the comparison takes time quadratic in it.
const maxNear = 96

// Names returns up to n of the known names that name may have been meant to
// be: those within an edit distance of a third of its length (at least 2),
// nearest first. Letter case and swapped neighbours count little.
func Names(name string, known []string, n int) []string {
	if len(name) > maxNear || n <= 0 {
		return nil
	}
	type near struct {
		name string
		dist int
	}
	var found []near
	low := strings.ToLower(name)
	limit := max(2, len(low)/3)
	for _, k := range known {
		if len(k) > maxNear || len(k)-len(low) > limit || len(low)-len(k) > limit {
			continue
		}
		d := distance(low, strings.ToLower(k))
		if d <= limit && d < max(len(low), len(k)) {
			found = append(found, near{k, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, f := range found[:min(n, len(found))] {
		names = append(names, f.name)
	}
	return slices.Compact(names)
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment), in bytes.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
