package meter

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// sec is one section of a module that a test builds.
type sec struct {
	id   byte
	body []byte
}

func module(secs ...sec) []byte {
	w := &writer{b: []byte("\x00asm\x01\x00\x00\x00")}
	for _, s := range secs {
		w.section(s.id, &writer{b: s.body})
	}
	return w.b
}

// fn is a module whose one function, exported as "run", takes nothing and has
// the body code (locals vector included).
func fn(code ...byte) []byte { return fnWith(nil, code...) }

func fnWith(extra []sec, code ...byte) []byte {
	w := new(writer)
	w.u32(1)
	w.u32(uint32(len(code)))
	w.b = append(w.b, code...)
	secs := []sec{{secType, []byte{1, 0x60, 0, 0}}, {secFunction, []byte{1, 0}}, {secExport, []byte("\x01\x03run\x00\x00")}, {secCode, w.b}}
	for _, x := range extra { // in their place
		for i := range secs {
			if rank(secs[i].id) > rank(x.id) {
				secs = append(secs[:i], append([]sec{x}, secs[i:]...)...)
				break
			}
			if i == len(secs)-1 {
				secs = append(secs, x)
			}
		}
	}
	return module(secs...)
}

func rank(id byte) int { return bytes.IndexByte(order[:], id) }

var errStop = errors.New("stopped at a tick")

// run instruments and runs "run", stopping it at the given tick.
func run(t testing.TB, mod []byte, stopAt int) (ticks int, err error) {
	t.Helper()
	out, err := Instrument(mod, Options{Fuel: 1000})
	if err != nil {
		t.Fatalf("Instrument: %v", err)
	}
	ctx := t.Context()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	_, err = rt.NewHostModuleBuilder(Module).NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		if ticks++; ticks == stopAt {
			panic(errStop)
		}
		m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(1000)
	}), nil, nil).Export(Tick).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(func() {}).Export("host").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := rt.Instantiate(ctx, out)
	if err != nil {
		t.Fatalf("the output does not load: %v", err)
	}
	_, err = m.ExportedFunction("run").Call(ctx)
	return ticks, err
}

// TestStops runs guests that would never end, or not for hours. Each must come
// by a tick soon, by the host's count and not by any clock.
func TestStops(t *testing.T) {
	memory := []sec{{secMemory, []byte{1, 0, 1}}}
	host := sec{secImport, []byte("\x01\x03env\x04host\x00\x00")}
	long := append([]byte{0, 0x03, 0x40}, bytes.Repeat([]byte{0x41, 0, 0x1a}, 100_000)...)
	for name, mod := range map[string][]byte{
		"spin":                fn(0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b),
		"spin_long_body":      fn(append(long, 0x0c, 0, 0x0b, 0x0b)...),
		"recursion_loop_free": tree(40),
		"spin_memory_fill":    fnWith(memory, 0, 0x03, 0x40, 0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 0x04, 0xfc, 11, 0, 0x0c, 0, 0x0b, 0x0b),
		"spin_memory_grow":    fnWith(memory, 0, 0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b, 0x0b),
		"spin_host_call":      fnWithImport(host, 0, 0x03, 0x40, 0x10, 0, 0x0c, 0, 0x0b, 0x0b),
		"spin_host_indirect":  fnWithImport(host, 0, 0x03, 0x40, 0x41, 0, 0x11, 0, 0, 0x0c, 0, 0x0b, 0x0b),
	} {
		t.Run(name, func(t *testing.T) {
			ticks, err := run(t, mod, 3)
			if ticks != 3 || !errors.Is(err, errStop) {
				t.Fatalf("ended with %v after %d ticks, want to be stopped at the third", err, ticks)
			}
		})
	}
}

// fnWithImport is fn with one imported function, which is function 0 and also
// the first element of table 0; "run" is function 1.
func fnWithImport(host sec, code ...byte) []byte {
	w := new(writer)
	w.u32(1)
	w.u32(uint32(len(code)))
	w.b = append(w.b, code...)
	return module(sec{secType, []byte{1, 0x60, 0, 0}}, host, sec{secFunction, []byte{1, 0}}, sec{secTable, []byte{1, 0x70, 0, 1}},
		sec{secExport, []byte("\x01\x03run\x00\x01")}, sec{secElement, []byte{1, 0, 0x41, 0, 0x0b, 1, 0}}, sec{secCode, w.b})
}

// tree is a module of functions without a loop, each of which calls the next
// one twice.
func tree(depth byte) []byte {
	types, code := []byte{depth}, new(writer)
	code.u32(uint32(depth))
	for i := range depth {
		types = append(types, 0)
		if i == depth-1 {
			code.byte(2, 0, 0x0b)
		} else {
			code.byte(6, 0, 0x10, i+1, 0x10, i+1, 0x0b)
		}
	}
	return module(sec{secType, []byte{1, 0x60, 0, 0}}, sec{secFunction, types}, sec{secExport, []byte("\x01\x03run\x00\x00")}, sec{secCode, code.b})
}

// TestHostCallsTick checks that a guest cannot call a host function, directly
// or through a table, without a look at the clock each time.
func TestHostCallsTick(t *testing.T) {
	host := sec{secImport, []byte("\x01\x03env\x04host\x00\x00")}
	mod := fnWithImport(host, 0, 0x10, 0, 0x10, 0, 0x41, 0, 0x11, 0, 0, 0x0b)
	if ticks, err := run(t, mod, -1); ticks != 3 || err != nil {
		t.Errorf("3 host calls made %d ticks, error %v", ticks, err)
	}
}

// TestRefused lists modules that must not get through: those that reach for
// what the rewriter adds, and those that the original specification refuses.
func TestRefused(t *testing.T) {
	table := func(least ...byte) []sec { return []sec{{secTable, append([]byte{1, 0x70}, least...)}} }
	for name, c := range map[string]struct {
		mod  []byte
		want string
	}{
		"fuel_forge":          {fn(0, 0x41, 0xff, 0xff, 0xff, 0xff, 7, 0x24, 0, 0x0b), "global 0 does not exist"},
		"fuel_forge_with_own": {fnWith([]sec{{secGlobal, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}}}, 0, 0x41, 1, 0x24, 1, 0x0b), "global 1 does not exist"},
		"fuel_export":         {module(sec{secExport, []byte("\x01\x03fel\x03\x00")}), "global 0 does not exist"},
		"fuel_shadow":         {module(sec{secGlobal, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}}, sec{secExport, []byte("\x01\x0c__skill_fuel\x03\x00")}), "host's own"},
		"fuel_initialiser":    {module(sec{secGlobal, []byte{1, 0x7f, 0, 0x23, 0, 0x0b}}), "global 0 does not exist"},
		"tick_call":           {fn(0, 0x10, 1, 0x0b), "function 1 does not exist"},
		"tick_import":         {module(sec{secType, []byte{1, 0x60, 0, 0}}, sec{secImport, []byte("\x01\x0bskill:meter\x04tick\x00\x00")}), "host's own"},
		"tick_type":           {fn(0, 0x02, 1, 0x0b, 0x0b), "block type 1 does not exist"},
		"tick_type_indirect":  {fnWith(table(0, 1), 0, 0x41, 0, 0x11, 1, 0, 0x0b), "type 1 does not exist"},
		"wrapper_start":       {module(sec{secStart, []byte{0}}), "function 0 does not exist"},
		"wrapper_element":     {fnWith([]sec{table(0, 1)[0], {secElement, []byte{1, 0, 0x41, 0, 0x0b, 1, 1}}}, 0, 0x0b), "function 1 does not exist"},
		"scratch_local":       {fnWith([]sec{{secMemory, []byte{1, 0, 1}}}, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0xfc, 11, 0, 0x0b), "local 0 does not exist"},
		"table_huge":          {fnWith(table(0, 0x80, 0x80, 0x80, 0x20), 0, 0x0b), "over the limit"},
		"import_memory":       {module(sec{secImport, []byte("\x01\x03env\x03mem\x02\x00\x01")}), "only functions can be imported"},
		"import_global":       {module(sec{secImport, []byte("\x01\x03env\x03glo\x03\x7f\x01")}), "only functions can be imported"},
		"memory_shared":       {module(sec{secMemory, []byte{1, 3, 1, 1}}), "not supported"},
		"tail_call":           {fn(0, 0x12, 0, 0x0b), "not part of WebAssembly 2.0"},
		"atomics":             {fn(0, 0xfe, 0, 0x0b), "not part of WebAssembly 2.0"},
		"section_twice":       {module(sec{secType, []byte{0}}, sec{secType, []byte{0}}), "repeated or out of order"},
		"section_order":       {module(sec{secFunction, []byte{0}}, sec{secType, []byte{0}}), "out of order"},
		"section_leftover":    {module(sec{secType, []byte{0, 0}}), "bytes left over"},
		"leb_overlong":        {module(sec{secType, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0}}), "over 32 bits"},
		"leb_overflow":        {fn(0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x1a, 0x0b), "over 32 bits"},
		"code_after_end":      {fn(0, 0x0b, 0x0b), "code after its end"},
		"code_no_end":         {fn(0, 0x03, 0x40, 0x0b), "ends too early"},
		"else_without_if":     {fn(0, 0x02, 0x40, 0x05, 0x0b, 0x0b), "else without if"},
		"locals_many":         {fn(1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b), "locals"},
		"vector_lies":         {module(sec{secType, []byte{0xff, 0xff, 0x03, 0x60}}), "too many"},
		"component":           {[]byte("\x00asm\x0d\x00\x01\x00"), "not a core module"},
		"empty":               {nil, "not a core module"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Instrument(c.mod, Options{})
			if err == nil {
				t.Fatalf("let through as %x", out)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("refused with %q, want %q", err, c.want)
			}
		})
	}
}

// TestTableCap checks that a table's growth is bounded.
func TestTableCap(t *testing.T) {
	// run: loop { if table.grow(null, 1000) == -1 { unreachable } } would never
	// trap if the table could grow for ever.
	mod := fnWith([]sec{{secTable, []byte{1, 0x70, 0, 0}}},
		0, 0x03, 0x40, 0xd0, 0x70, 0x41, 0xe8, 7, 0xfc, 15, 0, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b, 0x0c, 0, 0x0b, 0x0b)
	if _, err := run(t, mod, 10_000); err == nil || errors.Is(err, errStop) {
		t.Errorf("the table grew until %v", err)
	}
}

// TestGoGuest runs a real program plain and metered: the same output.
func TestGoGuest(t *testing.T) {
	dir := t.TempDir()
	src := `package main
import ("fmt"; "sort"; "strings"; "crypto/sha256")
func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }
func main() {
	m := map[string]int{}
	for i := range 1000 { m[fmt.Sprint(i%37)] += i }
	var k []string
	for s, n := range m { k = append(k, fmt.Sprint(s, n)) }
	sort.Strings(k)
	fmt.Printf("%s %d %x %.3f\n", strings.Join(k, ","), fib(20), sha256.Sum256(make([]byte, 1<<20)), 1.0/3)
}`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "guest.wasm", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	plain, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	metered, err := Instrument(plain, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, metered %d", len(plain), len(metered))
	a, _ := output(t, plain)
	b, ticks := output(t, metered)
	if a != b || a == "" {
		t.Errorf("plain %q, metered %q", a, b)
	}
	if ticks < 100 {
		t.Errorf("only %d ticks", ticks)
	}
	if again, err := Instrument(metered, Options{}); err == nil {
		t.Errorf("a metered module was metered again into %d bytes", len(again))
	}
}

func output(t *testing.T, mod []byte) (string, int) {
	ctx := t.Context()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	ticks := 0
	_, err := rt.NewHostModuleBuilder(Module).NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		ticks++
		m.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(50_000)
	}), nil, nil).Export(Tick).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := rt.InstantiateWithConfig(ctx, mod, wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out)); err != nil {
		t.Fatal(err, out.String())
	}
	return out.String(), ticks
}

// FuzzInstrument holds the rewriter to its law: what the runtime refuses in
// the original it must not accept in the output, and what Instrument lets
// through the runtime must be able to load if it could load the original.
func FuzzInstrument(f *testing.F) {
	host := sec{secImport, []byte("\x01\x03env\x04host\x00\x00")}
	f.Add(fn(0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b))
	f.Add(fn(0, 0x41, 1, 0x24, 0, 0x0b))
	f.Add(fnWithImport(host, 0, 0x10, 0, 0x41, 0, 0x11, 0, 0, 0x0b))
	f.Add(fnWith([]sec{{secMemory, []byte{1, 0, 1}}, {secGlobal, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}}}, 1, 2, 0x7f, 0x41, 0, 0x41, 0, 0x41, 5, 0xfc, 11, 0, 0x23, 0, 0x24, 0, 0x0b))
	f.Add(fnWith([]sec{{secTable, []byte{1, 0x70, 0, 1}}, {secElement, []byte{1, 4, 0x41, 0, 0x0b, 1, 0xd2, 0, 0x0b}}}, 0, 0x41, 0, 0x25, 0, 0x1a, 0x0b))
	f.Add(fnWith([]sec{{secMemory, []byte{1, 0, 1}}, {secDataCount, []byte{1}}, {secData, []byte{1, 1, 1, 'x'}}}, 0, 0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 8, 0, 0, 0xfc, 9, 0, 0x0b))
	f.Add(fn(1, 1, 0x7b, 0xfd, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, 0x0b))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\a\x04\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, mod []byte) {
		out, err := Instrument(mod, Options{})
		ctx := context.Background()
		compile := func(b []byte) error {
			rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
			defer rt.Close(ctx)
			_, err := rt.CompileModule(ctx, b)
			return err
		}
		if err != nil {
			return
		}
		before, after := compile(withoutCustom(mod)), compile(out)
		if before != nil && after == nil {
			t.Errorf("refused before (%v), accepted after", before)
		}
		if before == nil && after != nil {
			t.Errorf("accepted before, refused after: %v", after)
		}
	})
}

// withoutCustom drops the custom sections, as Instrument does: a runtime may
// refuse a malformed name section, which says nothing about the code.
func withoutCustom(mod []byte) []byte {
	sections, err := split(mod[8:])
	if err != nil {
		return mod
	}
	out := &writer{b: append([]byte(nil), mod[:8]...)}
	for _, id := range order {
		if body, ok := sections[id]; ok {
			out.section(id, &writer{b: body})
		}
	}
	return out.b
}

func BenchmarkInstrumentGo(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }"), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "guest.wasm", "main.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "guest.wasm"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(mod)))
	for b.Loop() {
		if _, err := Instrument(mod, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
