package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/wasm/meter"
	"github.com/skillhost/skill/host/executor/wasm/segments"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/nearest"
	"github.com/skillhost/skill/sdk"
)

const (
	maxModule = 64 << 20 // bytes of a module
	maxTable  = 100_000  // entries of a table
	maxName   = 64       // bytes of a name from the module in a message
	fuel      = 50_000   // between two ticks: about 1 ms
)

// readModule reads the module of s and tells apart what is not one. That it is
// what the digest covers is a promise of Home.Files.
func readModule(s *manifest.Skill) ([]byte, error) {
	f, err := s.Home.Files.Open(s.Source)
	var e *sdk.Error
	switch {
	case errors.As(err, &e):
		return nil, err
	case err != nil:
		return nil, invalid(s, "cannot be read: "+reason(err), `"source" in the manifest names the module, relative to it`)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxModule+1))
	switch {
	case err != nil:
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "wasm.Load", What: fmt.Sprintf("skill %q: %s", s.Name, s.Source), Err: err}
	case len(b) > maxModule:
		return nil, invalid(s, fmt.Sprintf("larger than %d MiB", maxModule>>20), "")
	case !bytes.HasPrefix(b, []byte("\x00asm")):
		return nil, invalid(s, "not a WebAssembly module", "")
	case bytes.HasPrefix(b[4:], []byte{0x0d, 0, 1, 0}):
		return nil, invalid(s, "a WebAssembly component, and only core modules are run", "build for wasm32-wasip1 instead of wasm32-wasip2")
	}
	return b, nil
}

// reason is err without the path, which is known from the context.
func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	return err.Error()
}

// compile instruments and compiles module, and checks that it keeps to the ABI
// of s.
func (e *engine) compile(ctx context.Context, s *manifest.Skill, module []byte) (wazero.CompiledModule, error) {
	metered, err := meter.Instrument(segments.Merge(module), meter.Options{Fuel: fuel, MaxTable: maxTable})
	if err != nil {
		return nil, invalid(s, err.Error(), "")
	}
	compiled, err := e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 2), metered)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, executor.Ended(ctx)
	case errors.As(err, new(*fs.PathError)), err != nil && strings.HasPrefix(err.Error(), "compilationcache:"):
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "wasm.Load", What: "the cache of compiled code", Err: err, Hint: "if it is damaged, remove it"}
	case err != nil:
		return nil, invalid(s, firstLine(err.Error()), "")
	}
	if err := e.conforms(s, compiled); err != nil {
		_ = compiled.Close(ctx) // the error says more
		return nil, err
	}
	return compiled, nil
}

// conforms checks the imports and exports of c against the ABI of s.
func (e *engine) conforms(s *manifest.Skill, c wazero.CompiledModule) error {
	if len(c.ImportedMemories()) > 0 {
		return invalid(s, "imports its memory", "export it: every instance has its own")
	}
	for _, f := range c.ImportedFunctions() {
		if err := e.importable(s, f); err != nil {
			return err
		}
	}
	memory, ok := c.ExportedMemories()["memory"]
	if !ok {
		return invalid(s, `does not export "memory"`, "see docs/abi.md")
	}
	if need := int64(memory.Min()) << 16; need > s.Limits.Memory {
		return invalid(s, fmt.Sprintf("needs %d bytes of memory to start, and limits.memory is %d", need, s.Limits.Memory), "raise limits.memory or link with less initial memory")
	}
	want := map[string]string{"skill_abi_1": "", "skill_call": "() → (i32)", "_initialize": "() → ()"}
	if s.ABI == abiCommand {
		want = map[string]string{"_start": "() → ()"}
	}
	have := c.ExportedFunctions()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f, ok := have[name]
		switch {
		case !ok && name == "_initialize": // nothing to initialise
		case !ok:
			return invalid(s, fmt.Sprintf("does not export %q, which abi %q asks for", name, s.ABI), exportHint(s.ABI, have))
		case want[name] != "" && signature(f) != want[name]:
			return invalid(s, fmt.Sprintf("exports %q as %s instead of %s", name, signature(f), want[name]), "see docs/abi.md")
		}
	}
	return nil
}

// exportHint guesses which ABI a module was built for.
func exportHint(abi string, have map[string]api.FunctionDefinition) string {
	_, starts := have["_start"]
	_, calls := have["skill_call"]
	switch {
	case abi == abiSkill && starts:
		return `it is a program: build with -buildmode=c-shared (Go) or as a reactor, or write abi = "command/1"`
	case abi == abiCommand && calls:
		return `write abi = "skill/1"`
	}
	return "see docs/abi.md"
}

// importable checks that the guest may import f.
func (e *engine) importable(s *manifest.Skill, f api.FunctionDefinition) error {
	module, name, _ := f.Import()
	known, ok := e.imports[module]
	if module == meter.Module {
		return nil // added by meter, which refuses a guest that has it already
	}
	if !ok || module == moduleSkill && s.ABI == abiCommand {
		return invalid(s, fmt.Sprintf("imports module %q, which does not exist in abi %q", clip(module), s.ABI), moduleHint(module))
	}
	host, ok := known[name]
	if !ok {
		hint := "see docs/abi.md"
		if near := nearest.Names(name, slices.Collect(maps.Keys(known)), 1); near != nil {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		return invalid(s, fmt.Sprintf("imports unknown function %q of module %q", clip(name), module), hint)
	}
	if signature(f) != signature(host) {
		return invalid(s, fmt.Sprintf("imports %s.%s as %s instead of %s", module, name, signature(f), signature(host)), "see docs/abi.md")
	}
	return nil
}

// moduleHint says how a module that imports from module came about.
func moduleHint(module string) string {
	switch {
	case module == "gojs" || module == "go":
		return "build with GOOS=wasip1 GOARCH=wasm"
	case module == "wasi_unstable":
		return "build with a toolchain for WASI preview 1"
	case module == "env":
		return "build for wasm32-wasip1: functions of env are undefined symbols or belong to a browser"
	case strings.HasPrefix(module, "extism:"):
		return "Extism plug-ins are not run"
	}
	if near := nearest.Names(module, []string{moduleWASI, moduleSkill}, 1); near != nil {
		return fmt.Sprintf("did you mean %q?", near[0])
	}
	return "a guest may import from " + moduleWASI + " and " + moduleSkill
}

// signature formats the type of f.
func signature(f api.FunctionDefinition) string {
	list := func(types []api.ValueType) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = api.ValueTypeName(t)
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	return list(f.ParamTypes()) + " → " + list(f.ResultTypes())
}

// clip shortens a name that the module chose, for a message.
func clip(name string) string {
	if len(name) > maxName {
		return name[:maxName] + "…"
	}
	return name
}

// firstLine is what is worth showing of an error of wazero, which goes on with
// stack traces.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return strings.ToValidUTF8(s[:min(len(s), 512)], "")
}
