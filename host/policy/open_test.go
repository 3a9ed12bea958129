package policy

import (
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		hosts      []string
		want       string
	}{
		{"new", "", []string{"docs.example.com"}, "[skills.web.capabilities]\nnetwork = [\"docs.example.com\"]\n"},
		{"one more", "[skills.web.capabilities]\nenv = [\"TZ\"] # mine\nnetwork = [\"a.example\"] # theirs\n", []string{"b.example", "a.example"},
			"[skills.web.capabilities]\nenv = [\"TZ\"] # mine\nnetwork = [\"a.example\", \"b.example\"] # theirs\n"},
		{"everything", "# head\n", []string{"*", "http://*"},
			"# head\n\n[skills.web]\ndangerous = [\"network:*\"]\n\n[skills.web.capabilities]\nnetwork = [\"*\", \"http://*\"]\n"},
		{"everything is said to be fine", "[dangerous]\nallow = [\"network:*\"]\n", []string{"*"},
			"[dangerous]\nallow = [\"network:*\"]\n\n[skills.web.capabilities]\nnetwork = [\"*\"]\n"},
		{"another danger", "[skills.web]\ndangerous = [\"exec:sh\"]\n", []string{"*"},
			"[skills.web]\ndangerous = [\"exec:sh\", \"network:*\"]\n\n[skills.web.capabilities]\nnetwork = [\"*\"]\n"},
		{"none", "[skills.web.capabilities]\nnetwork = [\"a.example\"]\n", nil, "[skills.web.capabilities]\nnetwork = []\n"},
		{"twice", "[skills.web.capabilities]\nnetwork = [\"a.example\"]\n", []string{"a.example"}, "[skills.web.capabilities]\nnetwork = [\"a.example\"]\n"},
		{"another skill", "[skills.web-2.capabilities]\nnetwork = [\"a.example\"]\n", []string{"b.example"},
			"[skills.web-2.capabilities]\nnetwork = [\"a.example\"]\n\n[skills.web.capabilities]\nnetwork = [\"b.example\"]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Open([]byte(tt.text), "web", tt.hosts...)
			if err != nil || string(got) != tt.want {
				t.Errorf("%s\n%v, want\n%s", got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{"", "http://exa mple", "https://a.example/path", "**", "169.254.169.254@x"} {
		if got, err := Open(nil, "web", bad); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%q: %s, %v", bad, got, err)
		}
	}
	if _, err := Open([]byte("[skills]\nweb = {capabilities = {network = []}}\n"), "web", "a.example"); err == nil {
		t.Error("an inline table is edited")
	}
}
