package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	known := []string{"network", "filesystem", "exec", "env", "invoke", "secrets"}
	for name, want := range map[string][]string{
		"netwrok":                {"network"},
		"NETWORK":                {"network"},
		"files":                  nil,
		"file-system":            {"filesystem"},
		"exce":                   {"exec"},
		"secret":                 {"secrets"},
		"qqqq":                   nil,
		"":                       nil,
		strings.Repeat("x", 200): nil,
	} {
		if got := Names(name, known, 2); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", name, got, want)
		}
	}
	if got := Names("env", known, 0); got != nil {
		t.Errorf("n = 0: %q", got)
	}
}
