package wasm

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Modules that must not load, and what the author is told.
func TestLoadRefuses(t *testing.T) {
	good := undescribed(replyHello)
	with := func(change func(*guest)) []byte {
		g := undescribed(i32Const(0))
		change(&g)
		return g.bytes()
	}
	import_ := func(module, name string, params, results int) []byte {
		return with(func(g *guest) {
			g.imports = append(g.imports[:2:2], imported{module, name, params, results})
		})
	}
	for name, c := range map[string]struct {
		abi    string
		module []byte
		says   string
	}{
		"empty":                {"skill/1", nil, "not a WebAssembly module"},
		"text":                 {"skill/1", []byte("(module)"), "not a WebAssembly module"},
		"component":            {"skill/1", []byte("\x00asm\x0d\x00\x01\x00more"), "component"},
		"version":              {"skill/1", []byte("\x00asm\x02\x00\x00\x00"), ""},
		"header_only":          {"skill/1", []byte("\x00asm\x01\x00\x00\x00"), ""},
		"truncated":            {"skill/1", good.bytes()[:80], ""},
		"huge_section":         {"skill/1", []byte("\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\xff\x0f"), ""},
		"huge_count":           {"skill/1", []byte("\x00asm\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f"), ""},
		"unknown_abi":          {"skill/2", good.bytes(), "known: skill/1, command/1"},
		"unknown_import":       {"skill/1", import_("skill", "stat", 2, 1), `did you mean "start"?`},
		"unknown_module":       {"skill/1", import_("wasi_snapshot_preview2", "fd_write", 4, 1), `did you mean "wasi_snapshot_preview1"?`},
		"env_module":           {"skill/1", import_("env", "abort", 4, 0), "wasm32-wasip1"},
		"js_module":            {"skill/1", import_("gojs", "runtime.wasmExit", 1, 0), "GOOS=wasip1"},
		"long_import":          {"skill/1", import_("skill", strings.Repeat("x", 1<<20), 1, 0), "xxx…"},
		"import_type":          {"skill/1", import_("skill", "start", 3, 1), "instead of (i32, i32) → (i32)"},
		"meter_import":         {"skill/1", import_("skill:meter", "tick", 0, 0), "skill:meter"},
		"command_uses_skill":   {"command/1", with(func(g *guest) { g.funcs[0].export = "_start" }), `does not exist in abi "command/1"`},
		"command_is_skill":     {"command/1", guest{funcs: []function{{export: "skill_call"}}}.bytes(), `abi = "skill/1"`},
		"skill_is_command":     {"skill/1", guest{funcs: []function{{export: "_start"}}}.bytes(), `abi = "command/1"`},
		"no_marker":            {"skill/1", with(func(g *guest) { g.funcs[0].export = "skill_abi_2" }), `"skill_abi_1"`},
		"no_call":              {"skill/1", with(func(g *guest) { g.funcs[1].export = "call" }), `"skill_call"`},
		"call_type":            {"skill/1", guest{funcs: []function{{export: "skill_abi_1"}, {export: "skill_call"}}}.bytes(), "instead of () → (i32)"},
		"meter_export":         {"skill/1", with(func(g *guest) { g.names = map[string][2]byte{"__skill_fuel": {0, 2}} }), "__skill_"},
		"fuel_forge":           {"skill/1", undescribed(join(i32Const(1<<30), []byte{opGlobalSet, 0}, i32Const(0))).bytes(), ""},
		"fuel_forge_later":     {"skill/1", undescribed(join(i32Const(1<<30), []byte{opGlobalSet, 1}, i32Const(0))).bytes(), ""},
		"tick_by_index":        {"skill/1", undescribed(join([]byte{opCall, 4}, i32Const(0))).bytes(), ""},
		"memory_over_cap":      {"skill/1", with(func(g *guest) { g.memory = []byte{0, 0x81, 0x10} }), "limits.memory"},
		"memory_over_4g":       {"skill/1", with(func(g *guest) { g.memory = []byte{0, 0x81, 0x80, 0x04} }), ""},
		"memory_min_max":       {"skill/1", with(func(g *guest) { g.memory = []byte{1, 2, 1} }), ""},
		"memory_64":            {"skill/1", with(func(g *guest) { g.memory = []byte{4, 1} }), ""},
		"table_huge":           {"skill/1", with(func(g *guest) { g.table = []byte{0x70, 0, 0xff, 0xff, 0xff, 0x3f} }), ""},
		"data_outside":         {"skill/1", with(func(g *guest) { g.data = append(g.data, segment{1 << 30, []byte("x")}) }), "data"},
		"data_outside_command": {"command/1", guest{funcs: []function{{export: "_start"}}, data: []segment{{1 << 30, []byte("x")}}}.bytes(), "data"},
		"start_traps":          {"command/1", guest{start: 1, funcs: []function{{export: "_start"}, {code: []byte{opUnreachable}}}}.bytes(), "unreachable"},
		"describe_traps":       {"skill/1", tiny([]byte{opUnreachable}).bytes(), "does not describe itself"},
		"describe_says_text":   {"skill/1", tiny(replyHello).bytes(), "description"},
		"invalid_code":         {"skill/1", with(func(g *guest) { g.funcs[1].code = []byte{opDrop} }), ""},
		"unbalanced_code":      {"skill/1", with(func(g *guest) { g.funcs[1].code = []byte{opEnd, opEnd, opEnd} }), ""},
		"unknown_opcode":       {"skill/1", with(func(g *guest) { g.funcs[1].code = []byte{0xff, 0xff} }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newExecutor(t).Load(t.Context(), skillOf(c.abi, c.module))
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatalf("got %v, want an error of kind invalid", err)
			}
			if !strings.Contains(err.Error(), c.says) || len(err.Error()) > 2000 || strings.Contains(err.Error(), "goroutine") {
				t.Errorf("message %q does not say %q, or says too much", err, c.says)
			}
		})
	}
}

func TestLoadRefusesOthers(t *testing.T) {
	x := newExecutor(t)
	session := skillOf("skill/1", undescribed(replyHello).bytes())
	session.Sandbox.Isolation = "session"
	missing := skillOf("skill/1", nil)
	missing.Source = "absent.wasm"
	climbing := skillOf("skill/1", nil)
	climbing.Source = "../probe.wasm"
	for _, s := range []*manifest.Skill{session, missing, climbing} {
		if _, err := x.Load(t.Context(), s); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s %s: got %v, want an error of kind invalid", s.Source, s.Sandbox.Isolation, err)
		}
	}
}

// No single damaged byte of a module makes Load or Run panic or hang.
func TestLoadDamaged(t *testing.T) {
	x := newExecutor(t)
	good := undescribed(join(replyHello)).bytes()
	for i := 8; i < len(good); i++ {
		for _, b := range []byte{0, 0x7f, 0x80, 0xff, good[i] + 1} {
			bad := bytes.Clone(good)
			bad[i] = b
			p, err := x.Load(t.Context(), skillOf("skill/1", bad))
			if err != nil {
				if sdk.KindOf(err) != sdk.Invalid {
					t.Errorf("byte %d = %#x: %v", i, b, err)
				}
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err = p.Run(ctx, jobOf("{}"))
			if sdk.KindOf(err) == sdk.Internal {
				t.Errorf("byte %d = %#x: %v", i, b, err)
			}
			cancel()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What a hostile module may do once it runs, and how that ends. Function 2 is
// the import; the module's own functions follow.
func TestRunHostile(t *testing.T) {
	forever := func(code []byte) []byte {
		return join([]byte{opLoop, void}, code, []byte{opBr, 0, opEnd, opUnreachable})
	}
	growOrTrap := join(i32Const(16), []byte{opGrow, 0}, i32Const(-1), []byte{opEqual, opIf, void, opUnreachable, opEnd})
	for name, c := range map[string]struct {
		wasi            string
		params, results int
		code            []byte
		pages           byte // of 128 memory pages
		kind            sdk.Kind
		says            string
	}{
		"trap":           {"sched_yield", 0, 1, []byte{opUnreachable}, 0, sdk.Guest, "unreachable"},
		"loop":           {"sched_yield", 0, 1, forever(nil), 0, sdk.Limit, "limits.timeout"},
		"loop_of_calls":  {"sched_yield", 0, 1, forever([]byte{opCall, 2, opDrop}), 0, sdk.Limit, "limits.timeout"},
		"loop_of_emits":  {"sched_yield", 0, 1, forever(join(call_(fnEmit, sdk.EmitProgress, atReply, 1<<20), []byte{opDrop})), 0, sdk.Limit, "limits.timeout"},
		"recursion":      {"sched_yield", 0, 1, []byte{opCall, 4}, 0, sdk.Limit, "recurses"},
		"grow_to_cap":    {"sched_yield", 0, 1, forever(growOrTrap), 0, sdk.Limit, "limits.memory"},
		"grow_and_reply": {"sched_yield", 0, 1, join(i32Const(30000), []byte{opGrow, 0, opDrop}, replyHello), 0, "", ""},
		"exit_early":     {"proc_exit", 1, 0, join(call_(2, 0), []byte{opUnreachable}), 0, sdk.Guest, "status 0"},
		"exit_like_host": {"proc_exit", 1, 0, join(call_(2, -1), []byte{opUnreachable}), 0, sdk.Guest, "status 4294967295"},
		"poll_overflow":  {"poll_oneoff", 4, 1, call_(2, 0, 0, 0x10000000, 0), 0, sdk.Internal, "host function"},
		"many_buffers":   {"fd_write", 4, 1, join(fillBuffers, call_(2, 1, 0, 1<<20, 0)), 1, sdk.Limit, "limits.output"},
		"bad_fd":         {"fd_write", 4, 1, join(call_(2, 99, 0, 1, 0), []byte{opDrop}, replyHello), 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := undescribed(c.code)
			g.imports = append(g.imports[:2:2], imported{moduleWASI, c.wasi, c.params, c.results})
			if c.pages > 0 {
				g.memory = []byte{0, 0x80, c.pages}
			}
			p := load(t, newExecutor(t), skillOf("skill/1", g.bytes()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if c.says == "limits.timeout" {
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			defer cancel()
			_, err := p.Run(ctx, jobOf("{}"))
			if sdk.KindOf(err) != c.kind {
				t.Fatalf("got %v, want kind %q", err, c.kind)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "goroutine")) {
				t.Errorf("message %q does not say %q, or says too much", err, c.says)
			}
		})
	}
}

// fillBuffers is code that fills 8 MiB with descriptions of the same 64 KiB.
var fillBuffers = join(
	[]byte{opLoop, void},
	[]byte{0x20, 0}, i32Const(65536), []byte{0x36, 2, 4}, // memory[local+4] = 65536
	[]byte{0x20, 0}, i32Const(8), []byte{0x6a, 0x22, 0}, // local += 8
	i32Const(8<<20-8), []byte{0x49, 0x0d, 0, opEnd}, // while local < 8 MiB - 8
)

// The module runs with the caller's limits even if they are below its own.
func TestRunBelowStart(t *testing.T) {
	g := undescribed(i32Const(0))
	g.memory = []byte{0, 16}
	p := load(t, newExecutor(t), skillOf("skill/1", g.bytes()))
	j := jobOf("{}")
	j.Limits.Memory = 1 << 16
	if _, err := p.Run(t.Context(), j); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("got %v, want an error of kind limit", err)
	}
}

// A call whose context is done does not start.
func TestRunTooLate(t *testing.T) {
	p := load(t, newExecutor(t), skillOf("skill/1", undescribed(i32Const(0)).bytes()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Run(ctx, jobOf("{}")); sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v, want an error of kind canceled", err)
	}
	why := &sdk.Error{Kind: sdk.Limit, What: "out of time"}
	late, end := context.WithCancelCause(t.Context())
	end(why)
	if _, err := p.Run(late, jobOf("{}")); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestLoadAfterClose(t *testing.T) {
	x := New(Options{})
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Load(t.Context(), skillOf("skill/1", undescribed(replyHello).bytes())); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("got %v, want an error of kind unavailable", err)
	}
}
