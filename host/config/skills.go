package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// SkillSettings are what the operator set for one skill, in [settings.NAME].
// What the keys mean, and whether they are right, the skill's manifest says.
type SkillSettings struct {
	Values json.RawMessage // a JSON object
	From   string          // "file:line" of the tables, with commas between them
}

// maxSkillSettings bounds the settings of one skill, in bytes of JSON: they are
// handed to it with every call, to some as a variable.
const maxSkillSettings = 64 << 10

// skillSettings adds the tables of a file to those of the files before it. A
// key outranks, with all that is in it, the same key of an earlier file.
func (c *Config) skillSettings(doc *tomlfile.Doc, tables map[string]map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		pos := doc.Pos("settings", name).String()
		fail := func(format string, args ...any) error {
			return &sdk.Error{Kind: sdk.Invalid, Op: pos, What: fmt.Sprintf("settings.%s: ", name) + fmt.Sprintf(format, args...)}
		}
		raw, err := tomlfile.JSON(tables[name])
		if err != nil {
			return fail("%v", err)
		}
		before := c.Settings[name]
		if before.Values != nil {
			if raw, err = over(raw, before.Values); err != nil {
				return fail("%v", err)
			}
		}
		if len(raw) > maxSkillSettings {
			return fail("%d bytes are too many: at most %d", len(raw), maxSkillSettings)
		}
		if c.Settings == nil {
			c.Settings = map[string]SkillSettings{}
		}
		c.Settings[name] = SkillSettings{Values: raw, From: strings.TrimPrefix(before.From+", "+pos, ", ")}
	}
	return nil
}

// over returns the members of two JSON objects; those of top count.
func over(top, below json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{below, top} {
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}
