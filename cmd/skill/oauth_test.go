package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// oauthConfig has the address of the server, its port, the issuer, and the
// hash of the token that the operator made.
const oauthConfig = `[http]
public_url = %q
issuer = [%q]
required_scopes = ["tools.read"]

[[http.tokens]]
name = "ci"
hash = %q
rights = ["tools.read"]
`

// oauthRules map scopes to tools. hello-go and wordcount-go are both allowed.
const oauthRules = `
[callers."right:tools.read".tools]
allow = ["hello-go.greet"]

[callers."right:tools.write".tools]
allow = ["wordcount-go.count"]
`

// TestOAuth: real clients, which know the address of the server and nothing
// else, find a real authorization server, get its tokens, and may do what the
// scopes of these are mapped to.
func TestOAuth(t *testing.T) {
	node := clientsFromNPM(t)
	issuer := startIssuer(t, node)
	h := newHouse(t, "hello-go", "wordcount-go")
	var made struct{ Token, Hash string }
	if err := json.Unmarshal([]byte(h.run(0, "token", "--json", "ci", "tools.read")), &made); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	address := "http://127.0.0.1:" + port + "/mcp"
	h.write("config.toml", fmt.Sprintf(oauthConfig, address, issuer, made.Hash))
	h.write("policy.toml", h.read("policy.toml")+oauthRules)
	_, announced := h.serveHTTP(nil, "--http", "127.0.0.1:"+port)
	if announced != address {
		t.Fatalf("the server is at %s, want %s", announced, address)
	}
	t.Run("refused", func(t *testing.T) { oauthRefusals(t, h, address, issuer) })
	t.Run("metadata", func(t *testing.T) { oauthMetadata(t, address, issuer) })
	oauth := "oauth:" + issuer + "|"
	for _, who := range []struct{ name, caller string }{{"robot", oauth + "robot"}, {"person", oauth + "ann"}, {"few", oauth + "robot"}, {"token", "token:ci"}} {
		for _, kind := range []string{"v1", "v2", "v2-modern"} {
			t.Run(who.name+"/"+kind, func(t *testing.T) {
				before := h.audited(t)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, node, "oauth.mjs", kind, who.name, address, issuer, made.Token)
				cmd.Dir, cmd.Env = filepath.Join("testdata", "clients"), h.env()
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Logf("%s", out)
				after := h.audited(t)
				for tool, types := range map[string][]string{"hello-go.greet": {"start", "end"}, "wordcount-go.count": {"refuse"}} {
					for _, typ := range types {
						k := audited{typ, who.caller, tool}
						if after[k] == before[k] {
							t.Errorf("no %v on record: %v", k, after)
						}
					}
				}
			})
		}
	}
	for k := range h.audited(t) {
		if !strings.HasPrefix(k.caller, oauth) && k.caller != "token:ci" {
			t.Errorf("somebody else called: %v", k)
		}
		if k.typ == "start" && k.tool != "hello-go.greet" {
			t.Errorf("nobody may call that: %v", k)
		}
	}
	h.verify(0)
}

// oauthRefusals comes with tokens that are not good for this server, and wants
// to be told each time how to get one that is.
func oauthRefusals(t *testing.T, h *house, address, issuer string) {
	metadata := strings.TrimSuffix(address, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	good := issuerToken(t, issuer, address, "tools.read")
	for name, c := range map[string]struct {
		token  string
		status int
		code   string // of the challenge
		both   bool   // tools are listed, instead of the one of tools.read
	}{
		"no_token":              {"", http.StatusUnauthorized, "", false},
		"good":                  {good, http.StatusOK, "", false},
		"both_scopes":           {issuerToken(t, issuer, address, "tools.write tools.read"), http.StatusOK, "", true},
		"other_audience":        {issuerToken(t, issuer, "https://other.example/mcp", "tools.read"), http.StatusUnauthorized, "invalid_token", false},
		"audience_of_the_host":  {issuerToken(t, issuer, strings.TrimSuffix(address, "/mcp"), "tools.read"), http.StatusUnauthorized, "invalid_token", false},
		"few_scopes":            {issuerToken(t, issuer, address, "mail.read"), http.StatusForbidden, "insufficient_scope", false},
		"no_scopes":             {issuerToken(t, issuer, address, ""), http.StatusForbidden, "insufficient_scope", false},
		"signature_of_another":  {good[:strings.LastIndexByte(good, '.')] + issuerToken(t, issuer, address, "tools.write")[strings.LastIndexByte(good, '.'):], http.StatusUnauthorized, "invalid_token", false},
		"static_nobody_made_it": {"skill_" + strings.Repeat("A", 43), http.StatusUnauthorized, "invalid_token", false},
	} {
		for _, modern := range []bool{false, true} {
			status, challenge, body := knock(t, address, c.token, modern)
			if status != c.status {
				t.Errorf("%s: %d %s", name, status, body)
				continue
			}
			if status == http.StatusOK {
				if !strings.Contains(body, `"hello-go.greet"`) || strings.Contains(body, `"wordcount-go.count"`) != c.both {
					t.Errorf("%s lists %s", name, body)
				}
				continue
			}
			if !strings.HasPrefix(challenge, "Bearer ") || !strings.Contains(challenge, `resource_metadata="`+metadata+`"`) || !strings.Contains(challenge, `scope="tools.read"`) {
				t.Errorf("%s: WWW-Authenticate: %s", name, challenge)
			}
			if c.code == "" && strings.Contains(challenge, "error=") || c.code != "" && !strings.Contains(challenge, `error="`+c.code+`"`) {
				t.Errorf("%s: WWW-Authenticate: %s, want error %q", name, challenge, c.code)
			}
			var answer struct{ Error struct{ Message string } }
			if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Error.Message == "" {
				t.Errorf("%s: %v: %s", name, err, body)
			}
		}
	}
	if n := len(h.audited(t)); n != 0 {
		t.Errorf("%d kinds of calls are on record before anybody called", n)
	}
}

// oauthMetadata reads where clients get their tokens, without one.
func oauthMetadata(t *testing.T, address, issuer string) {
	res, err := http.Get(strings.TrimSuffix(address, "/mcp") + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var m struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Resource != address || !reflect.DeepEqual(m.Servers, []string{issuer}) || !reflect.DeepEqual(m.Scopes, []string{"tools.read", "tools.write"}) {
		t.Errorf("metadata: %+v", m)
	}
}

// knock asks for the tools, with a token or without one.
func knock(t *testing.T, address, token string, modern bool) (int, string, string) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if modern {
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	r, err := http.NewRequest("POST", address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
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
	return res.StatusCode, res.Header.Get("WWW-Authenticate"), string(b)
}

// audited is what the record says of a call, as far as it matters here.
type audited struct{ typ, caller, tool string }

// audited counts what is on record.
func (h *house) audited(t *testing.T) map[audited]int {
	t.Helper()
	out := map[audited]int{}
	for line := range strings.Lines(h.run(0, "audit", "query", "--json", "--limit", "0")) {
		var m struct{ Type, Caller, Tool string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Tool != "" {
			out[audited{m.Type, m.Caller, m.Tool}]++
		}
	}
	return out
}

// startIssuer starts npm's oidc-provider, which is certified, and returns what
// it calls itself.
func startIssuer(t *testing.T, node string) string {
	t.Helper()
	provider := filepath.Join("..", "..", "host", "mcp", "bearer", "testdata", "provider")
	if _, err := os.Stat(filepath.Join(provider, "node_modules", "oidc-provider")); err != nil {
		leftOut(t, "the OpenID provider from npm is not installed (cd host/mcp/bearer/testdata/provider && npm ci)")
	}
	said := new(lines)
	cmd := exec.Command(node, "issuer.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr = filepath.Join("testdata", "clients"), cleanEnv(built.dir), said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		_ = in.Close()
		kill.Reset(5 * time.Second) // it ends with its input
		_ = cmd.Wait()
		kill.Stop()
		if t.Failed() {
			t.Logf("standard error of the issuer:\n%s", said)
		}
	})
	for s := bufio.NewScanner(out); s.Scan(); {
		if strings.HasPrefix(s.Text(), "http://127.0.0.1:") {
			kill.Stop()
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return s.Text()
		}
	}
	t.Fatalf("the issuer did not start: %s", said)
	return ""
}

// issuerToken gets one as a program with its own account does.
func issuerToken(t *testing.T, issuer, resource, scope string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}}
	if scope != "" {
		form.Set("scope", scope)
	}
	r, err := http.NewRequest("POST", issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("robot", "a-secret-of-the-test")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Token string `json:"access_token"`
		Error string `json:"error_description"`
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Token == "" {
		t.Fatalf("%s: %v %s", res.Status, err, got.Error)
	}
	return got.Token
}

// freePort returns one that nobody listened on a moment ago: the server has to
// know its address before it is there.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
