package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// The user's key replaces the system's, with all that is in it; other keys and
// other skills stay.
func TestSkillSettings(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	system := write(t, filepath.Join(dir, "etc", "config.toml"), "[settings.search]\nregion = \"eu\"\ndeep = { a = 1, b = 2 }\n[settings.other]\nlist = [1, 2.5, \"x\", true]\n")
	user := write(t, filepath.Join(home, "config.toml"), "# mine\n[settings.search]\ndeep.b = 3\n[[settings.search.more]]\nname = \"n\"\n")
	c, err := load(Flags{}, env{"SKILL_HOME": home}.get, system)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Settings) != 2 {
		t.Errorf("%v", c.Settings)
	}
	if s := c.Settings["search"]; string(s.Values) != `{"deep":{"b":3},"more":[{"name":"n"}],"region":"eu"}` || s.From != system+":1, "+user+":2" {
		t.Errorf("%s from %s", s.Values, s.From)
	}
	if s := c.Settings["other"]; string(s.Values) != `{"list":[1,2.5,"x",true]}` || s.From != system+":4" {
		t.Errorf("%s from %s", s.Values, s.From)
	}
}

func TestSkillSettingsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"no_table":  {"[settings]\na = 1", "settings.a: want a table"},
		"a_date":    {"[settings.a]\nb = 2026-01-02", "settings.a: a date or time has no form in JSON"},
		"infinite":  {"[settings.a]\nb = [[inf]]", "settings.a: +Inf has no form in JSON"},
		"too_large": {"[settings.a]\nb = \"" + strings.Repeat("x", maxSkillSettings) + "\"", "bytes are too many"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Origins: map[string]string{}}
			err := c.file("config.toml", []byte(tt.text))
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "config.toml:") {
				t.Errorf("%v", err)
			}
		})
	}
}
