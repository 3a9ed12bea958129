package host

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// A remote caller is not told of what it may not call, whatever it asks for and
// however it spells it; what the rules give it, it has.
func TestRemoteCallersLearnNothing(t *testing.T) {
	w := newWorld(t)
	w.write(t, "policy.toml", "[callers.\"token:ci\".tools]\nallow = [\"ListBgTasks\"]\n")
	h := w.open(t)
	scope := h.Scope()
	scope.Caller = "token:ci"
	page, err := h.List(t.Context(), scope, conversation.Tools, "", 100)
	if err != nil || len(page.Items) != 1 || !strings.Contains(string(page.Items[0]), `"ListBgTasks"`) {
		t.Errorf("listed %s, %v", page.Items, err)
	}
	for name, c := range map[string]sdk.Call{
		"tool":       {Tool: "Bash", Args: json.RawMessage(`{"command":"id"}`)},
		"nonsense":   {Tool: "Bach"},
		"address":    {Tool: "InvokeSkill", Args: json.RawMessage(`{"skill_name":"review"}`)},
		"spelling":   {Tool: "skill-engine/execute", Args: json.RawMessage(`{"skill_name":"review"}`)},
		"resource":   {Kind: sdk.CallResource, Tool: "skill://review/SKILL.md"},
		"prompt":     {Kind: sdk.CallPrompt, Tool: "review"},
		"completion": {Kind: sdk.CallCompletion, Tool: "review", Args: json.RawMessage(`{"prompt":"review","argument":{"name":"arguments","value":""}}`)},
	} {
		c.Scope = scope
		_, err := h.Call(t.Context(), c, nil)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if sdk.KindOf(err) != sdk.NotFound || strings.Contains(text, "mean") || strings.Contains(text, "policy") || strings.Contains(text, "rule") {
			t.Errorf("%s: %v", name, err)
		}
		c.Scope = h.Scope()
		if _, err := h.Call(t.Context(), c, nil); name == "nonsense" && (err == nil || !strings.Contains(err.Error(), "Bash")) {
			t.Errorf("%s: the local user is not told what is near: %v", name, err)
		}
	}
}
