package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bytes"
)

const (
	manyTools  = 1000 // with those that are built in
	toolsApart = 250  // of one skill at most
)

// manyTools fills a home with skills until manyTools tools can be called. They
// are commands: to list them, nothing of them is looked at but the manifest.
func (p programs) manyTools(home string) error {
	env := append(os.Environ(), p.home(home)...)
	have, err := p.count(env)
	if err != nil {
		return err
	}
	for i := 0; have < manyTools; i++ {
		n := min(toolsApart, manyTools-have)
		name := fmt.Sprintf("many-%d", i)
		dir := filepath.Join(p.path(home), "skills", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "skill.toml"), manifest(name, n), 0o600); err != nil {
			return err
		}
		allow := exec.Command(p.path("skill"), "allow", "--yes", name)
		allow.Env = env
		if out, err := allow.CombinedOutput(); err != nil {
			return fmt.Errorf("skill allow: %w: %.1000s", err, out)
		}
		have += n
	}
	return nil
}

// count returns how many tools can be called.
func (p programs) count(env []string) (int, error) {
	serve := exec.Command(p.skill()[0], p.skill()[1:]...)
	serve.Env, serve.Stderr = env, os.Stderr
	serve.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	out, err := serve.Output()
	if err != nil {
		return 0, err
	}
	var answer struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.NewDecoder(io.LimitReader(bytes.NewReader(out), 64<<20)).Decode(&answer); err != nil {
		return 0, err
	}
	if len(answer.Result.Tools) == 0 {
		return 0, fmt.Errorf("no tools in %.300s", out)
	}
	return len(answer.Result.Tools), nil
}

// manifest is that of a skill with so many tools.
func manifest(name string, tools int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "name = %q\nversion = \"1.0.0\"\ndescription = \"Many tools.\"\nruntime = \"exec\"\n[capabilities]\nexec = [\"true\"]\n", name)
	for i := range tools {
		fmt.Fprintf(&b, `[tools.echo_%04d]
description = "Answers with its text, as it is, whatever it may be, once and at once."
command = ["true", "--", "{text}"]
input = { type = "object", properties = { text = { type = "string", description = "What is to be said again, in the language that it is in." } }, required = ["text"] }
`, i)
	}
	return b.Bytes()
}
