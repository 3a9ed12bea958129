package bearer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxRights bounds the rights of one caller.
const maxRights = 256

// join returns rights as an Identity has them.
func join(rights []string) (string, error) {
	if len(rights) > maxRights {
		return "", fmt.Errorf("more than %d rights", maxRights)
	}
	for _, r := range rights {
		if !isRight(r) {
			return "", fmt.Errorf("bad right %q: want printable letters without blanks, quotes and backslashes", r)
		}
	}
	sorted := slices.Clone(rights)
	slices.Sort(sorted)
	return strings.Join(slices.Compact(sorted), " "), nil
}

// isRight reports whether s is a scope-token of RFC 6749.
func isRight(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// includes reports whether rights has all of those that are required.
func includes(rights string, required []string) bool {
	if len(required) == 0 {
		return true
	}
	have := strings.Split(rights, " ")
	return !slices.ContainsFunc(required, func(r string) bool { return !slices.Contains(have, r) })
}

// scopes are how a token writes its rights: one string with blanks between
// them, or a list.
type scopes struct {
	said bool
	list []string
}

func (s *scopes) UnmarshalJSON(raw []byte) error {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		s.list = strings.FieldsFunc(v, func(r rune) bool { return r == ' ' })
	case []any:
		for _, e := range v {
			one, ok := e.(string)
			if !ok {
				return errors.New("want strings")
			}
			s.list = append(s.list, one)
		}
	default:
		return errors.New("want a string or a list of strings")
	}
	s.said = true
	return nil
}
