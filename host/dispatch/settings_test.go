package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Each skill is given what the operator set for it, and no other.
func TestSettings(t *testing.T) {
	h := newHouse(t)
	h.Settings = func(s *manifest.Skill) (json.RawMessage, error) {
		if s.Name == "one" {
			return json.RawMessage(`{"of":"one"}`), nil
		}
		return nil, nil
	}
	got := map[string]string{}
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		got[j.Input.Tool] = string(j.Input.Settings)
		return sdk.Text("ok"), nil
	}
	for _, tool := range []string{"one-t", "two-t"} {
		if _, err := h.do(t, tool, `{}`); err != nil {
			t.Fatal(err)
		}
	}
	if got["one-t"] != `{"of":"one"}` || got["two-t"] != "" || len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// Settings that are not what a skill takes refuse the calls of that skill, on
// record and before the guest, and of no other.
func TestSettingsRefused(t *testing.T) {
	h := newHouse(t)
	h.Settings = func(s *manifest.Skill) (json.RawMessage, error) {
		if s.Name == "one" {
			return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "config.toml:3", What: "[settings.one] is not what it takes"}
		}
		return nil, nil
	}
	ran := 0
	h.guest.run = func(context.Context, executor.Job) (sdk.Result, error) {
		ran++
		return sdk.Text("ok"), nil
	}
	_, err := h.do(t, "one-t", `{}`)
	if sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "config.toml:3") || ran != 0 {
		t.Errorf("%v, and %d runs", err, ran)
	}
	if _, err := h.Plan(sdk.Call{Tool: "one-t", Scope: h.scope}); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("explained as %v", err)
	}
	if types := h.log.types(); types == "" || strings.Contains(types, "start") {
		t.Errorf("records %q", types)
	}
	if _, err := h.do(t, "two-t", `{}`); err != nil || ran != 1 {
		t.Errorf("%v, and %d runs", err, ran)
	}
}

// Who may not call a tool learns nothing of its skill's settings.
func TestSettingsUnseen(t *testing.T) {
	h := newHouse(t)
	h.Settings = func(*manifest.Skill) (json.RawMessage, error) {
		t.Error("settings were looked at")
		return nil, &sdk.Error{Kind: sdk.Unavailable, What: "private"}
	}
	h.setPolicy(t, "[skills.one]\nallow = false\n")
	if _, err := h.do(t, "one-t", `{}`); err == nil || strings.Contains(err.Error(), "private") {
		t.Errorf("%v", err)
	}
}
