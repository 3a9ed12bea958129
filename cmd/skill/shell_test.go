package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// ordinary is the user that the host runs as where it is to run as an ordinary
// one. It needs no account.
const ordinary = 1507

// TestShellClients: the real clients use the shell tools on real commands, with
// the host as root, if that is who tests, and as an ordinary user.
func TestShellClients(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: the shell tools need Linux")
	}
	node := clientsFromNPM(t)
	for _, need := range []string{"bash", "git", "go", "python3", "setpriv"} {
		if _, err := exec.LookPath(need); err != nil {
			leftOut(t, "there is no "+need)
		}
	}
	for _, tt := range []struct {
		kind string
		uid  int
	}{{"v1", os.Getuid()}, {"v2-modern", os.Getuid()}, {"v2", ordinary}} {
		name := tt.kind + "/user " + strconv.Itoa(tt.uid)
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			skill, prefix := built.skill, []string(nil)
			if tt.uid != os.Getuid() {
				if os.Getuid() != 0 {
					t.Skip("LEFT OUT: only root can become another user")
				}
				h, skill = houseOf(t, tt.uid)
				id := strconv.Itoa(tt.uid)
				prefix = []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups"}
			}
			git(t, h.work, tt.uid)
			args := append([]string{"shell.mjs", tt.kind, h.work}, append(prefix, skill, "serve", "--workspace", h.work)...)
			ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, args...)
			cmd.Dir, cmd.Env = filepath.Join("testdata", "clients"), append(h.env(), "HOST_SECRET=do not show")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("node %q: %v\n%s", args, err, out)
			}
			if tt.uid == os.Getuid() {
				h.verify(0)
			}
		})
	}
}

// TestShellNetwork: a command has no network, until the operator gives it a
// host; then it has that one, by the proxy, and no other.
func TestShellNetwork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: the shell tools need Linux")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		leftOut(t, "there is no curl")
	}
	serve := func(text string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		t.Cleanup(s.Close)
		return s
	}
	granted, other := serve("granted"), serve("the other one")
	h := newHouse(t)
	curl := func(status int, url, more string) string {
		t.Helper()
		args, err := json.Marshal(map[string]string{"command": "curl -sS -m 20 " + more + " " + url})
		if err != nil {
			t.Fatal(err)
		}
		return h.run(status, "call", "--workspace", h.work, "Bash", string(args))
	}
	if out := curl(1, granted.URL, ""); strings.Contains(out, "granted\n") || !strings.Contains(out, "network: none") {
		t.Errorf("without a network: %s", out)
	}
	h.write("policy.toml", "[skills.shell.capabilities]\nnetwork = [\""+granted.URL+"\"]\n")
	if out := curl(0, granted.URL, ""); !strings.Contains(out, "granted") {
		t.Errorf("the granted host: %s", out)
	}
	if out := curl(1, other.URL, "--fail-with-body"); strings.Contains(out, "the other one") || !strings.Contains(out, "net_") {
		t.Errorf("another host: %s", out)
	}
	for _, around := range []string{"--noproxy '*'", "--proxy '' --interface lo"} {
		if out := curl(1, granted.URL, around); strings.Contains(out, "granted\n") {
			t.Errorf("around the proxy with %s: %s", around, out)
		}
	}
	h.verify(0)
	if out := h.run(0, "audit", "query", "--type", "access"); !strings.Contains(out, "deny network.connect") || !strings.Contains(out, "allow network.connect") {
		t.Errorf("the record: %s", out)
	}
}

// houseOf makes a house that belongs to another user, and a copy of the binary
// that he can read.
func houseOf(t *testing.T, uid int) (*house, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "skill-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &house{t, filepath.Join(dir, "home"), filepath.Join(dir, "work")}
	binary, err := os.ReadFile(built.skill)
	if err != nil {
		t.Fatal(err)
	}
	skill := filepath.Join(dir, "skill")
	if err := os.WriteFile(skill, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{h.home, h.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return h, skill
}

// git makes dir a repository of the user uid.
func git(t *testing.T, dir string, uid int) {
	t.Helper()
	cmd := exec.Command("git", "init", "-q", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
