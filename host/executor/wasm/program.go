package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

// A program is a compiled module that keeps to its ABI.
type program struct {
	engine    *engine
	compiled  wazero.CompiledModule
	config    wazero.ModuleConfig // of every call
	abi       string
	skill     string
	minMemory int64 // bytes that an instance starts with
}

// Close implements io.Closer.
func (p *program) Close() error { return p.compiled.Close(context.Background()) }

// Run implements executor.Program.
func (p *program) Run(ctx context.Context, j executor.Job) (r sdk.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			r, err = sdk.Result{}, bug("wasm.Run", v)
		}
	}()
	if ctx.Err() != nil {
		return sdk.Result{}, executor.Ended(ctx)
	}
	if p.minMemory > j.Limits.Memory {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, Op: "wasm.Run", What: fmt.Sprintf("the tool needs %d bytes of memory to start, and it may have %d", p.minMemory, j.Limits.Memory), Hint: "limits.memory"}
	}
	c := newCall(ctx, p.engine, &j)
	defer c.handles.end()
	if p.abi == abiCommand {
		return c.command(p)
	}
	return c.skill(p)
}

// skill runs a guest of ABI skill/1.
func (c *call) skill(p *program) (sdk.Result, error) {
	header, err := json.Marshal(&c.job.Input)
	if err != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Internal, Op: "wasm.Run", What: "the call's input", Err: err}
	}
	c.handles.input(sdk.AppendFrame(nil, header))
	mod, ctx, release, err := c.instantiate(p, p.config.WithStdout(&c.stdout))
	defer release()
	if err != nil {
		return sdk.Result{}, c.failure(err)
	}
	status, err := enter(ctx, mod)
	c.stdout.flush()
	c.stderr.flush()
	switch {
	case err != nil && !(c.answer.given && exitedWell(err)):
		return sdk.Result{}, c.failure(err)
	case status != 0:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("the tool failed with status %d", status), Err: c.last()}
	case !c.answer.given && c.output.full:
		return sdk.Result{}, c.overflow()
	case !c.answer.given:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: "the tool ended without a result", Err: c.last()}
	}
	return c.answer.result, c.answer.err
}

// enter initialises the instance and makes its one call.
func enter(ctx context.Context, mod api.Module) (status int32, err error) {
	if f := mod.ExportedFunction("_initialize"); f != nil {
		if err := f.CallWithStack(ctx, nil); err != nil {
			return 0, err
		}
	}
	var stack [1]uint64
	err = mod.ExportedFunction("skill_call").CallWithStack(ctx, stack[:])
	return api.DecodeI32(stack[0]), err
}

// exitedWell reports whether the guest called exit with status 0.
func exitedWell(err error) bool {
	var exit *sys.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 0
}

// reply takes the guest's result or error.
func (c *call) reply(frame []byte) int32 {
	r, err := sdk.ParseResult(frame)
	var e *sdk.Error
	switch {
	case err == nil:
		c.answer.result = r
	case errors.As(err, &e):
		c.answer.err = executor.GuestError(e)
	default:
		return sdk.ErrInval
	}
	c.answer.given = true
	return 0
}

// command runs a guest of ABI command/1.
func (c *call) command(p *program) (sdk.Result, error) {
	args := []byte(c.job.Input.Args)
	if len(args) == 0 {
		args = []byte("{}")
	}
	out := &capture{call: c}
	config := p.config.WithArgs(p.skill, c.job.Input.Tool).WithStdin(bytes.NewReader(args)).WithStdout(out)
	for _, name := range slices.Sorted(maps.Keys(c.job.Input.Env)) {
		if name != "PWD" && c.job.Grant.Allows(capability.Access{Kind: capability.Env, Verb: capability.Read, Target: name}) {
			config = config.WithEnv(name, c.job.Input.Env[name])
		}
	}
	if set := c.job.Input.Settings; len(set) > 0 {
		config = config.WithEnv(executor.SettingsEnv, string(set))
	}
	mod, ctx, release, err := c.instantiate(p, config)
	defer release()
	if err == nil {
		err = mod.ExportedFunction("_start").CallWithStack(ctx, nil)
	}
	c.stderr.flush()
	if err != nil && (c.stopped != nil || !exitedWell(err)) {
		return sdk.Result{}, c.failure(err)
	}
	return out.result(), nil
}

// capture is the stdout of a command: its result.
type capture struct {
	call  *call
	bytes []byte
}

// Write never fails: it stops the guest if there is too much output.
func (o *capture) Write(p []byte) (int, error) {
	o.call.check()
	o.call.spend(len(p))
	o.bytes = append(o.bytes, p...)
	return len(p), nil
}

// result is the output as text, and as structured content as well if it is one
// JSON object or array.
func (o *capture) result() sdk.Result {
	r := sdk.Text(strings.ToValidUTF8(string(o.bytes), "\uFFFD"))
	if trimmed := bytes.TrimSpace(o.bytes); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed) {
		r.Structured = trimmed
	}
	return r
}
