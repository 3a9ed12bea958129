package host

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Every spelling of a tool, and every address of it, means the name under which
// it is listed.
func TestMeans(t *testing.T) {
	w := newWorld(t)
	w.write(t, "skills/maps/m.wasm", "\x00asm\x01\x00\x00\x00")
	w.write(t, "skills/maps/skill.toml", `name = "maps"
version = "1.0.0"
description = "Maps."
runtime = "wasm"
source = "m.wasm"
[tools.route]
description = "Finds a way."
input = { type = "object", properties = { region = { type = "string", x-mcp-header = "Region" } } }
[tools.draw]
description = "Draws one."
input = { type = "object" }
`)
	h := w.open(t)
	s, err := h.Catalog.Skill("maps")
	if err != nil {
		t.Fatal(err, h.Problems())
	}
	w.write(t, "policy.toml", fmt.Sprintf("[skills.maps]\nallow = true\ndigest = %q\n", s.Home.Digest))
	eventually(t, "the policy is reloaded", func() bool { return h.Dispatcher.VisibleSkill(s, h.Scope()) })
	const args = `{"region":"eu"}`
	for _, c := range []struct {
		tool, args, want, given string
		direct                  bool
	}{
		{"maps.route", args, "maps.route", args, true},
		{"maps_route", args, "maps.route", args, true},
		{"maps__route", args, "maps.route", args, true},
		{"maps/route", args, "maps.route", args, true},
		{"skill-engine/maps.route", args, "maps.route", args, true},
		{"InvokeSkill", `{"skill_name":"maps","tool":"route","parameters":{"region":"eu"}}`, "maps.route", args, false},
		{"InvokeSkill", `{"skill_name":"maps.route","arguments":"{\"region\":\"eu\"}"}`, "maps.route", args, false},
		{"execute", `{"skill_name":"maps","tool_name":"route","parameters":{"region":"eu"}}`, "maps.route", args, false},
		{"skill-engine/execute", `{"skill_name":"maps","tool":"route"}`, "maps.route", `{}`, false},
		{"maps.fly", args, "maps.fly", args, true},
		{"InvokeSkill", `{"skill_name":"none"}`, "InvokeSkill", `{"skill_name":"none"}`, true},
	} {
		listed, given, direct := h.Means(h.Scope(), c.tool, json.RawMessage(c.args))
		if listed != c.want || string(given) != c.given || direct != c.direct {
			t.Errorf("%s %s: %s %s %v", c.tool, c.args, listed, given, direct)
		}
	}
}
