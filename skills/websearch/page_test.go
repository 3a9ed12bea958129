package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/tomlfile"
)

// The page about the tool has the engines, the types and the states that there
// are, and its examples are settings that the tool takes.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/websearch.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, k := range builtin {
		host := strings.Replace(strings.TrimPrefix(k.base, "https://"), "{language}", "LANGUAGE", 1)
		if row := fmt.Sprintf("| `%s` | %s | %s | %v |", k.name, host, strings.Join(k.categories, ", "), k.weight); !strings.Contains(text, row) {
			t.Errorf("docs/websearch.md lacks %s", row)
		}
	}
	for _, k := range addable {
		if k.key != "" && (!strings.Contains(text, "| `"+k.name+"` | `"+k.key+"`") || !strings.Contains(text, " | "+strings.TrimPrefix(k.base, "https://")+" |")) {
			t.Errorf("docs/websearch.md lacks %s with %s and %s", k.name, k.key, k.base)
		}
	}
	for _, s := range []state{stateOK, stateEmpty, stateCaptcha, stateBlocked, stateRateLimited, stateTimeout, stateLate, stateMalformed, stateTooLarge, stateDenied, stateNoKey, stateSuspended, stateSkipped, stateError} {
		if !strings.Contains(text, "`"+string(s)+"`") {
			t.Errorf("docs/websearch.md lacks the status %s", s)
		}
	}
	examples := 0
	for _, block := range strings.Split(text, "```toml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "[settings.") {
			continue
		}
		examples++
		var doc struct {
			Settings map[string]map[string]any `toml:"settings"`
		}
		if _, err := tomlfile.Decode("docs/websearch.md", []byte(block), &doc); err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		raw, err := tomlfile.JSON(doc.Settings["websearch"])
		if err == nil {
			err = settingsSchema(t).Check(raw)
		}
		if err == nil {
			w := newWorld(t)
			w.host.Settings = raw
			_, err = w.host.Call(t.Context(), "WebSearch", `{"query":"x"}`)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, block)
		}
	}
	if examples < 4 {
		t.Errorf("%d examples", examples)
	}
}
