//go:build !wasip1

package guesttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Describe returns the tools of this program as its module describes them to
// the host.
func Describe() ([]sdk.Tool, error) {
	r, err := guest.Run(context.Background(), &Host{}, sdk.Input{Describe: true})
	if err != nil {
		return nil, err
	}
	var d sdk.Description
	return d.Tools, json.Unmarshal(r.Structured, &d)
}

// Disagreements says in what the manifest's tools differ from this program's:
// a test of a skill expects none. A manifest may have examples besides.
func Disagreements(manifest []sdk.Tool) ([]string, error) {
	tools, err := Describe()
	if err != nil {
		return nil, err
	}
	program := map[string]sdk.Tool{}
	for _, t := range tools {
		program[t.Name] = t
	}
	var all []string
	for _, m := range manifest {
		t, ok := program[m.Name]
		delete(program, m.Name)
		if !ok {
			all = append(all, fmt.Sprintf("tool %q is not in the program", m.Name))
			continue
		}
		m.Examples, m.Icons, m.Meta = t.Examples, t.Icons, t.Meta
		for _, part := range []struct {
			name       string
			have, want any
		}{{"input", m.Input, t.Input}, {"output", m.Output, t.Output}, {"description, title or annotations", without(m), without(t)}} {
			have, want := decoded(part.have), decoded(part.want)
			if !reflect.DeepEqual(have, want) {
				all = append(all, fmt.Sprintf("the %s of tool %q in the manifest differs; the program has:\n%s", part.name, m.Name, table(t)))
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(program)) {
		all = append(all, fmt.Sprintf("tool %q is not in the manifest; the program has:\n%s", name, table(program[name])))
	}
	return all, nil
}

func without(t sdk.Tool) sdk.Tool { t.Input, t.Output = nil, nil; return t }

// decoded is v as JSON decodes it, so that the order of members does not count.
func decoded(v any) (out any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return err
	}
	return out
}

// table renders t as a manifest has it.
func table(t sdk.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[tools.%s]\n", t.Name)
	for _, line := range []struct{ key, text string }{{"title", t.Title}, {"description", t.Description}} {
		if line.text != "" {
			fmt.Fprintf(&b, "%s = %q\n", line.key, line.text)
		}
	}
	if a := t.Annotations; a != nil {
		fmt.Fprintf(&b, "annotations = { read_only = %t, destructive = %t, idempotent = %t, open_world = %t }\n", *a.ReadOnly, *a.Destructive, *a.Idempotent, *a.OpenWorld)
	}
	for _, s := range []struct {
		key    string
		schema json.RawMessage
	}{{"input", t.Input}, {"output", t.Output}} {
		if s.schema != nil {
			fmt.Fprintf(&b, "%s = '''\n%s\n'''\n", s.key, laidOut(s.schema, ""))
		}
	}
	return b.String()
}

// laidOut breaks a JSON object into lines where it is too long for one.
func laidOut(raw json.RawMessage, indent string) string {
	if len(indent)+len(raw) <= 120 || raw[0] != '{' {
		return string(raw)
	}
	var b strings.Builder
	b.WriteString("{")
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token() // the brace
	for sep := "\n"; d.More(); sep = ",\n" {
		name, err := d.Token()
		var member json.RawMessage
		if err != nil || d.Decode(&member) != nil {
			return string(raw)
		}
		fmt.Fprintf(&b, "%s%s  %q: %s", sep, indent, name, laidOut(member, indent+"  "))
	}
	return b.String() + "\n" + indent + "}"
}
