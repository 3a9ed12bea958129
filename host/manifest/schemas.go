package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// maxSchema bounds one schema, in bytes of JSON.
const maxSchema = 256 << 10

// schema reads a JSON Schema, which a manifest gives as a table, as JSON text
// or as the name of a file. Of a file it notes that Open has to read it into
// the field that field returns. Whether it is a good schema, host/schema knows.
func (r *reader) schema(path []string, in any, field func(*Tool) *[]byte) (json.RawMessage, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return r.toJSON(path, in)
	case string:
		if text := strings.TrimSpace(in); strings.HasPrefix(text, "{") {
			return compactObject([]byte(text), r.doc.Pos(path...), strings.Join(path, "."))
		}
		tool := path[1]
		err := r.ref(path, in, func(s *Skill, content []byte) error {
			raw, err := compactObject(content, capability.Pos{File: s.Home.shown(in)}, "the schema")
			if err != nil {
				return err
			}
			for i := range s.Tools {
				if s.Tools[i].Name == tool {
					*field(&s.Tools[i]) = raw
				}
			}
			return nil
		})
		return nil, err
	}
	return nil, r.fail(path, "a table, JSON text, or the name of a file such as \"schema/input.json\"", "%s: want a JSON Schema", strings.Join(path, "."))
}

// settings reads the schema of what the operator may set for the skill.
func (r *reader) settings() (err error) {
	path := at("settings")
	if r.in.Settings != nil && (r.in.Runtime == "instructions" || r.in.Runtime == "container" || r.in.Runtime == "mcp") {
		return r.fail(path, "remove it", "settings: nothing hands settings to a skill of runtime %q", r.in.Runtime)
	}
	switch in := r.in.Settings.(type) {
	case nil:
		return nil
	case map[string]any:
		r.out.Settings, err = r.toJSON(path, in)
		return err
	case string:
		if text := strings.TrimSpace(in); strings.HasPrefix(text, "{") {
			r.out.Settings, err = compactObject([]byte(text), r.doc.Pos(path...), "settings")
			return err
		}
		return r.ref(path, in, func(s *Skill, content []byte) (err error) {
			s.Settings, err = compactObject(content, capability.Pos{File: s.Home.shown(in)}, "the schema")
			return err
		})
	}
	return r.fail(path, "a table, JSON text, or the name of a file such as \"schema/settings.json\"", "settings: want a JSON Schema")
}

// compactObject checks that raw is one JSON object and takes the blanks out.
func compactObject(raw []byte, pos capability.Pos, what string) (json.RawMessage, error) {
	fail := func(why string) error {
		return &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: what + ": " + why, Hint: `want a JSON Schema such as {"type": "object"}`}
	}
	if len(raw) > maxSchema {
		return nil, fail(fmt.Sprintf("%d bytes are too many: at most %d", len(raw), maxSchema))
	}
	if !utf8.Valid(raw) {
		return nil, fail("not UTF-8")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, fail("not JSON: " + err.Error())
	}
	if b.Len() == 0 || b.Bytes()[0] != '{' {
		return nil, fail("not a JSON object")
	}
	return b.Bytes(), nil
}

// toJSON writes a TOML table as JSON, with its keys sorted.
func (r *reader) toJSON(path []string, table map[string]any) (json.RawMessage, error) {
	raw, err := tomlfile.JSON(table)
	if err != nil {
		return nil, r.fail(path, "", "%s: %v", strings.Join(path, "."), err)
	}
	return compactObject(raw, r.doc.Pos(path...), strings.Join(path, "."))
}
