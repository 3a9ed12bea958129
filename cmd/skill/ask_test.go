package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// canSample are the abilities of a client with a model.
const canSample = `"sampling":{}`

// asked calls caller.ask, by whichever name and arguments, over a stream of a
// client with a model, and returns the answer or what the client is asked.
func (s *server) asked(tool, args string) string {
	s.t.Helper()
	defer s.cmd.Process.Kill() // it may wait for an answer
	s.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}},"clientInfo":{"name":"test","version":"1"}}}`)
	s.reply("hello")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.call("1", tool, args)
	return s.await("answer or question", func(m message) bool { return m.Method == "" || len(m.ID) > 0 }).line
}

// entrancesForAsking are the ways to a tool that asks the client's model.
var entrancesForAsking = map[string]func(*testing.T, *house) string{
	"stdio": func(t *testing.T, h *house) string { return h.serve().asked("caller.ask", `{"kind":"sampling"}`) },
	"stdio_modern": func(t *testing.T, h *house) string {
		s := h.serve()
		s.send(modernCall(1, "caller.ask", `{"kind":"sampling"}`, canSample))
		return s.await("answer", func(m message) bool { return string(m.ID) == "1" }).line
	},
	"address": func(t *testing.T, h *house) string {
		return h.serve().asked("InvokeSkill", `{"skill_name":"caller","tool":"ask","parameters":{"kind":"sampling"}}`)
	},
	"alias": func(t *testing.T, h *house) string {
		return h.serve().asked("skill-engine/execute", `{"skill_name":"caller","tool_name":"ask","arguments":"{\"kind\":\"sampling\"}"}`)
	},
	"nested": func(t *testing.T, h *house) string {
		return h.serve().asked("caller.call", `{"tool":"caller.ask","args":{"kind":"sampling"}}`)
	},
	"http_modern": func(t *testing.T, h *house) string {
		return h.serveWeb().post(modernCall(1, "caller.ask", `{"kind":"sampling"}`, canSample), modernHeaders("tools/call", "caller.ask"))
	},
	"http_stateless": func(t *testing.T, h *house) string {
		return h.serveWeb().post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"caller.ask","arguments":{"kind":"sampling"}}}`, nil)
	},
	"task": func(t *testing.T, h *house) string {
		w := h.serveWeb()
		const able = canSample + `,"extensions":{"io.modelcontextprotocol/tasks":{}}`
		var answer struct {
			Result struct{ TaskID, Status, ResultType string }
		}
		text := w.post(modernCall(1, "caller.ask", `{"kind":"sampling"}`, able), modernHeaders("tools/call", "caller.ask"))
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Result.ResultType != "task" {
			t.Fatalf("no task: %s, %v", text, err)
		}
		id := answer.Result.TaskID
		until(t, "end of the task", func() bool {
			text = w.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{%s}}}}`, id, able), modernHeaders("tasks/get", id))
			return json.Unmarshal([]byte(text), &answer) != nil || answer.Result.Status != "working"
		})
		return text
	},
	"command_line": func(t *testing.T, h *house) string {
		cmd := exec.Command(built.skill, "call", "caller.ask", `{"kind":"sampling"}`)
		cmd.Dir, cmd.Env = h.work, h.env()
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() < 0 {
			t.Fatalf("it was answered: %v\n%s", err, out)
		}
		return string(out)
	},
}

// TestAskEveryEntrance: whichever way a call comes in, a tool that may not ask
// the client's model does not, and the caller is told the line that would let it;
// with the line it does.
func TestAskEveryEntrance(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.install("caller", "caller")
	manifest := h.read("skills/caller/skill.toml")
	for was, is := range map[string]string{`invoke = ["slow.wait"]`: `invoke = ["slow.wait", "caller.ask"]`, "[tools.ask]\n": "[tools.ask]\ntask = \"optional\"\n"} {
		if strings.Count(manifest, was) != 1 {
			t.Fatalf("%q in\n%s", was, manifest)
		}
		manifest = strings.Replace(manifest, was, is, 1)
	}
	h.write("skills/caller/skill.toml", manifest)
	h.run(0, "allow", "--yes", "caller")
	names := slices.Sorted(maps.Keys(entrancesForAsking))
	for _, name := range names {
		said := entrancesForAsking[name](t, h)
		if !strings.Contains(said, "client.ask sampling") || !strings.Contains(strings.ReplaceAll(said, `\`, ""), `to allow it, add to [capabilities]: client = ["sampling"]`) || strings.Contains(said, "createMessage") {
			t.Errorf("ask_undeclared by %s: %s", name, said)
		}
	}
	denied := h.run(0, "audit", "query", "--json", "--limit", "0", "--type", "access")
	if n := strings.Count(denied, `"access":"client.ask"`); n != len(names) {
		t.Errorf("%d denials are on record, want %d:\n%s", n, len(names), denied)
	}
	h.write("skills/caller/skill.toml", strings.Replace(manifest, "invoke = [", "client = [\"sampling\"]\ninvoke = [", 1))
	h.run(0, "allow", "--yes", "caller")
	for name, want := range map[string]string{"stdio": `"method":"sampling/createMessage"`, "address": `"method":"sampling/createMessage"`, "alias": `"method":"sampling/createMessage"`,
		"stdio_modern": `"resultType":"input_required"`, "http_modern": `"resultType":"input_required"`, "task": `"status":"input_required"`} {
		if said := entrancesForAsking[name](t, h); !strings.Contains(said, want) || strings.Contains(said, "client.ask") {
			t.Errorf("ask_declared by %s: %s", name, said)
		}
	}
	for _, name := range []string{"nested", "http_stateless", "command_line"} { // there is nobody to ask
		if said := entrancesForAsking[name](t, h); strings.Contains(said, "client.ask") {
			t.Errorf("ask_declared by %s: %s", name, said)
		}
	}
	h.verify(0)
}

// TestLongIsASetting: when a call that takes long becomes a task is the
// operator's to say, and holds however the tool is spelled.
func TestLongIsASetting(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.install("slow", "slow")
	h.write("skills/slow/skill.toml", strings.Replace(h.read("skills/slow/skill.toml"), `task = "optional"`, `task = "long"`, 1))
	h.run(0, "allow", "--yes", "slow")
	call := func(tool, args string) string {
		s := h.serve()
		s.send(modernCall(1, tool, args, `"extensions":{"io.modelcontextprotocol/tasks":{}}`))
		return s.await("answer", func(m message) bool { return string(m.ID) == "1" }).line
	}
	h.write("config.toml", "[tasks]\nafter = \"100ms\"\n")
	for tool, args := range map[string]string{"slow.wait": `{"ms":600000}`, "InvokeSkill": `{"skill_name":"slow","tool":"wait","parameters":{"ms":600000}}`} {
		if said := call(tool, args); !strings.Contains(said, `"resultType":"task"`) {
			t.Errorf("%s: %s", tool, said)
		}
	}
	h.write("config.toml", "[tasks]\nafter = \"1h\"\n") // longer than this takes, which is longer than the default
	if said := call("slow.wait", `{"ms":5500}`); !strings.Contains(said, "slept") || strings.Contains(said, `"resultType":"task"`) {
		t.Errorf("%s", said)
	}
}
