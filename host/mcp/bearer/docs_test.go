package bearer

import (
	"os"
	"strings"
	"testing"
)

// The page shows challenges and tells statuses as they are.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/http-auth.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	d := open(t, Options{Issuers: []string{"https://id.example.com/realms/tools"}, Required: []string{"skill:use"}})
	if no := d.absent(); !strings.Contains(page, "\nWWW-Authenticate: "+no.Challenge+"\n") {
		t.Errorf("the page lacks the challenge %s", no.Challenge)
	}
	caller, err := d.issuers["https://id.example.com/realms/tools"].caller("ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, say := range []string{"`" + caller + "`", "`" + Anonymous + "`", "| 400 | `invalid_request`", "| 401 | `invalid_token`", "| 403 | `insufficient_scope`", "| 503 |"} {
		if !strings.Contains(page, say) {
			t.Errorf("the page lacks %s", say)
		}
	}
}
