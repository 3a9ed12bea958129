package sandbox

import (
	"embed"
	"testing"

	"github.com/skillhost/skill/host/sandbox/view"
)

//go:embed testdata/*.sb
var golden embed.FS // so that the tests can run anywhere

func TestSeatbelt(t *testing.T) {
	r, w, x := view.Read, view.Write, view.Exec
	for name, tt := range map[string]struct {
		cage Cage
		port int
	}{
		"nothing": {cage: Cage{View: view.View{Rulesets: []view.Ruleset{{Name: "manifest", Handles: r | w | x}}}}},
		"layers": {cage: Cage{Serves: "/private/tmp/s", View: view.View{Rulesets: []view.Ruleset{
			{Name: "manifest", Handles: r | w | x, Rules: []view.Rule{{Path: "/usr", Rights: r | x}, {Path: "/Users/u/project", Rights: r | w}}},
			{Name: "operator", Handles: w, Rules: []view.Rule{{Path: "/Users/u/project/out", Rights: w}}}}}}},
		"proxy":  {cage: Cage{Network: Proxy, View: view.View{Rulesets: []view.Ruleset{{Name: "m", Handles: r, Rules: []view.Rule{{Path: "/", Rights: r}}}}}}, port: 4711},
		"quotes": {cage: Cage{View: view.View{Rulesets: []view.Ruleset{{Name: "m", Handles: r | w | x, Rules: []view.Rule{{Path: `/a") (allow default) \"`, Rights: r}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := golden.ReadFile("testdata/seatbelt_" + name + ".sb")
			if err != nil {
				t.Fatal(err)
			}
			if got := seatbelt(tt.cage, "/opt/p", tt.port); got != string(want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
