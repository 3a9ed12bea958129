package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/bearer"
)

// serveHTTP starts "skill serve" with args and returns the address that it
// announces.
func (h *house) serveHTTP(env []string, args ...string) (*exec.Cmd, string) {
	h.t.Helper()
	cmd := exec.Command(built.skill, append([]string{"serve", "--workspace", h.work}, args...)...)
	cmd.Dir, cmd.Env = h.work, append(h.env(), env...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(errs)
	first, err := r.ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(first), "serving MCP at ")
	if err != nil || !ok {
		h.t.Fatalf("%v: %s", err, first)
	}
	if _, err := r.ReadString('\n'); err != nil {
		h.t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct{ Type, URL string } `json:"mcpServers"`
	}
	if err := json.NewDecoder(r).Decode(&config); err != nil || config.Servers["skill"].URL != address {
		h.t.Fatalf("%v: %+v", err, config)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return cmd, address
}

// TestServeHTTP: a client's calls over HTTP come to the same record as all
// others, and an interrupted server answers what it has accepted.
func TestServeHTTP(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM")
	}
	t.Parallel()
	h := newHouse(t, "slow")
	cmd, address := h.serveHTTP(nil, "--http", "127.0.0.1:0")
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		cs, err := gosdk.NewClient(&gosdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(),
			&gosdk.StreamableClientTransport{Endpoint: address}, &gosdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		r, err := cs.CallTool(t.Context(), &gosdk.CallToolParams{Name: "TaskManager", Arguments: map[string]any{"action": "create", "text": "over " + version}})
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v %v", version, r, err)
		}
		if err := cs.Close(); err != nil {
			t.Errorf("%s: close: %v", version, err)
		}
	}
	answer := make(chan string)
	go func() {
		res, err := http.Post(address, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.wait","arguments":{"ms":1000}}}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			answer <- err.Error()
		}
		answer <- string(b)
	}()
	h.running(1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; failed(a) {
		t.Errorf("what was accepted: %s", a)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	h.verify(0)
}

// TestHTTPToken: who has no token does not come in; who has one is on record.
func TestHTTPToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token, hash := bearer.NewToken()
	_, address := h.serveHTTP([]string{"SKILL_HTTP_TOKENS=ann " + hash}, "--http=127.0.0.1:0")
	post := func(head string) (int, string) {
		r, err := http.NewRequest("POST", address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if head != "" {
			r.Header.Set("Authorization", head)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header.Get("WWW-Authenticate") + string(b)
	}
	for head, want := range map[string]int{"": 401, "Bearer " + token + "x": 401, "Bearer " + token: 200} {
		if status, body := post(head); status != want || want == 401 && !strings.HasPrefix(body, "Bearer ") {
			t.Errorf("%q: %d %s", head, status, body)
		}
	}
}

func TestHTTPArguments(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, args := range [][]string{
		{"--port", "3000"}, {"--insecure-no-auth"}, {"--poll-after", "1s"}, {"127.0.0.1:0"},
		{"--http", "127.0.0.1:0", "again"}, {"--http=127.0.0.1:0", "again"}, {"--http", "nowhere"}, {"--http=127.0.0.1:x"},
		{"--http", "--port", "70000"}, {"--http", "0.0.0.0:0"}, {"--http", "[::]:0"},
	} {
		h.run(2, append([]string{"serve"}, args...)...)
	}
}
