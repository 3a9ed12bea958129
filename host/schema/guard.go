package schema

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema's parts, and of the work of one check. The library
// behind this package has none of its own: it takes time quadratic in the
// number of subschemas to compile, and tries every path through "allOf",
// "anyOf" and the like when it checks.
const (
	maxObjects = 4096
	maxRefs    = 512
	maxPattern = 4096    // instructions of one compiled pattern
	allPattern = 32768   // of all together
	maxWork    = 5e6     // visits of a subschema by one check
	maxMatch   = 200e6   // instructions times bytes of one pattern match
	manyWork   = 1 << 40 // stands for "no bound"
)

// inspect refuses a schema that is too large to be compiled.
func inspect(doc any) error {
	objects, refs := count(doc)
	switch {
	case objects > maxObjects:
		return badSchema("%d objects are too many: at most %d", objects, maxObjects)
	case refs > maxRefs:
		return badSchema("%d references are too many: at most %d", refs, maxRefs)
	}
	return nil
}

func count(v any) (objects, refs int) {
	add := func(v any) {
		o, r := count(v)
		objects, refs = objects+o, refs+r
	}
	switch v := v.(type) {
	case map[string]any:
		objects++
		if _, ok := v["$ref"]; ok {
			refs++
		}
		for _, e := range v {
			add(e)
		}
	case []any:
		for _, e := range v {
			add(e)
		}
	}
	return objects, refs
}

// patterns compiles the regular expressions of one schema.
type patterns struct{ total int }

// A pattern is a regular expression that knows how large it is.
type pattern struct {
	*regexp.Regexp
	size int
}

// errWork is what a pattern panics with: the library has no way for a match
// to fail, and calling it no match would pass under "not".
var errWork = errors.New("too much work")

// MatchString reports whether s matches.
func (p *pattern) MatchString(s string) bool {
	if p.size*len(s) > maxMatch {
		panic(errWork)
	}
	return p.Regexp.MatchString(s)
}

func (p *patterns) compile(expr string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := sizeOf(tree)
	if p.total += size; size > maxPattern || p.total > allPattern {
		return nil, fmt.Errorf("the pattern is too large, or all of the schema's together are")
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &pattern{re, size}, nil
}

// sizeOf estimates how many instructions tree compiles to.
func sizeOf(tree *syntax.Regexp) int {
	n := 1 + len(tree.Rune)
	for _, sub := range tree.Sub {
		n += sizeOf(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return min(n, maxPattern+1)
}

// here returns the subschemas of s that are applied to the same value as s.
func here(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	for _, one := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			all = append(all, one)
		}
	}
	all = slices.Concat(all, s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range s.DependentSchemas {
		all = append(all, one)
	}
	for _, dep := range s.Dependencies {
		if one, ok := dep.(*jsonschema.Schema); ok {
			all = append(all, one)
		}
	}
	return all
}

// below returns the subschemas of s that are applied to parts of the value.
func below(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	for _, one := range s.Properties {
		all = append(all, one)
	}
	for _, one := range s.PatternProperties {
		all = append(all, one)
	}
	for _, maybe := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch sub := maybe.(type) {
		case *jsonschema.Schema:
			all = append(all, sub)
		case []*jsonschema.Schema:
			all = append(all, sub...)
		}
	}
	for _, one := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems} {
		if one != nil {
			all = append(all, one)
		}
	}
	return append(all, s.PrefixItems...)
}

// survey walks the compiled schema: it notes where everything is, refuses
// loops, and bounds the work of a check.
func (s *Schema) survey() error {
	s.nodes = map[string]*jsonschema.Schema{}
	if err := s.collect(s.compiled); err != nil {
		return err
	}
	done := map[*jsonschema.Schema]bool{}
	for _, n := range s.nodes {
		if loop := findLoop(n, done); loop != nil {
			return badSchema("at %s: a reference that leads back to itself", pointer(loop.Location))
		}
	}
	s.worst = cost(s.compiled, map[*jsonschema.Schema]int{})
	return nil
}

func (s *Schema) collect(n *jsonschema.Schema) error {
	if s.nodes[n.Location] != nil {
		return nil
	}
	s.nodes[n.Location] = n
	if n.DynamicRef != nil || n.RecursiveRef != nil {
		return badSchema("at %s: \"$dynamicRef\" and \"$recursiveRef\" are not supported", pointer(n.Location))
	}
	for _, sub := range append(here(n), below(n)...) {
		if err := s.collect(sub); err != nil {
			return err
		}
	}
	return nil
}

// findLoop returns a subschema that is applied to the value that it is being
// applied to already. done holds false for those on the way, and true for
// those that lead into no loop.
func findLoop(n *jsonschema.Schema, done map[*jsonschema.Schema]bool) *jsonschema.Schema {
	if ok, seen := done[n]; seen {
		if ok {
			return nil
		}
		return n
	}
	done[n] = false
	for _, sub := range here(n) {
		if loop := findLoop(sub, done); loop != nil {
			return loop
		}
	}
	done[n] = true
	return nil
}

// cost bounds the visits that n takes if every part is visited once. memo
// holds 0 for those on the way: recursive, so that the value decides.
func cost(n *jsonschema.Schema, memo map[*jsonschema.Schema]int) int {
	if c, ok := memo[n]; ok {
		if c == 0 {
			return manyWork
		}
		return c
	}
	memo[n] = 0
	c := 1
	for _, sub := range append(here(n), below(n)...) {
		c = min(c+cost(sub, memo), manyWork)
	}
	memo[n] = c
	return c
}

// work counts the visits that a check of one value would take. Equal visits
// are counted once and multiplied, so that counting takes no longer than the
// number of pairs of subschema and container.
type work struct {
	memo   map[workKey]int
	visits int
}

type workKey struct {
	schema *jsonschema.Schema
	value  uintptr // of a container; 0 for everything without parts
}

func (w *work) of(s *jsonschema.Schema, v any) int {
	key := workKey{s, identity(v)}
	if n, ok := w.memo[key]; ok {
		return n
	}
	if w.visits++; w.visits > maxWork {
		return manyWork
	}
	total := 1
	add := func(n int) { total = min(total+n, manyWork) }
	for _, sub := range here(s) {
		add(w.of(sub, v))
	}
	if key.value != 0 {
		w.parts(s, v, add)
	}
	w.memo[key] = total
	return total
}

// parts adds the work on the parts of a container.
func (w *work) parts(s *jsonschema.Schema, v any, add func(int)) {
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			if sub := s.Properties[name]; sub != nil {
				add(w.of(sub, part))
			}
			for re, sub := range s.PatternProperties {
				if re.MatchString(name) {
					add(w.of(sub, part))
				}
			}
			for _, maybe := range []any{s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties} {
				if sub, ok := maybe.(*jsonschema.Schema); ok && sub != nil {
					add(w.of(sub, part))
				}
			}
		}
	case []any:
		for i, part := range v {
			if i < len(s.PrefixItems) {
				add(w.of(s.PrefixItems[i], part))
			}
			if list, ok := s.Items.([]*jsonschema.Schema); ok && i < len(list) {
				add(w.of(list[i], part))
			}
			for _, maybe := range []any{s.Items, s.AdditionalItems, s.Items2020, s.Contains, s.UnevaluatedItems} {
				if sub, ok := maybe.(*jsonschema.Schema); ok && sub != nil {
					add(w.of(sub, part))
				}
			}
		}
	}
}

// identity tells containers with parts apart.
func identity(v any) uintptr {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	case []any:
		if len(v) > 0 {
			return reflect.ValueOf(v).Pointer()
		}
	}
	return 0
}
