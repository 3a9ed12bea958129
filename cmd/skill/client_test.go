package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClients: the real clients of the Model Context Protocol, of both
// generations and both ways of connecting, list the tools and call them on real
// input. Each runs twice: what it keeps outlives the host.
func TestClients(t *testing.T) {
	node := clientsFromNPM(t)
	clients, err := filepath.Abs(filepath.Join("testdata", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	photos := t.TempDir()
	run := func(t *testing.T, h *house, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, args...)
		cmd.Dir, cmd.Env = clients, cleanEnv(built.dir)
		if h != nil {
			cmd.Env = h.env()
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("node %q: %v\n%s", args, err, out)
		}
		t.Logf("node %s\n%s", strings.Join(args[:3], " "), out)
	}
	run(t, nil, "photos.mjs", photos, "")
	for _, kind := range []string{"v1", "v2", "v2-modern"} {
		t.Run(kind, func(t *testing.T) {
			h := newHouse(t, "hello-go", "wordcount-go", "review")
			stranger := strings.NewReplacer(`name = "hello-go"`, `name = "refused"`, "[tools.greet]", "[tools.steal]", `"required": ["name"],`, "").Replace(h.read("skills/hello-go/skill.toml"))
			h.write("skills/refused/skill.toml", stranger)
			h.write("skills/refused/hello-go.wasm", h.read("skills/hello-go/hello-go.wasm"))
			if out := h.run(0, "list"); !strings.Contains(out, "refused.steal") {
				t.Fatalf("the skill that nobody allowed is not there: %s", out)
			}
			if err := os.CopyFS(h.work, os.DirFS(photos)); err != nil {
				t.Fatal(err)
			}
			for _, phase := range []string{"first", "again"} {
				run(t, h, "session.mjs", kind, phase, built.skill, h.work)
			}
			h.verify(0)
			files, err := fs.Glob(os.DirFS(h.home), "audit/*.jsonl")
			if err != nil || len(files) < 2 {
				t.Errorf("audit files %v, %v: want one for each host", files, err)
			}
			if out := h.run(0, "audit", "query", "--type", "end"); !strings.Contains(out, "ReadImage") || !strings.Contains(out, "wordcount-go.count") {
				t.Errorf("the record of the session: %s", out)
			}
		})
	}
}

// clientsFromNPM returns Node.js, if it and the clients are installed.
func clientsFromNPM(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join("testdata", "clients", "node_modules", "@modelcontextprotocol")); err != nil {
		leftOut(t, "the clients from npm are not installed (cd cmd/skill/testdata/clients && npm ci)")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		leftOut(t, "there is no Node.js")
	}
	return node
}

// leftOut ends a test that needs something this machine does not have: loudly,
// and in CI as a failure.
func leftOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("LEFT OUT: ", why)
}
