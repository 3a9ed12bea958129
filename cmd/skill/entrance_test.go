package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEveryEntrance: whichever way a call comes in, it leaves the same record,
// and if the operator denies it the same denial.
func TestEveryEntrance(t *testing.T) {
	h := newHouse(t, "slow", "caller")
	entrances := map[string]func(*testing.T, *house) string{
		"stdio": func(t *testing.T, h *house) string {
			s := h.serve().shake()
			defer s.close()
			return s.ask("1", "slow.wait", `{"ms":1}`)
		},
		"stdio_modern": func(t *testing.T, h *house) string {
			s := h.serve()
			defer s.close()
			s.send(modernCall(1, "slow.wait", `{"ms":1}`, ""))
			return s.await("answer", func(m message) bool { return string(m.ID) == "1" }).line
		},
		"address": func(t *testing.T, h *house) string {
			s := h.serve().shake()
			defer s.close()
			return s.ask("1", "InvokeSkill", `{"skill_name":"slow","tool":"wait","parameters":{"ms":1}}`)
		},
		"nested": func(t *testing.T, h *house) string {
			s := h.serve().shake()
			defer s.close()
			return s.ask("1", "caller.call", `{"tool":"slow.wait","args":{"ms":1}}`)
		},
		"command_line": commandLine,
		"http_modern": func(t *testing.T, h *house) string {
			w := h.serveWeb()
			return w.post(modernCall(1, "slow.wait", `{"ms":1}`, ""), modernHeaders("tools/call", "slow.wait"))
		},
		"http_stateless": func(t *testing.T, h *house) string {
			return h.serveWeb().post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.wait","arguments":{"ms":1}}}`, nil)
		},
		"http_session": func(t *testing.T, h *house) string {
			w := h.serveWeb()
			w.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, nil)
			if w.session == "" {
				t.Fatal("no session")
			}
			return w.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.wait","arguments":{"ms":1},"_meta":{"progressToken":1}}}`,
				map[string]string{"Mcp-Session-Id": w.session, "Mcp-Protocol-Version": "2025-11-25"})
		},
		"http_sse_2024": overSSE,
		"task":          asTask,
	}
	good := map[string][]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(entrances)) {
		before := len(h.records())
		if got := entrances[name](t, h); !strings.Contains(got, "slept") {
			t.Fatalf("%s: %s", name, got)
		}
		good[name] = h.records()[before:]
	}
	h.run(0, "allow", "--revoke", "slow")
	denied, said := map[string][]map[string]any{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(entrances)) {
		before := len(h.records())
		said[name] = entrances[name](t, h)
		denied[name] = h.records()[before:]
	}
	if len(good["stdio"]) != 2 || good["stdio"][0]["type"] != "start" || len(denied["stdio"]) != 1 || denied["stdio"][0]["type"] != "refuse" || denied["stdio"][0]["kind"] != "denied" {
		t.Fatalf("records %v, %v", good["stdio"], denied["stdio"])
	}
	reason := denied["stdio"][0]["error"].(string)
	for name := range entrances {
		if !reflect.DeepEqual(good[name], good["stdio"]) {
			t.Errorf("%s records\n%v\nwant\n%v", name, good[name], good["stdio"])
		}
		if !reflect.DeepEqual(denied[name], denied["stdio"]) {
			t.Errorf("%s records of a denied call\n%v\nwant\n%v", name, denied[name], denied["stdio"])
		}
		if name == "nested" { // a guest is told that, and nothing of the operator's files
			if !strings.Contains(said[name], "denied: invoke: call slow.wait") || strings.Contains(said[name], "policy") {
				t.Errorf("%s says %s", name, said[name])
			}
			continue
		}
		if text, _ := json.Marshal(reason); !strings.Contains(said[name], strings.Trim(string(text), `"`)) && !strings.Contains(said[name], reason) {
			t.Errorf("%s says %s\nwant %s", name, said[name], reason)
		}
	}
	h.verify(0)
}

// records returns what is on record of the calls of slow.wait, without what
// differs from call to call.
func (h *house) records() (out []map[string]any) {
	h.t.Helper()
	for line := range strings.Lines(h.run(0, "audit", "query", "--json", "--limit", "0", "--tool", "slow.wait")) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			h.t.Fatal(err)
		}
		for _, k := range []string{"seq", "prev", "time", "boot", "call", "parent", "client", "session", "crc", "file", "line", "duration_ns", "duration", "params", "hash", "mac"} {
			delete(m, k)
		}
		out = append(out, m)
	}
	return out
}

func commandLine(t *testing.T, h *house) string {
	cmd := exec.Command(built.skill, "call", "slow.wait", `{"ms":1}`)
	cmd.Dir, cmd.Env = h.work, h.env()
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A web is a server over HTTP.
type web struct {
	t       *testing.T
	url     string
	session string
}

func (h *house) serveWeb() *web {
	h.t.Helper()
	errs := new(lines)
	cmd := exec.Command(built.skill, "serve", "--workspace", h.work, "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env, cmd.Stderr = h.work, h.env(), errs
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill() // each entrance has a server of its own
		_ = cmd.Wait()
	})
	w := &web{t: h.t.(*testing.T)}
	until(h.t, "address", func() bool {
		_, rest, ok := strings.Cut(errs.String(), "serving MCP at ")
		w.url, _, _ = strings.Cut(rest, "\n")
		return ok && strings.Contains(rest, "\n")
	})
	return w
}

func modernCall(id int, tool, args, abilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{%s}}}}`, id, tool, args, abilities)
}

func modernHeaders(method, name string) map[string]string {
	return map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
}

// post sends a message and returns the answer, as JSON or as the last event of
// a stream.
func (w *web) post(body string, headers map[string]string) string {
	w.t.Helper()
	r, err := http.NewRequest("POST", w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		at := bytes.LastIndex(b, []byte("data: "))
		return string(b[at+len("data: "):])
	}
	return string(b)
}

// asTask makes the call as a task, and reads it until it has ended.
func asTask(t *testing.T, h *house) string {
	w := h.serveWeb()
	const able = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	var answer struct {
		Result struct{ TaskID, Status, ResultType string }
	}
	text := w.post(modernCall(1, "slow.wait", `{"ms":1}`, able), modernHeaders("tools/call", "slow.wait"))
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	id := answer.Result.TaskID
	if answer.Result.ResultType != "task" {
		return text // refused before it became one
	}
	until(t, "end of the task", func() bool {
		text = w.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{%s}}}}`, id, able), modernHeaders("tasks/get", id))
		return json.Unmarshal([]byte(text), &answer) != nil || answer.Result.Status != "working"
	})
	return text
}

// overSSE makes the call as clients of 2024-11-05 do.
func overSSE(t *testing.T, h *house) string {
	w := h.serveWeb()
	base := strings.TrimSuffix(w.url, "/mcp")
	client := http.Client{Timeout: patience}
	resp, err := client.Get(base + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data := make(chan string, 16)
	go func() {
		defer close(data)
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data <- d
			}
		}
	}()
	next := func() string {
		select {
		case d := <-data:
			return d
		case <-time.After(patience):
			t.Fatal("no event")
			return ""
		}
	}
	endpoint := base + strings.TrimPrefix(next(), base)
	send := func(body string) {
		resp, err := client.Post(endpoint, "application/json", strings.NewReader(body))
		if err != nil || resp.StatusCode >= 300 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
	}
	send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	next()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.wait","arguments":{"ms":1}}}`)
	return next()
}
