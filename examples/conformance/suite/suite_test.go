package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reports writes what the suite leaves behind: a folder for each scenario.
func reports(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for scenario, checks := range files {
		sub := filepath.Join(dir, "server-"+scenario+"-2026-11-22T04-31-37-564Z")
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, "checks.json"), []byte(checks), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCount(t *testing.T) {
	r := row{}
	err := r.count(reports(t, map[string]string{
		"caching":          `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"no ttlMs\n  at all"},{"id":"c","status":"INFO"}]`,
		"tasks-mrtr-input": `[{"id":"d","status":"SUCCESS"},{"id":"e","status":"WARNING","description":"ought to"},{"id":"f","status":"SKIPPED"}]`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"FAILED caching: b: no ttlMs at all", "warning: tasks-mrtr-input: e: ought to"}
	if r.passed != 2 || r.failed != 1 || strings.Join(r.problems, "|") != strings.Join(want, "|") {
		t.Errorf("got %+v", r)
	}
}

// TestCountRefuses: what cannot be judged is no success.
func TestCountRefuses(t *testing.T) {
	for name, checks := range map[string]string{
		"a status of a later suite": `[{"id":"a","status":"PASSED"}]`,
		"half a report":             `[{"id":"a","status":"SUCC`,
		"no list":                   `{}`,
	} {
		if err := new(row).count(reports(t, map[string]string{"x": checks})); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTotal(t *testing.T) {
	const summary = "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n✗ caching: 1 passed, 7 failed\n\nTotal: 3 passed, 7 failed\n"
	if passed, failed, err := total("...\n" + summary + "\nNot scored for 2026-07-28: 1 scenario(s) run\n"); passed != 3 || failed != 7 || err != nil {
		t.Errorf("got %d, %d, %v", passed, failed, err)
	}
	if passed, failed, err := total("Total: 1 passed, 0 failed, 2 warnings"); passed != 1 || failed != 0 || err != nil {
		t.Errorf("with warnings: got %d, %d, %v", passed, failed, err)
	}
	for name, out := range map[string]string{
		"no summary":    "SyntaxError: does not provide an export named globSync",
		"two summaries": summary + summary,
		"too large":     "Total: 99999999999999999999 passed, 0 failed",
	} {
		if _, _, err := total(out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestScenarioOf(t *testing.T) {
	for file, want := range map[string]string{
		"r/server-caching-2026-11-22T04-31-37-564Z/checks.json":                              "caching",
		"r/server-elicitation-sep1034-defaults-2026-11-22T04-31-37-564Z/checks.json":         "elicitation-sep1034-defaults",
		"r/server-server-sse-polling-2026-11-22T04-31-34-239Z/checks.json":                   "server-sse-polling",
		"r/server-json-schema-2020-12-2026-11-22T04-31-34-227Z/checks.json":                  "json-schema-2020-12",
		"r/server-http-custom-header-server-validation-2026-11-22T04-31-38-182Z/checks.json": "http-custom-header-server-validation",
	} {
		if got := scenarioOf(filepath.FromSlash(file)); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	const next = "| a |\n"
	for name, x := range map[string]struct{ text, want string }{
		"written":           {"x\n<!-- conformance -->\nold\n<!-- /conformance -->\ny", "x\n<!-- conformance -->\n| a |\n<!-- /conformance -->\ny"},
		"empty before":      {"<!-- conformance --><!-- /conformance -->", "<!-- conformance -->\n| a |\n<!-- /conformance -->"},
		"no marks":          {"x", ""},
		"no end":            {"<!-- conformance -->\nx", ""},
		"the end first":     {"<!-- /conformance --><!-- conformance -->", ""},
		"marks twice":       {strings.Repeat("<!-- conformance --><!-- /conformance -->", 2), ""},
		"the end only once": {"<!-- conformance --><!-- conformance --><!-- /conformance -->", ""},
	} {
		got, err := replace([]byte(x.text), next)
		if string(got) != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, x.want)
		}
	}
}

// TestKeep: without leave to write, another table is an error and the file
// stays.
func TestKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	const text = "<!-- conformance -->\nold\n<!-- /conformance -->\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := keep(file, "new\n", false); err == nil {
		t.Error("another table is accepted")
	}
	if got, _ := os.ReadFile(file); string(got) != text {
		t.Errorf("the file is now %q", got)
	}
	if err := keep(file, "new\n", true); err != nil {
		t.Fatal(err)
	}
	if err := keep(file, "new\n", false); err != nil {
		t.Errorf("what was written is another table: %v", err)
	}
}

func TestShow(t *testing.T) {
	var b bytes.Buffer
	r := row{about: "suite", passed: 3}
	r.fail("caching: %s", "no")
	if n := show(&b, []row{r, {about: "other", passed: 1}}); n != 1 {
		t.Errorf("%d failed", n)
	}
	for _, want := range []string{"suite: FAILED caching: no\n", "| suite | 3 | 1 |\n", "| other | 1 | 0 |\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestLock: what is installed is fixed to the byte, from whatever registry.
func TestLock(t *testing.T) {
	var l struct {
		Packages map[string]struct {
			Version, Resolved, Integrity string
			Link                         bool
		}
	}
	if err := json.Unmarshal(lock, &l); err != nil {
		t.Fatal(err)
	}
	var p struct {
		Dependencies, OptionalDependencies map[string]string
	}
	if err := json.Unmarshal(packages, &p); err != nil {
		t.Fatal(err)
	}
	for _, direct := range []map[string]string{p.Dependencies, p.OptionalDependencies} {
		for name, version := range direct {
			if got := l.Packages["node_modules/"+name].Version; got != version {
				t.Errorf("%s is locked at %q, want %s", name, got, version)
			}
		}
	}
	for path, x := range l.Packages {
		if path == "" {
			continue
		}
		if x.Resolved != "" {
			t.Errorf("%s names a registry", path)
		}
		if !strings.HasPrefix(x.Integrity, "sha512-") && !x.Link {
			t.Errorf("%s has the integrity %q", path, x.Integrity)
		}
	}
}

func TestTail(t *testing.T) {
	var log tail
	for range 3 {
		if _, err := log.Write(bytes.Repeat([]byte("x"), tailSize/2)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(log.String()); n != tailSize {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestEnviron: what the user has set for a server of their own does not count.
func TestEnviron(t *testing.T) {
	t.Setenv("SKILL_HTTP_ADDR", "0.0.0.0:1")
	t.Setenv("SKILLED", "yes")
	env := strings.Join(environ("SKILL_HOME=x"), "\n") + "\n"
	if strings.Contains(env, "SKILL_HTTP_ADDR") || !strings.Contains(env, "SKILLED=yes\n") || !strings.HasSuffix(env, "SKILL_HOME=x\n") {
		t.Error(env)
	}
}

// TestShip: what is installed is the skill, not what it is made from.
func TestShip(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if err := ship(from, to); err == nil {
		t.Error("a skill that is not built is shipped")
	}
	for _, name := range []string{"a.wasm", "skill.toml", "main.go", "suite/package.json", "references/x.md"} {
		file := filepath.Join(from, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := ship(from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a.wasm": true, "skill.toml": true, "references/x.md": true, "main.go": false, "suite": false} {
		if _, err := os.Stat(filepath.Join(to, filepath.FromSlash(name))); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
