package manifest

import (
	"strings"
	"testing"
)

// Only a skill of the binary may leave to the operator which hosts its secret
// goes to.
func TestSecretEverywhere(t *testing.T) {
	text := []byte(head + "[capabilities]\nnetwork = [\"*\", \"10.0.0.0/8\"]\n[[capabilities.secrets]]\nname = \"A\"\nheader = \"X\"\nhosts = [\"*\", \"10.0.0.0/8\"]\n[tools.a]\n")
	if _, err := Read(FileName, text); err == nil || !strings.Contains(err.Error(), "a secret goes to named hosts") {
		t.Errorf("of anybody's: %v", err)
	}
	if s, err := ReadBuiltin(FileName, text); err != nil || len(s.Secrets) != 1 {
		t.Errorf("of the binary's: %v", err)
	}
	for _, bad := range []string{"http://*", "http://a.example"} {
		if _, err := ReadBuiltin(FileName, []byte(strings.Replace(string(text), "hosts = [\"*\"", "hosts = [\""+bad+"\"", 1))); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := ReadBuiltin(FileName, []byte(strings.Replace(string(text), "network = [\"*\"", "network = [\"a.example\"", 1))); err == nil {
		t.Error("a secret goes where the skill may not")
	}
}
