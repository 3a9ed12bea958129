package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/bearer"
)

// TestAnswerAtAnotherHost: of two servers of one user, the second goes on where
// the first one asked: behind one address, requests without a session may reach
// either. What was asked is good once, and for its caller only.
func TestAnswerAtAnotherHost(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "caller")
	token, hash := map[string]string{}, map[string]string{}
	policy := h.read("policy.toml")
	for _, who := range []string{"ann", "bob"} {
		token[who], hash[who] = bearer.NewToken()
		policy += fmt.Sprintf("\n[callers.\"token:%s\".tools]\nallow = [\"caller.ask\"]\n", who)
	}
	h.write("policy.toml", policy)
	env := []string{"SKILL_HTTP_TOKENS=ann " + hash["ann"] + "; bob " + hash["bob"]}
	_, a := h.serveHTTP(env, "--http=127.0.0.1:0")
	_, b := h.serveHTTP(env, "--http=127.0.0.1:0")
	type result struct {
		Type    string `json:"resultType"`
		State   string `json:"requestState"`
		Failed  bool   `json:"isError"`
		Content []struct{ Text string }
	}
	ask := func(address, who, state string) (status int, r result, text string) {
		t.Helper()
		params := map[string]any{"name": "caller.ask", "arguments": map[string]any{"kind": ""},
			"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}}}}
		if state != "" {
			params["requestState"] = state
			params["inputResponses"] = map[string]any{"q": map[string]any{"action": "decline"}}
		}
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
		if err != nil {
			t.Fatal(err)
		}
		q, err := http.NewRequest("POST", address, strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token[who],
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "caller.ask"} {
			q.Header.Set(k, v)
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Result result }
		if err := json.Unmarshal(raw, &answer); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		return res.StatusCode, answer.Result, string(raw)
	}
	_, first, text := ask(a, "ann", "")
	if first.Type != "input_required" || first.State == "" {
		t.Fatalf("round 1: %s", text)
	}
	for _, address := range []string{a, b} {
		if status, r, text := ask(address, "bob", first.State); status != 400 || r.Type != "" || !strings.Contains(text, "request state") {
			t.Errorf("another caller: %d %s", status, text)
		}
	}
	if status, r, text := ask(b, "ann", first.State); status != 200 || r.Failed || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, "heard decline") {
		t.Fatalf("round 2 at the other host: %d %s", status, text)
	}
	for _, address := range []string{a, b} {
		if status, r, text := ask(address, "ann", first.State); status != 400 || r.Type != "" || !strings.Contains(text, "request state") {
			t.Errorf("again: %d %s", status, text)
		}
	}
	h.verify(0)
}
