package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

type none struct{}

type argument struct {
	Name  string   `json:"name" doc:"who"`
	Times int      `json:"times,omitempty" default:"2" min:"1"`
	Tags  []string `json:"tags,omitempty"`
}

type answer struct {
	Text string   `json:"text"`
	List []string `json:"list"`
}

func (a answer) String() string { return "says " + a.Text }

var (
	_ = guest.Tool("a.struct", "Structured", func(c *guest.Call, in argument) (answer, error) {
		return answer{Text: fmt.Sprintf("%s%d%v", in.Name, in.Times, in.Tags)}, nil
	}, guest.Title("A struct"), guest.Annotations{ReadOnly: true, OpenWorld: true})
	_ = guest.Tool("b.map", "", func(*guest.Call, none) (map[string]int, error) { return map[string]int{"n": 1}, nil })
	_ = guest.Tool("b.shown", "", func(*guest.Call, none) (string, error) { return "", nil },
		guest.Hidden(), guest.Icon{Src: "https://example.com/a.png"}, guest.Icon{Src: "https://example.com/b.png", Theme: "dark"}, guest.Meta{"ui": map[string]any{"resourceUri": "ui://x"}})
	_ = guest.Tool("c.string", "", func(*guest.Call, none) (string, error) { return "text", nil })
	_ = guest.Tool("d.pointer", "", func(_ *guest.Call, in argument) (*answer, error) {
		if in.Name == "nil" {
			return nil, nil
		}
		return &answer{Text: in.Name}, nil
	})
	_ = guest.Tool("e.result", "", func(*guest.Call, none) (sdk.Result, error) {
		return sdk.Result{Content: []sdk.Content{{Type: sdk.TypeImage, MIME: "image/png", Data: []byte("PNG")}}, Failed: true}, nil
	})
	_ = guest.Tool("f.reply", "", func(_ *guest.Call, in argument) (guest.Reply[answer], error) {
		return guest.Reply[answer]{Text: "look", Content: []sdk.Content{{Type: sdk.TypeImage, Data: []byte("x")}},
			Structured: answer{Text: in.Name}, Failed: in.Name == "failed"}, nil
	})
	_ = guest.Tool("g.raw", "", func(c *guest.Call, in json.RawMessage) (string, error) { return string(in) + string(c.Args()), nil })
	_ = guest.Tool("h.extra", "", func(c *guest.Call, in argument) (string, error) { return in.Name + string(c.Args()), nil }, guest.ExtraArguments())
	_ = guest.Tool("i.error", "", func(_ *guest.Call, in argument) (string, error) {
		switch in.Name {
		case "plain":
			return "", errors.New("broken")
		case "own":
			return "", &sdk.Error{Kind: sdk.Unavailable, What: "gone", Hint: "later"}
		case "wrapped":
			return "", fmt.Errorf("reading: %w", &sdk.Error{Kind: sdk.Denied, What: "no"})
		case "unasked":
			return "", guest.ErrAsk
		case "unencodable":
			return "", &sdk.Error{What: "no kind"}
		}
		var m map[string]int
		m["x"] = 1 //lint:ignore SA5000 the panic is what is tested
		return "", nil
	})
)

func run(t *testing.T, tool, args string) (sdk.Result, error) {
	t.Helper()
	return (&guesttest.Host{}).Call(t.Context(), tool, args)
}

func TestResults(t *testing.T) {
	for _, c := range []struct{ tool, args, text, structured string }{
		{"a.struct", `{"name":"x"}`, "says x2[]", `{"text":"x2[]","list":[]}`},
		{"a.struct", `{"name":"x","times":5,"tags":["a"]}`, "says x5[a]", `{"text":"x5[a]","list":[]}`},
		{"b.map", ``, `{"n":1}`, `{"n":1}`},
		{"c.string", `{}`, "text", ""},
		{"d.pointer", `{"name":"p"}`, "says p", `{"text":"p","list":[]}`},
		{"f.reply", `{"name":"r"}`, "look", `{"text":"r","list":[]}`},
		{"g.raw", `{"any":[1]}`, `{"any":[1]}{"any":[1]}`, ""},
		{"h.extra", `{"name":"n","more":1}`, `n{"name":"n","more":1}`, ""},
	} {
		r, err := run(t, c.tool, c.args)
		if err != nil || r.Failed || r.Content[0].Text != c.text || string(r.Structured) != c.structured {
			t.Errorf("%s %s: got %+v, %v", c.tool, c.args, r, err)
		}
	}
	r, err := run(t, "e.result", "{}")
	if err != nil || !r.Failed || string(r.Content[0].Data) != "PNG" {
		t.Errorf("e.result: %+v, %v", r, err)
	}
	r, err = run(t, "f.reply", `{"name":"failed"}`)
	if err != nil || !r.Failed || r.Structured != nil || len(r.Content) != 2 {
		t.Errorf("f.reply: %+v, %v", r, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		tool, args string
		kind       sdk.Kind
		text       string
	}{
		{"i.error", `{"name":"plain"}`, sdk.Guest, "broken"},
		{"i.error", `{"name":"own"}`, sdk.Unavailable, "gone (later)"},
		{"i.error", `{"name":"wrapped"}`, sdk.Denied, "reading: no"},
		{"i.error", `{"name":"unasked"}`, sdk.Guest, guest.ErrAsk.Error()},
		{"i.error", `{"name":"unencodable"}`, sdk.Guest, "no kind"},
		{"i.error", `{"name":"panic"}`, sdk.Guest, "the tool panicked: assignment to entry in nil map"},
		{"d.pointer", `{"name":"nil"}`, sdk.Guest, "the tool returned nothing"},
		{"a.struct", `{"name":5}`, sdk.Invalid, "the arguments do not fit"},
		{"a.struct", `[]`, sdk.Invalid, "the arguments do not fit"},
		{"absent", `{}`, sdk.NotFound, `no tool "absent"`},
	} {
		r, err := run(t, c.tool, c.args)
		if sdk.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) || r.Content != nil {
			t.Errorf("%s %s: got %+v, %v", c.tool, c.args, r, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	tools, err := guesttest.Describe()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]sdk.Tool{}
	last := ""
	for _, tool := range tools {
		if tool.Name <= last {
			t.Errorf("%q after %q", tool.Name, last)
		}
		last = tool.Name
		by[tool.Name] = tool
	}
	a := by["a.struct"]
	if string(a.Input) != `{"type":"object","properties":{"name":{"type":"string","description":"who"},"times":{"type":"integer","minimum":1,"default":2},"tags":{"type":"array","items":{"type":"string"}}},"required":["name"],"additionalProperties":false}` {
		t.Errorf("input %s", a.Input)
	}
	if string(a.Output) != `{"type":"object","properties":{"text":{"type":"string"},"list":{"type":"array","items":{"type":"string"}}},"required":["text","list"]}` {
		t.Errorf("output %s", a.Output)
	}
	if a.Title != "A struct" || a.Description != "Structured" || !*a.Annotations.ReadOnly || *a.Annotations.Destructive || *a.Annotations.Idempotent || !*a.Annotations.OpenWorld {
		t.Errorf("%+v", a)
	}
	if string(by["d.pointer"].Output) != string(a.Output) || string(by["f.reply"].Output) != string(a.Output) || by["c.string"].Output != nil || by["e.result"].Output != nil {
		t.Error("output schemas of the other results")
	}
	if string(by["g.raw"].Input) != `{"type":"object"}` || strings.Contains(string(by["h.extra"].Input), "additionalProperties") {
		t.Errorf("raw %s, extra %s", by["g.raw"].Input, by["h.extra"].Input)
	}
	if s := by["b.shown"]; !s.Hidden || len(s.Icons) != 2 || s.Icons[1].Theme != "dark" || string(s.Meta) != `{"ui":{"resourceUri":"ui://x"}}` {
		t.Errorf("hidden, icons, meta: %+v", s)
	}
	if wrong, err := guesttest.Disagreements(tools); err != nil || wrong != nil {
		t.Errorf("with itself: %q, %v", wrong, err)
	}
	a.Input = json.RawMessage(`{"type":"object"}`)
	c := by["c.string"]
	c.Title = "other"
	wrong, err := guesttest.Disagreements([]sdk.Tool{a, c, {Name: "absent"}})
	if err != nil || len(wrong) != len(tools)-2+3 || !strings.Contains(wrong[0], `the input of tool "a.struct"`) || !strings.Contains(wrong[1], "title") || !strings.Contains(wrong[2], `"absent" is not in the program`) {
		t.Errorf("%d: %q, %v", len(wrong), wrong, err)
	}
}

func TestToolPanics(t *testing.T) {
	for want, register := range map[string]func(){
		"registered twice":         func() { guest.Tool("a.struct", "", func(*guest.Call, none) (string, error) { return "", nil }) },
		"arguments of type string": func() { guest.Tool("x", "", func(*guest.Call, string) (string, error) { return "", nil }) },
		"a result of type int":     func() { guest.Tool("x", "", func(*guest.Call, none) (int, error) { return 0, nil }) },
		"no JSON form": func() {
			guest.Tool("x", "", func(*guest.Call, struct{ C chan int }) (string, error) { return "", nil })
		},
		"schema of struct { F func()":  func() { guest.Tool("x", "", func(*guest.Call, none) (struct{ F func() }, error) { panic("never") }) },
		"a result of type guest_test.": func() { guest.Tool("x", "", func(*guest.Call, none) (number, error) { return 0, nil }) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, want) {
					t.Errorf("want %q, got %q", want, p)
				}
			}()
			register()
		}()
	}
}

type number int

var kv, web, ask, events, waiting func(*guest.Call) (string, error)

// via lets a test say what a tool does.
func via(f *func(*guest.Call) (string, error)) func(*guest.Call, none) (string, error) {
	return func(c *guest.Call, _ none) (string, error) { return (*f)(c) }
}

var (
	_ = guest.Tool("kv", "", via(&kv))
	_ = guest.Tool("web", "", via(&web))
	_ = guest.Tool("ask", "", via(&ask))
	_ = guest.Tool("events", "", via(&events))
	_ = guest.Tool("waiting", "", via(&waiting))
)

func TestKV(t *testing.T) {
	kv = func(c *guest.Call) (string, error) {
		v, version, err := c.KV.Get("a")
		if v != nil || version != 0 || err != nil {
			return "", fmt.Errorf("absent: %q %d %w", v, version, err)
		}
		one, err := c.KV.Put("a", []byte("1"), 0)
		if err != nil {
			return "", err
		}
		if _, err := c.KV.Put("a", []byte("2"), 0); !errors.Is(err, guest.ErrConflict) {
			return "", fmt.Errorf("put over: %w", err)
		}
		if _, err := c.KV.Put("a", []byte{}, guest.AnyVersion); err != nil {
			return "", err
		}
		if v, version, err = c.KV.Get("a"); len(v) != 0 || version <= one || err != nil {
			return "", fmt.Errorf("empty: %q %d %w", v, version, err)
		}
		if err := c.KV.Delete("a", one); !errors.Is(err, guest.ErrConflict) {
			return "", fmt.Errorf("delete: %w", err)
		}
		if _, version, err := c.KV.In("session").Get("a"); version != 0 || err != nil {
			return "", fmt.Errorf("another scope: %d %w", version, err)
		}
		for _, k := range []string{"b", "bb", "c"} {
			if _, err := c.KV.Put(k, []byte("x"), 0); err != nil {
				return "", err
			}
		}
		items, err := c.KV.List("b", "", 0)
		if err != nil || len(items) != 2 || items[0].Key != "b" || items[1].Size != 1 {
			return "", fmt.Errorf("list: %v %w", items, err)
		}
		if items, err = c.KV.List("", "b", 1); err != nil || len(items) != 1 || items[0].Key != "bb" {
			return "", fmt.Errorf("page: %v %w", items, err)
		}
		_, err = c.KV.Put("big", make([]byte, guesttest.MaxValue+1), 0)
		if sdk.KindOf(err) != sdk.Limit {
			return "", fmt.Errorf("big: %w", err)
		}
		return "ok", c.KV.Delete("a", guest.AnyVersion)
	}
	if r, err := run(t, "kv", "{}"); err != nil || r.Content[0].Text != "ok" {
		t.Error(r, err)
	}
}

func TestOperations(t *testing.T) {
	now := time.Unix(1_700_000_000, 5)
	h := &guesttest.Host{Secrets: []string{"TOKEN"}, Now: func() time.Time { return now },
		HTTP: func(r guest.Request) (*guest.Response, error) {
			if r.URL == "https://denied.example" {
				return nil, &sdk.Error{Kind: sdk.Denied, What: "network", Denial: &sdk.Denial{Layer: "manifest", Line: 3}}
			}
			return &guest.Response{Status: 201, URL: r.URL, Header: r.Header, Body: []byte(fmt.Sprintf("%s%s%v%d%t", r.Method, r.Body, r.Timeout, r.Most, r.KeepRedirects))}, nil
		},
		Invoke: func(tool string, args json.RawMessage) (sdk.Result, error) {
			return sdk.Result{Content: []sdk.Content{{Type: sdk.TypeText, Text: tool + string(args)}, {Type: sdk.TypeImage, Data: []byte("img")}}, Failed: true}, nil
		},
	}
	web = func(c *guest.Call) (string, error) {
		r, err := c.Do(guest.Request{URL: "https://x", Header: map[string][]string{"A": {"1", "2"}}})
		if err != nil || r.Status != 201 || string(r.Body) != "GET0s0false" || !reflect.DeepEqual(r.Header, map[string][]string{"A": {"1", "2"}}) {
			return "", fmt.Errorf("get: %+v %w", r, err)
		}
		r, err = c.Do(guest.Request{Method: "POST", URL: "https://x", Body: []byte("body"), Timeout: time.Second, Most: 9, KeepRedirects: true})
		if err != nil || string(r.Body) != "POSTbody1s9true" {
			return "", fmt.Errorf("post: %+v %w", r, err)
		}
		odd := map[string][]string{"A": {"quote \" slash \\ é \x01"}, "None": nil, "Z": {""}}
		if r, err = c.Do(guest.Request{URL: "https://x/?q=<&>\u2028", Header: odd}); err != nil || r.URL != "https://x/?q=<&>\u2028" || !reflect.DeepEqual(r.Header, map[string][]string{"A": odd["A"], "Z": {""}}) {
			return "", fmt.Errorf("odd texts: %+v %w", r, err)
		}
		if r, err = c.Do(guest.Request{URL: "https://x", Header: map[string][]string{"None": nil}}); err != nil || len(r.Header) != 0 {
			return "", fmt.Errorf("no headers: %+v %w", r, err)
		}
		_, err = c.Do(guest.Request{URL: "https://denied.example"})
		var e *sdk.Error
		if !errors.As(err, &e) || e.Kind != sdk.Denied || e.Denial.Line != 3 {
			return "", fmt.Errorf("denied: %w", err)
		}
		got, err := c.Invoke("other", map[string]int{"n": 1})
		if err != nil || !got.Failed || got.Content[0].Text != `other{"n":1}` || string(got.Content[1].Data) != "img" {
			return "", fmt.Errorf("invoke: %+v %w", got, err)
		}
		if got, err = c.Invoke("other", nil); err != nil || got.Content[0].Text != "other" {
			return "", fmt.Errorf("invoke without arguments: %+v %w", got, err)
		}
		for name, want := range map[string]bool{"TOKEN": true, "OTHER": false} {
			if got, err := c.SecretExists(name); got != want || err != nil {
				return "", fmt.Errorf("secret %s: %v %w", name, got, err)
			}
		}
		if got, err := c.Now(); !got.Equal(now) || err != nil {
			return "", fmt.Errorf("now: %v %w", got, err)
		}
		for _, bad := range []*guest.Op{c.Start("no.such", nil), c.Start("time", []int{1}), c.Start("time", func() {})} {
			if _, err := bad.Wait(); err == nil {
				return "", errors.New("a bad request was answered")
			}
			if _, err := guest.WaitAny(bad); err != nil {
				return "", err
			}
		}
		if _, err := guest.WaitAny(); err == nil {
			return "", errors.New("waited for nothing")
		}
		return "ok", nil
	}
	if r, err := h.Call(t.Context(), "web", "{}"); err != nil || r.Content[0].Text != "ok" {
		t.Error(r, err)
	}
}

// TestManyAtOnce: operations that are answered only once all are asked.
func TestManyAtOnce(t *testing.T) {
	const n = 12
	var all sync.WaitGroup
	all.Add(n)
	h := &guesttest.Host{HTTP: func(r guest.Request) (*guest.Response, error) {
		all.Done()
		all.Wait()
		return &guest.Response{Status: 200, Body: []byte(r.URL)}, nil
	}}
	waiting = func(c *guest.Call) (string, error) {
		var ops []*guest.Op
		for i := range n {
			ops = append(ops, c.Start("http.request", map[string]string{"method": "GET", "url": fmt.Sprint(i)}))
		}
		i, err := guest.WaitAny(ops...)
		if err != nil {
			return "", err
		}
		f, err := ops[i].Wait()
		if err != nil || string(f.Blobs[0]) != fmt.Sprint(i) {
			return "", fmt.Errorf("op %d: %v %w", i, f, err)
		}
		if again, err := guest.WaitAny(ops[i]); again != 0 || err != nil {
			return "", fmt.Errorf("again: %w", err)
		}
		for i, o := range ops {
			if f, err := o.Wait(); err != nil || string(f.Blobs[0]) != fmt.Sprint(i) {
				return "", fmt.Errorf("op %d: %v %w", i, f, err)
			}
		}
		return "ok", nil
	}
	if r, err := h.Call(t.Context(), "waiting", "{}"); err != nil || r.Content[0].Text != "ok" {
		t.Error(r, err)
	}
}

// TestWaitAnyFor: waiting ends when its time is over, the operation does not.
func TestWaitAnyFor(t *testing.T) {
	answer := make(chan struct{})
	h := &guesttest.Host{HTTP: func(r guest.Request) (*guest.Response, error) {
		<-answer
		return &guest.Response{Status: 200, URL: r.URL}, nil
	}}
	waiting = func(c *guest.Call) (string, error) {
		o := c.StartRequest(guest.Request{URL: "https://x"})
		for _, d := range []time.Duration{-1, 0, time.Millisecond} {
			if i, err := guest.WaitAnyFor(d, o); i != -1 || err != nil {
				return "", fmt.Errorf("for %v: %d %w", d, i, err)
			}
		}
		close(answer)
		if i, err := guest.WaitAnyFor(time.Hour, o); i != 0 || err != nil {
			return "", fmt.Errorf("answered: %d %w", i, err)
		}
		r, err := o.Response()
		if err != nil || r.URL != "https://x" {
			return "", fmt.Errorf("%+v %w", r, err)
		}
		if _, err := guest.WaitAnyFor(time.Hour); err == nil {
			return "", errors.New("waited for nothing")
		}
		return "ok", nil
	}
	if r, err := h.Call(t.Context(), "waiting", "{}"); err != nil || r.Content[0].Text != "ok" {
		t.Error(r, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	block := make(chan struct{})
	defer close(block)
	h := &guesttest.Host{HTTP: func(guest.Request) (*guest.Response, error) { cancel(); <-ctx.Done(); return nil, ctx.Err() }}
	waiting = func(c *guest.Call) (string, error) {
		derived, stop := context.WithCancel(c.Context())
		defer stop()
		if c.Cancelled() || derived.Err() != nil {
			return "", errors.New("cancelled too early")
		}
		_, err := c.Do(guest.Request{URL: "x"})
		if err == nil || !c.Cancelled() || c.Context().Err() == nil {
			return "", fmt.Errorf("not cancelled: %w", err)
		}
		<-derived.Done()
		if _, err := c.Start("time", nil).Wait(); err == nil {
			return "", errors.New("an operation after the end")
		}
		return "last words", nil
	}
	if r, err := h.Call(ctx, "waiting", "{}"); err != nil || r.Content[0].Text != "last words" {
		t.Error(r, err)
	}
}

func TestEvents(t *testing.T) {
	events = func(c *guest.Call) (string, error) {
		c.Progress(1, 2, "half")
		c.Log("warning", "careful")
		if err := c.Partial(sdk.Content{Type: sdk.TypeImage, Data: []byte("part")}); err != nil {
			return "", err
		}
		v, ok := c.Env("LANG")
		_, no := c.Env("HOME")
		return fmt.Sprintf("%s %s %s %t %s %t %t %d", c.Tool(), c.ID(), c.Scope().Session, c.Client().Form, v, ok, no, len(c.Environ())), nil
	}
	h := &guesttest.Host{}
	r, err := guest.Run(t.Context(), h, sdk.Input{Tool: "events", Call: "c1", Scope: sdk.Scope{Session: "s"}, Client: sdk.Client{Form: true}, Env: map[string]string{"LANG": "C"}})
	if err != nil || r.Content[0].Text != "events c1 s true C true false 1" {
		t.Errorf("%+v, %v", r, err)
	}
	want := []sdk.Event{
		{Kind: sdk.EventProgress, Progress: 1, Total: 2, Message: "half"},
		{Kind: sdk.EventLog, Level: "warning", Message: "careful"},
		{Kind: sdk.EventPartial, Content: sdk.Content{Type: sdk.TypeImage, Data: []byte("part")}},
	}
	if got := h.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
