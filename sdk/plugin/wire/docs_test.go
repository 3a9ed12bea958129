package wire

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/skillhost/skill/sdk"
)

// TestDocs: the messages that docs/plugin.md shows are messages.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/plugin.md")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, row := range regexp.MustCompile("(?m)^\\| (?:host|plugin) \\| `([0-9a-f ]+)` \\| `(.+)` \\|$").FindAllStringSubmatch(string(text), -1) {
		head, err := hex.DecodeString(strings.ReplaceAll(row[1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		m := &Message{}
		if err := proto.Unmarshal(append(head, row[2]...), m); err != nil {
			t.Errorf("%s %s: %v", row[1], row[2], err)
			continue
		}
		if m.Kind == Kind_LOG {
			if string(m.Body) != row[2] {
				t.Errorf("%s: the body is %q", row[1], m.Body)
			}
		} else if f, err := sdk.ParseFrame(m.Body); err != nil || string(f.Header) != row[2] {
			t.Errorf("%s: the body is %q, %v", row[1], m.Body, err)
		}
		kinds = append(kinds, m.Kind)
	}
	if len(kinds) != 5 {
		t.Errorf("messages %v", kinds)
	}
	for number, name := range Kind_name {
		if row := regexp.MustCompile("\\| " + string(rune('0'+number)) + " `" + name + "` \\|"); number > 0 && !row.Match(text) {
			t.Errorf("docs/plugin.md has no row for %d %s", number, name)
		}
	}
}
