package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/sdk"
)

const operatorsFile = "/home/ann/.config/skill/policy.toml"

// ruled is a refusal as the host words it for the operator.
func ruled(resource string) error {
	return &sdk.Error{Kind: sdk.Denied, Op: operatorsFile + ":7", What: "the operator does not allow this call",
		Err: errors.New("by " + operatorsFile), Hint: operatorsFile + ":7: to allow it: allow = true",
		Denial: &sdk.Denial{Capability: "call", Resource: resource, Layer: "operator", File: operatorsFile, Line: 7, Allow: "allow = true"}}
}

// tellsNoRules fails if a repeats anything of ruled.
func (a answer) tellsNoRules(t *testing.T) {
	t.Helper()
	for _, secret := range []string{operatorsFile, "policy.toml", "/home", "allow =", "operator", ":7"} {
		if text := fmt.Sprint(a.h, a.err); strings.Contains(text, secret) {
			t.Errorf("a guest is told %q: %s", secret, text)
		}
	}
}

// A call that goes on when its skill has been forbidden writes no state.
func TestLive(t *testing.T) {
	tab, m := newTable(t)
	b := anyone("a")
	var verdict error
	b.Live = func() error { return verdict }
	o := tab.Bind(b)
	if a := ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("before")); a.err != nil {
		t.Fatal(a.err)
	}
	verdict = ruled("a")
	for _, op := range tab.Ops() {
		header, blobs := `{"op":"`+op.Name+`"}`, [][]byte(nil)
		if op.Name == "kv.put" {
			header, blobs = `{"op":"kv.put","key":"k"}`, [][]byte{[]byte("after")}
		}
		t.Run("kv_after_the_skill_was_forbidden/"+op.Name, func(t *testing.T) {
			a := ask(t, o, header, blobs...)
			a.fails(t, sdk.Denied)
			a.tellsNoRules(t)
		})
	}
	for _, bucket := range m.buckets {
		if it, ok := bucket["k"]; ok && string(it.Value) != "before" {
			t.Errorf("wrote %q", it.Value)
		}
	}
	verdict = nil
	ask(t, o, `{"op":"time"}`).is(t, `{"monotonic":1000000000,"now_unix_ns":1800000002000000000}`)
}

// A secret that the operator takes back while a call runs is gone for it.
func TestSecretTakenBackInRunningCall(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "secrets TOKEN")
	now := egress.Secrets{{Name: "TOKEN", Value: "v"}}
	b.Secrets = func() egress.Secrets { return now }
	o := tab.Bind(b)
	ask(t, o, `{"op":"secret.exists","name":"TOKEN"}`).is(t, `{"exists":true}`)
	now = nil
	ask(t, o, `{"op":"secret.exists","name":"TOKEN"}`).is(t, `{"exists":false}`)
	b.Secrets = nil
	ask(t, tab.Bind(b), `{"op":"secret.exists","name":"TOKEN"}`).is(t, `{"exists":false}`)
}

// What refuses a guest is the operator's business: a guest that could read the
// rules would know what to try next, and where the policy is.
func TestGuestIsToldNoRules(t *testing.T) {
	tab, _ := newTable(t)
	l := capability.Layer{Name: "operator", Closed: true, Pos: capability.Pos{File: operatorsFile, Line: 7}, Table: "[skills.a.capabilities] in " + operatorsFile}
	for _, e := range []string{"hello.*"} {
		c, err := capability.Parse(capability.Invoke, e, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		l.Allow = append(l.Allow, c)
	}
	b := anyone("a")
	b.Grant = capability.NewGrant([]capability.Layer{l}, nil)
	var fault error
	b.Invoke = func(context.Context, string, json.RawMessage) (sdk.Result, error) { return sdk.Result{}, fault }
	o := tab.Bind(b)
	for name, header := range map[string]string{
		"secret":  `{"op":"secret.exists","name":"X"}`,
		"network": `{"op":"http.request","url":"https://a.example.com"}`,
		"address": `{"op":"http.request","url":"https://127.0.0.1"}`,
		"invoke":  `{"op":"invoke","tool":"other"}`,
	} {
		t.Run("own_denial/"+name, func(t *testing.T) {
			a := ask(t, o, header)
			a.fails(t, sdk.Denied)
			a.tellsNoRules(t)
		})
	}
	invalid := &sdk.Error{Kind: sdk.Invalid, Op: operatorsFile + ":9", What: `filesystem entry "read:/home/ann/private": no such file`}
	for name, c := range map[string]struct {
		fault error
		kind  sdk.Kind
		says  string
	}{
		"policy":    {ruled(""), sdk.Denied, "call hello.greet"},
		"wrapped":   {fmt.Errorf("dispatch: %w", ruled("x")), sdk.Denied, "call x"},
		"explained": {&sdk.Error{Kind: sdk.Denied, What: "denied: refused by operator " + operatorsFile}, sdk.Denied, "tool hello.greet"},
		"binding":   {invalid, sdk.Invalid, "tool hello.greet"},
		"audit":     {&sdk.Error{Kind: sdk.Unavailable, What: "not recorded", Err: errors.New("open " + operatorsFile)}, sdk.Unavailable, "tool hello.greet"},
		"panic":     {&sdk.Error{Kind: sdk.Internal, Op: "dispatch", What: "panic", Err: errors.New("goroutine 1: /home/x.go:7")}, sdk.Internal, "the host failed"},
		"arguments": {&sdk.Error{Kind: sdk.Invalid, What: "name: want a string", Hint: "give one"}, sdk.Invalid, "name: want a string (give one)"},
	} {
		t.Run("denial_of_an_invoked_tool/"+name, func(t *testing.T) {
			fault = c.fault
			a := ask(t, o, `{"op":"invoke","tool":"hello.greet"}`)
			a.fails(t, c.kind, c.says)
			a.tellsNoRules(t)
		})
	}
}

func TestStoreFailure(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"damaged":    {&sdk.Error{Kind: sdk.Unavailable, Op: "sqlite.Put", What: `store "/home/ann/state.db"`, Hint: "the file is damaged"}, "the file is damaged"},
		"timeout":    {context.DeadlineExceeded, "it takes too long"},
		"permission": {&fs.PathError{Op: "open", Path: "/home/ann/state.db", Err: fs.ErrPermission}, "may not use its file"},
		"other":      {errors.New("open /home/ann/state.db: odd"), "the store does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			tab, m := newTable(t)
			m.before = func(string, string) error { return c.err }
			a := ask(t, tab.Bind(anyone("a")), `{"op":"kv.put","key":"k"}`, []byte("v"))
			a.fails(t, sdk.Unavailable, c.says)
			if strings.Contains(a.err.Error(), "/home") {
				t.Error("tells the host's paths:", a.err)
			}
		})
	}
}
