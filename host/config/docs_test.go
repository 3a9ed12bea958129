package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/host/tomlfile"
)

// The page has a row for each setting, as the host knows it.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, s := range Settings() {
		initial := ""
		if s.Default != "" {
			initial = "`" + s.Default + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | `%s` | %s | %s |\n", s.Key, s.Variable, initial, s.Doc)
	}
	const head = "| key | variable | default | |\n|---|---|---|---|\n"
	if !strings.Contains(string(page), head+rows.String()+"\n") {
		t.Errorf("docs/config.md lacks this table:\n%s%s", head, &rows)
	}
	for _, f := range []string{"--config", "--policy", "--workspace", "--skills", "SKILL_HOME", "SKILL_CONFIG"} {
		if !strings.Contains(string(page), "`"+f) {
			t.Errorf("docs/config.md does not mention %s", f)
		}
	}
}

// The schema for editors has the keys that the host knows.
func TestSchema(t *testing.T) {
	raw, err := os.ReadFile("../../manifests/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Description string
		Additional  any `json:"additionalProperties"`
		Properties  map[string]node
	}
	var doc node
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(prefix string, n node)
	walk = func(prefix string, n node) {
		for k, sub := range n.Properties {
			if sub.Description == "" {
				t.Errorf("%s%s has no description", prefix, k)
			}
			if prefix+k == "settings" { // of skills: their manifests know the keys
				continue
			}
			if sub.Properties == nil {
				keys[prefix+k] = true
				continue
			}
			if sub.Additional != false {
				t.Errorf("%s%s lets unknown keys pass", prefix, k)
			}
			walk(prefix+k+".", sub)
		}
	}
	walk("", doc)
	var known []string
	for _, s := range Settings() {
		known = append(known, s.Key)
	}
	slices.Sort(known)
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, known) {
		t.Errorf("the schema knows %v\nthe host knows   %v", got, known)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{
		"": true, "policy = \"p\"\nskills = [\"a\"]\nworkspace = \"w\"\n[audit]\ndurability = \"disk\"\nparams = \"redacted\"\nmax_age = \"90d\"\nmax_size = \"1GiB\"\nrotate = \"1MiB\"\n[names]\nseparator = \"__\"\n[store]\nbackend = \"memory\"\n[wasm]\nwarm = false": true,
		httpExample: true, "http.adr = \"x\"": false, "http.max_sessions = \"5\"": false, "http.rate = 0": false, "http.rate = 2": true, "http.share = 0": false, "http.share = 1": true, "http.share = 1.5": false, "http.tls_cert = 1": false, "http.issuer = \"https://a.example\"": false,
		"http.issuer = [\"http://a.example\"]": false, "http.issuer = [\"https://a.example?\"]": false, "http.public_url = \"a.example\"": false, "http.allowed_origins = [\"*\"]": false, "http.allowed_hosts = [\"https://a\"]": false,
		"http.tokens = [{name = \"a\"}]": false, "http.tokens = [{name = \"a\", hash = \"x\"}]": false, "http.tokens = [{name = \"a\", token = \"x\"}]": false, "http.required_scopes = [\"a b\"]": false,
		"[settings.a]\nb = [{c = 1.5}]": true, "[settings]\na = 1": false, "settings = 1": false,
		"audit.max_age = \"36h\"": true, "[tasks]\nafter = \"1m30s\"\nttl = \"1d\"\nmax_wait = \"10m\"\nmax_per_caller = 1\nmax_kept = 100000\nmax_running = 10000": true,
		"tasks.after = 5": false, "tasks.after = \"5\"": false, "tasks.max_running = 10001": false, "tasks.max_kept = 0": false, "tasks.max = 5": false, "tasks.max_per_caller = \"5\"": false, "polcy = \"p\"": false, "audit.durability = \"none\"": false, "audit.max_size = \"1GB\"": false, "audit.max_age = \"ninety\"": false, "skills = \"a\"": false, "wasm.warm = \"true\"": false,
	} {
		var tree map[string]any
		if _, err := tomlfile.Decode("config.toml", []byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		if tree == nil {
			j = []byte("{}")
		}
		c := Config{Origins: map[string]string{}}
		if err := c.file("config.toml", []byte(text)); (err == nil) != ok {
			t.Errorf("the host on %q: %v", text, err)
		}
		if err := s.Check(j); (err == nil) != ok {
			t.Errorf("the schema on %q: %v", text, err)
		}
	}
}
