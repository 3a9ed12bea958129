package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/skillhost/skill/sdk"
)

// Bounds of a message.
const (
	maxProblems = 5
	maxEcho     = 60 // runes of a stranger's text
)

// compileError says what is wrong with a schema, and where.
func compileError(err error) error {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return badSchema("reference to %s: %v", quote(strings.TrimPrefix(load.URL, home)), errRemote)
	}
	var invalid *jsonschema.SchemaValidationError
	var problem *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &problem) {
		leaf := problem
		for len(leaf.Causes) > 0 {
			leaf = leaf.Causes[0]
		}
		return badSchema("at %s: %s", shownPointer(leaf.InstanceLocation), expected(leaf, nil))
	}
	return badSchema("%s", clip(strings.ReplaceAll(err.Error(), home, ""), 200))
}

// explain turns the library's account into one message.
func (s *Schema) explain(v any, err error) error {
	var top *jsonschema.ValidationError
	if !errors.As(err, &top) {
		return &sdk.Error{Kind: sdk.Invalid, What: s.subject + ": not as the schema wants it"}
	}
	var problems []string
	more := 0
	s.leaves(top, func(e *jsonschema.ValidationError) {
		at := e.SchemaURL
		problem := fmt.Sprintf("%s, at %s", expected(e, s.nodes[at]), pointer(at)+keyword(e.ErrorKind))
		if len(e.InstanceLocation) > 0 {
			problem = shownPointer(e.InstanceLocation) + ": " + problem
		}
		switch {
		case slices.Contains(problems, problem):
		case len(problems) == maxProblems:
			more++
		default:
			problems = append(problems, problem)
		}
	})
	what := s.subject + ": " + strings.Join(problems, "; ")
	if more > 0 {
		what += fmt.Sprintf("; and %d more", more)
	}
	return &sdk.Error{Kind: sdk.Invalid, What: what}
}

// leaves calls f for what e finally complains about, in a stable order. Where
// none of several alternatives fits, that comes first.
func (s *Schema) leaves(e *jsonschema.ValidationError, f func(*jsonschema.ValidationError)) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Contains, *kind.MinContains, *kind.PropertyNames:
		f(e)
	default:
		if len(e.Causes) == 0 {
			f(e)
		}
	}
	causes := slices.Clone(e.Causes)
	slices.SortStableFunc(causes, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	for _, c := range causes {
		if c.ErrorKind != nil { // the library leaves it out where only yes or no matters
			s.leaves(c, f)
		}
	}
}

// keyword is the pointer from a subschema to the keyword that complains.
func keyword(k jsonschema.ErrorKind) string {
	switch k.(type) {
	case *kind.Not:
		return "/not"
	case *kind.PropertyNames: // the location is that of the names' schema already
		return ""
	}
	path := k.KeywordPath()
	if len(path) == 0 {
		return ""
	}
	return "/" + path[0]
}

// expected says what e wants. node is the subschema that wants it, or nil.
func expected(e *jsonschema.ValidationError, node *jsonschema.Schema) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("want %s, found %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return "missing " + quoteAll(k.Missing)
	case *kind.DependentRequired:
		return fmt.Sprintf("missing %s, needed with %s", quoteAll(k.Missing), quote(k.Prop))
	case *kind.Dependency:
		return fmt.Sprintf("missing %s, needed with %s", quoteAll(k.Missing), quote(k.Prop))
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		known := "none"
		if node != nil && len(node.Properties) > 0 {
			known = quoteAll(slices.Sorted(maps.Keys(node.Properties)))
		}
		return fmt.Sprintf("unknown %s, known: %s", quoteAll(k.Properties), known)
	case *kind.Enum:
		return fmt.Sprintf("want one of %s, found %s", describeAll(k.Want), describe(k.Got))
	case *kind.Const:
		return fmt.Sprintf("want %s, found %s", describe(k.Want), describe(k.Got))
	case *kind.Format:
		return fmt.Sprintf("want the format %s, found %s", quote(k.Want), describe(k.Got))
	case *kind.Pattern:
		return fmt.Sprintf("want a match of %s, found %s", quote(k.Want), quote(k.Got))
	case *kind.PropertyNames:
		return fmt.Sprintf("bad property name %s", quote(k.Property))
	case *kind.AnyOf:
		return "fits none of the alternatives"
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			return fmt.Sprintf("fits the alternatives %d and %d, and must fit only one", k.Subschemas[0], k.Subschemas[1])
		}
		return "fits none of the alternatives"
	case *kind.Not:
		return "is of a kind that is excluded"
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.UniqueItems:
		return fmt.Sprintf("want all items different: %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.RefCycle:
		return "the schema refers to itself without end"
	}
	return bounds(e.ErrorKind)
}

// bounds says what a keyword that counts or compares wants.
func bounds(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("want at least %d characters, found %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("want at most %d characters, found %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d items, found %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d items, found %d", k.Want, k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("%d items too many", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("want at least %d properties, found %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("want at most %d properties, found %d", k.Want, k.Got)
	case *kind.Minimum:
		return fmt.Sprintf("want at least %s, found %s", number(k.Want), number(k.Got))
	case *kind.Maximum:
		return fmt.Sprintf("want at most %s, found %s", number(k.Want), number(k.Got))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("want more than %s, found %s", number(k.Want), number(k.Got))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("want less than %s, found %s", number(k.Want), number(k.Got))
	case *kind.MultipleOf:
		return fmt.Sprintf("want a multiple of %s, found %s", number(k.Want), number(k.Got))
	case *kind.Contains:
		return "no item is as one of them must be"
	case *kind.MinContains:
		return fmt.Sprintf("want %d items of a kind, found %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("want at most %d items of a kind, found %d", k.Want, len(k.Got))
	}
	return "not as the schema wants it"
}

// pointer is the fragment of a schema's location, "" being the whole.
func pointer(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	return fragment
}

// shownPointer is a place in a value as a JSON pointer; the whole is "/".
func shownPointer(path []string) string {
	if len(path) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(clip(strings.NewReplacer("~", "~0", "/", "~1").Replace(printable(token)), maxEcho))
	}
	return clip(b.String(), 4*maxEcho)
}

// number formats a bound or a value; both are exact.
func number(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String(), maxEcho)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// describe shows a value in few words.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quote(v)
	case json.Number:
		return clip(v.String(), maxEcho)
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a value"
}

func describeAll(list []any) string {
	words := make([]string, 0, len(list))
	for _, v := range list {
		words = append(words, describe(v))
	}
	return join(words)
}

func quoteAll(list []string) string {
	words := make([]string, 0, len(list))
	for _, s := range list {
		words = append(words, quote(s))
	}
	return join(words)
}

func join(words []string) string {
	const most = 10
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	return strings.Join(words, ", ")
}

func quote(s string) string { return strconv.Quote(clip(s, maxEcho)) }

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
