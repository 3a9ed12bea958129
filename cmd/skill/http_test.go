package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveCmd starts this binary as "skill serve" with args, and returns the
// address that it announces.
func serveCmd(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"serve"}, args...)...)
	home := t.TempDir()
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "SKILL_TEST_BINARY=1", "HOME="+home, "SKILL_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(errs)
	first, err := r.ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(first), "serving MCP at ")
	if err != nil || !ok {
		rest, _ := io.ReadAll(r)
		t.Fatalf("%v: %s%s", err, first, rest)
	}
	r.ReadString('\n')
	var config struct {
		Servers map[string]struct{ Type, URL string } `json:"mcpServers"`
	}
	if err := json.NewDecoder(r).Decode(&config); err != nil || config.Servers["skill"].URL != address {
		t.Fatalf("%v: %+v", err, config)
	}
	go io.Copy(io.Discard, r)
	return cmd, address
}
