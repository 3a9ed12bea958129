package streamable

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A header that contradicts the body is refused, whatever it says; the body
// decides.
func TestHeaderLies(t *testing.T) {
	s := serve(t, Options{})
	echo := modernBody("7", "tools/call", `"name":"echo","arguments":{"message":"hello"}`)
	version, method, name := "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo"
	for _, c := range []struct {
		name, body string
		head       []string
		status     int
		code       int
	}{
		{"truth", echo, []string{version, method, name}, 200, 0},
		{"truth_in_base64", echo, []string{version, method, "Mcp-Name: =?base64?" + base64.StdEncoding.EncodeToString([]byte("echo")) + "?="}, 200, 0},
		{"truth_in_spaces", echo, []string{version, method, "Mcp-Name:   echo  "}, 200, 0},
		{"version_missing", echo, []string{method, name}, 400, -32020},
		{"version_other", echo, []string{"Mcp-Protocol-Version: 2025-11-25", method, name}, 400, -32020},
		{"version_newer", echo, []string{"Mcp-Protocol-Version: 2099-01-01", method, name}, 400, -32020},
		{"version_twice", echo, []string{version, "+" + version, method, name}, 400, -32600},
		{"version_only_in_header", call("7", "echo", `{}`), []string{version, method, name}, 400, -32602},
		{"version_unknown_to_both", strings.ReplaceAll(echo, "2026-07-28", "2099-01-01"), []string{"Mcp-Protocol-Version: 2099-01-01", method, name}, 400, -32022},
		{"method_missing", echo, []string{version, name}, 400, -32020},
		{"method_other", echo, []string{version, "Mcp-Method: tools/list", name}, 400, -32020},
		{"method_case", echo, []string{version, "Mcp-Method: Tools/Call", name}, 400, -32020},
		{"method_twice", echo, []string{version, method, "+Mcp-Method: tools/list", name}, 400, -32020},
		{"name_missing", echo, []string{version, method}, 400, -32020},
		{"name_other", echo, []string{version, method, "Mcp-Name: wait"}, 400, -32020},
		{"name_bad_base64", echo, []string{version, method, "Mcp-Name: =?base64?!!?="}, 400, -32020},
		{"uri_other", modernBody("7", "resources/read", `"uri":"test://a"`), []string{version, "Mcp-Method: resources/read", "Mcp-Name: test://b"}, 400, -32020},
		{"prompt_other", modernBody("7", "prompts/get", `"name":"a"`), []string{version, "Mcp-Method: prompts/get", "Mcp-Name: b"}, 400, -32020},
		{"task_other", modernBody("7", "tasks/get", `"taskId":"a"`), []string{version, "Mcp-Method: tasks/get", "Mcp-Name: b"}, 400, -32020},
		{"notification_other", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, []string{version, "Mcp-Method: tools/call"}, 400, -32020},
		{"unknown_method", modernBody("7", "bogus", ""), []string{version, "Mcp-Method: bogus"}, 404, -32601},
		{"legacy_method", modernBody("7", "initialize", ""), []string{version, "Mcp-Method: initialize"}, 404, -32601},
		{"no_abilities", strings.Replace(echo, "clientCapabilities", "x", 1), []string{version, method, name}, 400, -32602},
		{"unknown_tool", modernBody("7", "tools/call", `"name":"none"`), []string{version, method, "Mcp-Name: none"}, 400, -32602},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			before := len(s.seen())
			r := s.post(c.body, c.head...)
			if c.status == 200 {
				if r.status != 200 || !strings.Contains(r.body, `"text":"hello"`) || r.head.Get("Content-Length") == "" {
					t.Errorf("%+v", r)
				}
				return
			}
			isError(t, r, c.status, c.code, "")
			if c.code == -32020 && len(s.seen()) != before {
				t.Error("called nevertheless")
			}
		})
	}
}

func TestParamHeaders(t *testing.T) {
	s := serve(t, Options{})
	full, began := `{"region":"eu","deep":{"n":42,"yes":true}}`, time.Now()
	for _, c := range []struct {
		name, args string
		head       []string
		lie        bool
	}{
		{"truth", full, []string{"Mcp-Param-Region1: eu", "Mcp-Param-Num: 42", "Mcp-Param-Yes: true"}, false},
		{"truth_other_form", `{"region":"é","deep":{"n":42.0,"yes":false}}`, []string{"Mcp-Param-Region1: =?base64?w6k=?=", "Mcp-Param-Num: 4.2e1", "Mcp-Param-Yes: false"}, false},
		{"nothing_to_say", `{"region":null}`, nil, false},
		{"others_do_not_matter", `{}`, []string{"Mcp-Param-Other: x"}, false},
		{"missing", full, []string{"Mcp-Param-Num: 42", "Mcp-Param-Yes: true"}, true},
		{"other_text", full, []string{"Mcp-Param-Region1: us", "Mcp-Param-Num: 42", "Mcp-Param-Yes: true"}, true},
		{"other_number", full, []string{"Mcp-Param-Region1: eu", "Mcp-Param-Num: 43", "Mcp-Param-Yes: true"}, true},
		{"other_truth", full, []string{"Mcp-Param-Region1: eu", "Mcp-Param-Num: 42", "Mcp-Param-Yes: TRUE"}, true},
		{"of_nothing", `{}`, []string{"Mcp-Param-Region1: eu"}, true},
		{"of_null", `{"region":null}`, []string{"Mcp-Param-Region1: eu"}, true},
		{"twice", `{"region":"eu"}`, []string{"Mcp-Param-Region1: eu", "+Mcp-Param-Region1: us"}, true},
		{"of_an_object", `{"region":{}}`, []string{"Mcp-Param-Region1: {}"}, true},
		{"unsafe_number", `{"deep":{"n":9007199254740993}}`, []string{"Mcp-Param-Num: 9007199254740992"}, true},
		{"fraction", `{"deep":{"n":1.5}}`, []string{"Mcp-Param-Num: 1.5"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			r := s.modern("1", "tools/call", "routed", `"name":"routed","arguments":`+c.args, c.head...)
			if c.lie {
				isError(t, r, 400, -32020, "header")
			} else if r.status != 200 {
				t.Errorf("%+v", r)
			}
		})
	}
	// Tools change; the headers follow. The list has two pages, of which the first
	// says that it is the one of before.
	s.mu.Lock()
	if most := 3 + int(time.Since(began).Seconds()); s.lists > most {
		t.Errorf("listed %d times, want %d at most", s.lists, most)
	}
	s.version = 2
	s.mu.Unlock()
	s.t = t
	within(t, func() bool {
		r := s.modern("1", "tools/call", "routed", `"name":"routed","arguments":{"region":"eu"}`, "Mcp-Param-Region1: eu")
		if r.status == 200 {
			return false
		}
		isError(t, r, 400, -32020, "Mcp-Param-Region2")
		return true
	})
}

// Means makes the house know "routed" by two more names, and by an address.
func (h *house) Means(_ sdk.Scope, tool string, args json.RawMessage) (string, json.RawMessage, bool) {
	switch tool {
	case "skill/routed", "skill-engine/routed":
		return "routed", args, true
	case "InvokeSkill":
		var a struct {
			Parameters json.RawMessage `json:"parameters"`
		}
		_ = json.Unmarshal(args, &a)
		return "routed", a.Parameters, false
	}
	return tool, args, true
}

// header_lie_by_other_name: a header that repeats an argument is held to it,
// whatever name the tool is called by.
func TestParamHeadersOfOtherSpellings(t *testing.T) {
	s := serve(t, Options{})
	for _, c := range []struct {
		tool, args string
		head       []string
		lie        string
	}{
		{"skill/routed", `{"region":"eu"}`, []string{"Mcp-Param-Region1: eu"}, ""},
		{"skill/routed", `{"region":"eu"}`, []string{"Mcp-Param-Region1: us"}, "different things"},
		{"skill/routed", `{"region":"eu"}`, nil, "missing"},
		{"skill-engine/routed", `{"region":"eu"}`, []string{"Mcp-Param-Region1: us"}, "different things"},
		{"skill-engine/routed", `{}`, []string{"Mcp-Param-Region1: us"}, "not there"},
		{"InvokeSkill", `{"parameters":{"region":"eu"}}`, []string{"Mcp-Param-Region1: us"}, "different things"},
		{"InvokeSkill", `{"parameters":{}}`, []string{"Mcp-Param-Region1: us"}, "not there"},
		{"InvokeSkill", `{}`, []string{"Mcp-Param-Region1: us"}, "not there"},
		{"InvokeSkill", `{"parameters":{"region":"eu"}}`, []string{"Mcp-Param-Region1: eu", "+Mcp-Param-Region1: eu"}, "more than one"},
		{"InvokeSkill", `{"parameters":{"region":"eu"}}`, []string{"Mcp-Param-Region1: eu"}, ""},
		{"InvokeSkill", `{"parameters":{"region":"eu"}}`, nil, ""}, // the listed schema of that tool asks for no header
		{"echo", `{"region":"eu"}`, []string{"Mcp-Param-Region1: us"}, ""},
	} {
		before := len(s.seen())
		r := s.modern("1", "tools/call", c.tool, `"name":"`+c.tool+`","arguments":`+c.args, c.head...)
		called := len(s.seen()) - before
		if c.lie == "" {
			if called != 1 {
				t.Errorf("%s %s %v: %+v", c.tool, c.args, c.head, r)
			}
			continue
		}
		isError(t, r, 400, -32020, c.lie)
		if called != 0 {
			t.Errorf("%s %s %v: called nevertheless", c.tool, c.args, c.head)
		}
	}
}
