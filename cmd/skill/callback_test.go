package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallbackClients: real clients of both eras set callbacks and get them, on
// every way that they have, over stdio and over HTTP.
func TestCallbackClients(t *testing.T) {
	t.Parallel()
	node := clientsFromNPM(t)
	for _, kind := range []string{"v1", "v2", "v2-modern"} {
		for _, door := range []string{"stdio", "http"} {
			t.Run(kind+" over "+door, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				args := []string{"callback.mjs", kind, built.skill, "serve", "--workspace", h.work}
				if door == "http" {
					_, address := h.serveHTTP(nil, "--http", "127.0.0.1:0")
					args = []string{"callback.mjs", kind, address}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, node, args...)
				cmd.Dir, cmd.Env = filepath.Join("testdata", "clients"), h.env()
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("node %q: %v\n%s", args, err, out)
				}
			})
		}
	}
}

// fired reports how often a message of a callback is in a result, beside what
// the tool says.
func fired(line, message string) int {
	var r struct {
		Result struct {
			Content []struct{ Text string } `json:"content"`
		} `json:"result"`
	}
	if json.Unmarshal([]byte(line), &r) != nil {
		return 0
	}
	n := 0
	for _, c := range r.Result.Content {
		if strings.HasPrefix(c.Text, "[") && strings.Contains(c.Text, " fired]\n") {
			n += strings.Count(c.Text, message)
		}
	}
	return n
}

// arrives calls a tool until its result carries the message.
func (s *server) arrives(message string) string {
	s.t.Helper()
	var got string
	n := 0
	until(s.t, "callback "+message, func() bool {
		n++
		got = s.ask(fmt.Sprintf("%s %d", message, n), "TaskManager", `{"action":"list"}`)
		return fired(got, message) > 0
	})
	return got
}

// TestCallbackKilled: kill -9 of the host ends its callbacks, and the next host
// of the user in that workspace gets those that are durable, once, with what
// they have missed counted. Others of the user go on.
func TestCallbackKilled(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first, other := h.serve().shake(), h.serve().shake()
	for _, args := range []string{
		`{"action":"set","message":"durable one","delay_seconds":1,"repeat_count":-1,"durable":true}`,
		`{"action":"set","message":"mortal one","delay_seconds":1,"repeat_count":-1}`,
	} {
		if r := first.ask(args, "SetCallback", args); failed(r) {
			t.Fatal(r)
		}
	}
	if r := other.ask("o", "SetCallback", `{"action":"set","message":"of the other","delay_seconds":1,"repeat_count":1}`); failed(r) || strings.Contains(r, "one") {
		t.Fatal(r)
	}
	first.arrives("durable one")
	first.arrives("mortal one")
	if got := other.arrives("of the other"); fired(got, "one") != 0 {
		t.Errorf("window 1's callback fires in window 2: %s", got)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.end(); err == nil {
		t.Error("it ended by itself")
	}
	other.close()
	second := h.serve().shake()
	second.arrives("durable one")
	if list := second.ask("list", "SetCallback", `{"action":"list"}`); !strings.Contains(list, `"message":"durable one"`) || strings.Contains(list, "mortal") || strings.Contains(list, "of the other") {
		t.Errorf("after kill -9: %s", list)
	}
	if r := second.ask("cancel", "SetCallback", `{"action":"cancel"}`); !strings.Contains(r, `"cancelled":[0]`) {
		t.Error(r)
	}
	second.close()
	third := h.serve().shake()
	if list := third.ask("list", "SetCallback", `{"action":"list"}`); !strings.Contains(list, `"callbacks":[]`) {
		t.Errorf("what was cancelled is back: %s", list)
	}
	third.close()
	h.verify(0)
}

// TestCallbackRestart: what a client that closes its server leaves durable, the
// next one gets; a command that makes one call says that it delivers nothing.
func TestCallbackRestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if out := h.run(0, "call", "SetCallback", `{"action":"set","message":"mortal","delay_seconds":1}`); !strings.Contains(out, "only a durable callback outlives it") {
		t.Errorf("skill call: %s", out)
	}
	h.run(0, "call", "SetCallback", `{"action":"set","message":"by a command","delay_seconds":1,"repeat_count":1,"durable":true}`)
	s := h.serve().shake()
	got := s.arrives("by a command")
	if fired(got, "mortal") != 0 {
		t.Error(got)
	}
	s.ask("set", "SetCallback", `{"action":"set","message":"for the next","delay_seconds":1,"repeat_count":1,"durable":true}`)
	s.close()
	s = h.serve().shake()
	s.arrives("for the next")
	s.close()
	h.verify(0)
}

// TestCallbackForbidden: what the operator forbids is delivered no more, and is
// denied to skills that do not ask for it.
func TestCallbackForbidden(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.serve().shake()
	s.ask("set", "SetCallback", `{"action":"set","message":"every second","delay_seconds":1,"repeat_count":-1}`)
	s.arrives("every second")
	h.write("policy.toml", "[skills.set-callback.deny]\nclient = [\"callback\"]\n")
	s.await(changed, isChanged)
	until(t, "refusal", func() bool {
		r := s.ask("again", "SetCallback", `{"action":"set","message":"more","delay_seconds":1}`)
		return failed(r) && strings.Contains(r, "client.ask callback")
	})
	until(t, "second fire that nobody hears of", func() bool {
		r := s.ask("list", "SetCallback", `{"action":"list"}`)
		if fired(r, "every second") != 0 {
			t.Fatalf("delivered: %s", r)
		}
		return strings.Contains(r, `"pending":`) && !strings.Contains(r, `"pending":0,`) && !strings.Contains(r, `"pending":1,`)
	})
	h.write("policy.toml", "")
	s.arrives("every second")
	s.close()
	h.verify(0)
}
