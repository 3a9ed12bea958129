package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// One value of each setting as a variable and in the file, good and bad.
var (
	goodTasks = map[string][2]string{"tasks.after": {"2s", `"2s"`}, "tasks.ttl": {"1h", `"1h"`}, "tasks.max_wait": {"5m", `"5m"`},
		"tasks.max_per_caller": {"2", "2"}, "tasks.max_kept": {"3", "3"}, "tasks.max_running": {"4", "4"}}
	badTasks = map[string][2]string{"tasks.after": {"1ms", `"soon"`}, "tasks.ttl": {"0", `"25h"`}, "tasks.max_wait": {"2h", `"1d"`},
		"tasks.max_per_caller": {"0", "-1"}, "tasks.max_kept": {"many", "0"}, "tasks.max_running": {"1e3", "10001"}}
)

func TestTasks(t *testing.T) {
	home := t.TempDir()
	c, err := load(Flags{}, env{"SKILL_HOME": home}.get, "")
	if want := (Tasks{5 * time.Second, 10 * time.Minute, time.Hour, 100, 1000, 256}); err != nil || c.Tasks != want {
		t.Errorf("defaults %+v, %v", c.Tasks, err)
	}
	file := write(t, filepath.Join(home, "config.toml"), "[tasks]\nafter = \"250ms\"\nttl = \"1d\"\nmax_wait = \"90s\"\nmax_per_caller = 7\nmax_kept = 70\nmax_running = 3\n")
	c, err = load(Flags{}, env{"SKILL_HOME": home, "SKILL_TASKS_MAX_KEPT": "80"}.get, "")
	if want := (Tasks{250 * time.Millisecond, 24 * time.Hour, 90 * time.Second, 7, 80, 3}); err != nil || c.Tasks != want {
		t.Errorf("%+v, %v, want %+v", c.Tasks, err, want)
	}
	if c.Origins["tasks.after"] != file+":2" || c.Origins["tasks.max_kept"] != "SKILL_TASKS_MAX_KEPT" {
		t.Errorf("origins %v", c.Origins)
	}
}

func TestTasksRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ text, want string }{
		"unknown_key":    {"[tasks]\nmax_tasks = 1", `:2: unknown key "max_tasks" in [tasks]`},
		"after_zero":     {"[tasks]\nafter = \"0\"", `:2: tasks.after = "0": want 100ms to 1h`},
		"after_long":     {"[tasks]\nafter = \"2h\"", `want 100ms to 1h`},
		"after_negative": {"[tasks]\nafter = \"-5s\"", `want a duration`},
		"ttl_short":      {"[tasks]\nttl = \"10ms\"", `want 1s to 24h`},
		"ttl_for_ever":   {"[tasks]\nttl = \"30d\"", `want 1s to 24h`},
		"wait_too_long":  {"[tasks]\nmax_wait = \"61m\"", `want 1s to 1h`}, // answers are refused by then
		"none":           {"[tasks]\nmax_running = 0", `want a number from 1 to 10000`},
		"too_many":       {"[tasks]\nmax_kept = 100001", `want a number from 1 to 100000`},
		"no_number":      {"[tasks]\nmax_per_caller = \"all\"", `:2: tasks.max_per_caller`},
	} {
		file := write(t, filepath.Join(dir, "config.toml"), tt.text)
		_, err := load(Flags{}, env{"SKILL_HOME": dir}.get, "")
		if sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), file) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
