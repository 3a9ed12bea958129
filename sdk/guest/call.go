package guest

import (
	"context"
	"encoding/json"
	"maps"
	"sync"

	"github.com/skillhost/skill/sdk"
)

// A Call is one run of a tool. It may be used by several goroutines of the
// handler, and not after the handler has returned.
type Call struct {
	KV KV // the workspace's keys; KV.In gives other scopes

	in   sdk.Input
	port *port
	ctx  *callContext

	mu    sync.Mutex
	asked map[string]sdk.Question // not answered yet
	state state
}

func newCall(ctx context.Context, p *port, in sdk.Input) (*Call, error) {
	c := &Call{in: in, port: p, asked: map[string]sdk.Question{}}
	c.KV = KV{c: c}
	c.ctx = &callContext{port: p}
	c.ctx.Context, c.ctx.cancel = context.WithCancelCause(ctx)
	if err := c.state.read(in); err != nil {
		return nil, err
	}
	return c, nil
}

// Tool returns the name of the tool that is called.
func (c *Call) Tool() string { return c.in.Tool }

// ID returns the call's id in the audit log.
func (c *Call) ID() string { return c.in.Call }

// Scope says for whom and where the call runs.
func (c *Call) Scope() sdk.Scope { return c.in.Scope }

// Client says what the caller's client can do for a tool: show its user a form
// or a URL, ask its model, list its roots.
func (c *Call) Client() sdk.Client { return c.in.Client }

// Env returns the environment variable name, if it is set and granted.
func (c *Call) Env(name string) (string, bool) { v, ok := c.in.Env[name]; return v, ok }

// Environ returns all environment variables that are granted.
func (c *Call) Environ() map[string]string { return maps.Clone(c.in.Env) }

// Args returns the arguments as they came: a JSON object, or nil for {}.
func (c *Call) Args() json.RawMessage { return c.in.Args }

// Settings decodes what the operator set for the skill, in the host's
// config.toml, into the value that into points to. What was not set is not
// changed. The host has checked it against the manifest's settings schema.
func (c *Call) Settings(into any) error {
	if len(c.in.Settings) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.in.Settings, into); err != nil {
		return &sdk.Error{Kind: sdk.Guest, What: "the skill's settings", Err: err}
	}
	return nil
}

// Progress says how much is done, of how much (0 if not known), and what is
// going on.
func (c *Call) Progress(done, total float64, message string) {
	c.emitJSON(sdk.EmitProgress, struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total,omitempty"`
		Message  string  `json:"message,omitempty"`
	}{done, total, message})
}

// Log writes a line to the host's log. level is "debug", "info", "notice",
// "warning", "error", "critical", "alert" or "emergency".
func (c *Call) Log(level, message string) {
	c.emitJSON(sdk.EmitLog, struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}{level, message})
}

func (c *Call) emitJSON(kind int32, v any) {
	if b, err := json.Marshal(v); err == nil {
		c.port.emit(kind, b)
	}
}

// Partial shows content before the tool is done, and restarts its timeout. The
// error has kind sdk.Limit if the call's output is used up.
func (c *Call) Partial(content sdk.Content) error {
	b, err := sdk.AppendContent(nil, content)
	if err != nil {
		return err
	}
	return misuse("partial", c.port.emit(sdk.EmitPartial, b))
}

// Cancelled reports whether the call is to end: its caller went away, or its
// time is nearly over. What the tool returns soon is still delivered.
func (c *Call) Cancelled() bool { return c.ctx.Err() != nil }

// Context is cancelled when Cancelled turns true. Nothing interrupts a WASM
// guest, so that is noticed by its Err and Done and by every wait for an
// operation, not by a context derived from it in a loop that does none of
// these.
func (c *Call) Context() context.Context { return c.ctx }

// callContext polls the host whenever it is asked.
type callContext struct {
	context.Context
	cancel context.CancelCauseFunc
	port   *port
}

func (c *callContext) poll() {
	if c.Context.Err() == nil && c.port.cancelled() {
		c.cancel(c.port.why())
	}
}

func (c *callContext) Done() <-chan struct{} { c.poll(); return c.Context.Done() }
func (c *callContext) Err() error            { c.poll(); return c.Context.Err() }
