//go:build !wasip1

// Package guesttest is a host in memory, for the tests of skill authors: it
// keeps keys, layers and timers, runs background jobs, answers HTTP requests and invocations
// through functions, and remembers what the tool emitted. It checks no capability; that a call has
// them is for the real host and the skill's manifest.
package guesttest

import (
	"context"
	"encoding/json"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// A Host serves the operations of package guest. The zero Host is ready: it
// has no keys and no secrets, and its clock is the machine's. Operations whose
// field is nil fail as if they were not granted.
type Host struct {
	HTTP     func(guest.Request) (*guest.Response, error)
	Invoke   func(tool string, args json.RawMessage) (sdk.Result, error)
	Secrets  []string         // the names that are bound
	Settings json.RawMessage  // what the operator set for the skill
	Now      func() time.Time // nil: time.Now

	mu     sync.Mutex
	keys   map[string]value // by scope and key
	serial int64            // versions never repeat
	events []sdk.Event
	news   []string
	jobs   jobs
	layers []guest.PushedLayer
	timers timers
}

// MaxValue is the largest value of a key, bytes, as in the real host.
const MaxValue = 1 << 20

type value struct {
	data    []byte
	version int64
}

// Call runs a tool of this program with args, JSON or a value that encodes as
// a JSON object.
func (h *Host) Call(ctx context.Context, tool string, args any) (sdk.Result, error) {
	raw, ok := args.(json.RawMessage)
	if s, isString := args.(string); isString {
		raw, ok = json.RawMessage(s), true
	}
	if !ok {
		var err error
		if raw, err = json.Marshal(args); err != nil {
			return sdk.Result{}, err
		}
	}
	c := &caller{Host: h, in: sdk.Input{Tool: tool, Args: raw, Settings: h.Settings, Scope: sdk.Scope{Caller: "local:test", Workspace: "/workspace", Session: "test"}}}
	defer c.end()
	return guest.Run(ctx, c, c.in)
}

// Events returns what was emitted so far.
func (h *Host) Events() []sdk.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]sdk.Event(nil), h.events...)
}

// Announced returns what was announced so far: kinds of lists, and URIs.
func (h *Host) Announced() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.news...)
}

// Emit implements guest.Host.
func (h *Host) Emit(e sdk.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// request is the union of all operations' headers.
type request struct {
	Op      string          `json:"op"`
	Key     string          `json:"key"`
	Scope   string          `json:"scope"`
	Version *int64          `json:"version"`
	Prefix  string          `json:"prefix"`
	After   string          `json:"after"`
	Limit   int             `json:"limit"`
	Name    string          `json:"name"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Kind    string          `json:"kind"`
	URI     string          `json:"uri"`
	web
}

type web struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Headers  [][2]string `json:"headers"`
	Redirect string      `json:"redirect"`
	Timeout  int64       `json:"timeout_ms"`
	Most     int64       `json:"max_bytes"`
}

// Do implements guest.Host. Jobs and output belong to a call: Host.Call has them.
func (h *Host) Do(ctx context.Context, f sdk.Frame) ([]byte, error) {
	var r request
	if err := json.Unmarshal(f.Header, &r); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &sdk.Error{Kind: sdk.Canceled, What: "the call is cancelled"}
	}
	switch r.Op {
	case "kv.get", "kv.put", "kv.delete", "kv.list":
		return h.kv(r, f.Blobs)
	case "time":
		now := time.Now
		if h.Now != nil {
			now = h.Now
		}
		return reply(map[string]any{"now_unix_ns": now().UnixNano()})
	case "secret.exists":
		exists := false
		for _, s := range h.Secrets {
			exists = exists || s == r.Name
		}
		return reply(map[string]any{"exists": exists})
	case "announce":
		h.mu.Lock()
		defer h.mu.Unlock()
		h.news = append(h.news, r.Kind+r.URI)
		return reply(map[string]any{})
	case "layer.list", "layer.pop", "layer.push":
		return h.layer(r.Op, f.Header)
	case "timer.set", "timer.list", "timer.cancel", "inbox.read", "inbox.ack":
		return h.timer(r.Op, f.Header)
	case "http.request":
		return h.web(r, f.Blobs)
	case "invoke":
		if h.Invoke == nil {
			return nil, denied(r.Op)
		}
		result, err := h.Invoke(r.Tool, r.Args)
		if err != nil {
			return nil, err
		}
		return sdk.AppendResult(nil, result)
	}
	return nil, &sdk.Error{Kind: sdk.Unavailable, Op: r.Op, What: "this host has no such operation"}
}

func (h *Host) web(r request, blobs [][]byte) ([]byte, error) {
	if h.HTTP == nil {
		return nil, denied(r.Op)
	}
	q := guest.Request{Method: r.Method, URL: r.URL, Header: map[string][]string{}, Most: r.Most,
		Timeout: time.Duration(r.Timeout) * time.Millisecond, KeepRedirects: r.Redirect == "manual"}
	for _, h := range r.Headers {
		q.Header[h[0]] = append(q.Header[h[0]], h[1])
	}
	if len(blobs) > 0 {
		q.Body = blobs[0]
	}
	a, err := h.HTTP(q)
	if err != nil {
		return nil, err
	}
	headers := [][2]string{}
	for name, values := range a.Header {
		for _, v := range values {
			headers = append(headers, [2]string{name, v})
		}
	}
	return reply(map[string]any{"status": a.Status, "headers": headers, "url": a.URL}, a.Body)
}

func (h *Host) kv(r request, blobs [][]byte) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Scope == "" {
		r.Scope = "workspace"
	}
	at := r.Scope + "\x00" + r.Key
	old := h.keys[at]
	if r.Version != nil && *r.Version != old.version {
		return reply(map[string]any{"conflict": true, "version": old.version})
	}
	switch r.Op {
	case "kv.get":
		if old.version == 0 {
			return reply(map[string]any{"found": false})
		}
		return reply(map[string]any{"found": true, "version": old.version}, old.data)
	case "kv.put":
		if len(blobs) != 1 {
			return nil, &sdk.Error{Kind: sdk.Invalid, Op: r.Op, What: "want one blob"}
		}
		if len(blobs[0]) > MaxValue {
			return nil, &sdk.Error{Kind: sdk.Limit, Op: r.Op, What: "the value is too large"}
		}
		return reply(map[string]any{"version": h.put(at, blobs[0])})
	case "kv.delete":
		delete(h.keys, at)
		return reply(map[string]any{"deleted": old.version != 0})
	}
	return h.list(r)
}

func (h *Host) list(r request) ([]byte, error) {
	items := []guest.Item{}
	for at, v := range h.keys {
		scope, key, _ := strings.Cut(at, "\x00")
		if scope == r.Scope && strings.HasPrefix(key, r.Prefix) && key > r.After {
			items = append(items, guest.Item{Key: key, Version: v.version, Size: int64(len(v.data))})
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].Key < items[j].Key })
	if r.Limit > 0 && len(items) > r.Limit {
		items = items[:r.Limit]
	}
	return reply(map[string]any{"items": items})
}

func reply(header map[string]any, blobs ...[]byte) ([]byte, error) {
	h, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	return sdk.AppendFrame(nil, h, blobs...), nil
}

func denied(op string) error {
	return &sdk.Error{Kind: sdk.Denied, Op: op, What: "not granted by the test's host"}
}

// Set writes a key as if an earlier call had.
func (h *Host) Set(scope, key string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(scope+"\x00"+key, data)
}

// Get returns what a key holds, nil if there is none.
func (h *Host) Get(scope, key string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]byte(nil), h.keys[scope+"\x00"+key].data...)
}

// put writes a key and returns its new version. h is locked.
func (h *Host) put(at string, data []byte) int64 {
	if h.keys == nil {
		h.keys = map[string]value{}
	}
	h.serial++
	h.keys[at] = value{append([]byte(nil), data...), h.serial}
	return h.serial
}
