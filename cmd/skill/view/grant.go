package view

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Layers writes the stack of a grant.
func Layers(w io.Writer, layers []capability.Layer) {
	for _, l := range layers {
		at := l.Pos.String()
		if l.Why != "" {
			at = "says " + capability.Quote(l.Why)
		}
		row(w, "  %-9s %s", l.Name, at)
		for _, kind := range capability.Kinds {
			var entries []string
			for _, c := range l.Allow {
				if c.Kind == kind {
					entries = append(entries, c.Entry())
				}
			}
			switch speaks := speaksOf(l, kind); {
			case entries != nil:
				row(w, "            %-11s %s", kind, strings.Join(entries, ", "))
			case speaks && !l.Closed:
				row(w, "            %-11s nothing", kind)
			}
		}
		if l.Closed {
			row(w, "            and nothing else")
		} else if len(l.Allow)+len(l.Speaks)+len(l.Deny) == 0 {
			row(w, "            leaves it to the others")
		}
		for _, c := range l.Deny {
			row(w, "            never       %s %s", c.Kind, c.Entry())
		}
	}
}

func speaksOf(l capability.Layer, kind capability.Kind) bool {
	return l.Closed || slices.ContainsFunc(l.Speaks, func(t capability.Topic) bool { return t.Kind == kind })
}

// A Try is one access that a grant was asked about, and the refusal.
type Try struct {
	Access string
	Err    error
}

// Tries writes what a grant says to accesses.
func Tries(w io.Writer, tries []Try) {
	for _, t := range tries {
		if t.Err == nil {
			row(w, "%s: allowed", t.Access)
		} else {
			row(w, "%s: %v", t.Access, t.Err)
		}
	}
}

type layerDoc struct {
	Name   string              `json:"name"`
	Why    string              `json:"why,omitempty"`
	File   string              `json:"file,omitempty"`
	Line   int                 `json:"line,omitempty"`
	Closed bool                `json:"closed,omitempty"`
	Allow  map[string][]string `json:"allow"`
	Deny   map[string][]string `json:"deny,omitempty"`
}

type tryDoc struct {
	Access  string          `json:"access"`
	Allowed bool            `json:"allowed"`
	Why     json.RawMessage `json:"why,omitempty"`
}

// GrantJSON is the JSON form of a call's layers, the verdict on it, and tries.
func GrantJSON(tool string, layers []capability.Layer, verdict error, tries []Try) any {
	out := struct {
		Tool    string     `json:"tool"`
		Allowed bool       `json:"allowed"`
		Why     string     `json:"why,omitempty"`
		Layers  []layerDoc `json:"layers"`
		Tries   []tryDoc   `json:"tries,omitempty"`
	}{Tool: tool, Allowed: verdict == nil, Layers: []layerDoc{}}
	if verdict != nil {
		out.Why = verdict.Error()
	}
	for _, l := range layers {
		out.Layers = append(out.Layers, layerJSON(l))
	}
	for _, t := range tries {
		row := tryDoc{Access: t.Access, Allowed: t.Err == nil}
		var e *sdk.Error
		if errors.As(t.Err, &e) {
			row.Why, _ = json.Marshal(e) // strings only: cannot fail
		}
		out.Tries = append(out.Tries, row)
	}
	return out
}

func layerJSON(l capability.Layer) layerDoc {
	row := layerDoc{l.Name, l.Why, l.Pos.File, l.Pos.Line, l.Closed, map[string][]string{}, nil}
	for _, k := range capability.Kinds {
		if speaksOf(l, k) && !l.Closed {
			row.Allow[string(k)] = []string{}
		}
	}
	for _, c := range l.Allow {
		row.Allow[string(c.Kind)] = append(row.Allow[string(c.Kind)], c.Entry())
	}
	for _, c := range l.Deny {
		if row.Deny == nil {
			row.Deny = map[string][]string{}
		}
		row.Deny[string(c.Kind)] = append(row.Deny[string(c.Kind)], c.Entry())
	}
	return row
}
