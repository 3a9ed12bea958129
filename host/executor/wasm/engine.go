package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/skillhost/skill/host/executor/wasm/codedir"
	"github.com/skillhost/skill/host/executor/wasm/linear"
	"github.com/skillhost/skill/host/executor/wasm/meter"
	"github.com/skillhost/skill/sdk"
)

// The modules that a guest may import from.
const (
	moduleWASI  = "wasi_snapshot_preview1"
	moduleSkill = "skill"
)

// An engine is what all programs of an Executor share: native code, the host's
// functions and spare memories.
type engine struct {
	cache   wazero.CompilationCache
	runtime wazero.Runtime
	imports map[string]map[string]api.FunctionDefinition // module and function that a guest may import
	spare   linear.Spares
}

// newEngine makes an engine that keeps native code in dir, or nowhere if dir
// is empty or nothing may be kept on this platform.
func newEngine(ctx context.Context, dir string) (*engine, error) {
	cache := wazero.NewCompilationCache()
	if dir != "" && codedir.Checked {
		if err := codedir.Secure(dir); err != nil {
			return nil, err
		}
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "wasm.Load", What: fmt.Sprintf("cache directory %q", dir), Err: err}
		}
	}
	// Debug information and custom sections are a guest's own bytes: the host
	// has no use for them that is worth parsing them.
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithDebugInfoEnabled(false).WithCustomSections(false)
	e := &engine{cache: cache, runtime: wazero.NewRuntimeWithConfig(ctx, config), imports: map[string]map[string]api.FunctionDefinition{}}
	if err := e.addHostModules(ctx); err != nil {
		return nil, errors.Join(&sdk.Error{Kind: sdk.Internal, Op: "wasm.Load", What: "host functions", Err: err}, e.close())
	}
	return e, nil
}

// addHostModules links everything that a guest can call.
func (e *engine) addHostModules(ctx context.Context) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, e.runtime); err != nil {
		return err
	}
	b := e.runtime.NewHostModuleBuilder(moduleSkill)
	for _, f := range hostFunctions {
		b.NewFunctionBuilder().WithGoModuleFunction(f.fn(), f.params, f.results).WithName(f.name).Export(f.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return err
	}
	_, err := e.runtime.NewHostModuleBuilder(meter.Module).
		NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(tick), nil, nil).Export(meter.Tick).Instantiate(ctx)
	for _, name := range []string{moduleWASI, moduleSkill, meter.Module} {
		if m := e.runtime.Module(name); m != nil {
			e.imports[name] = m.ExportedFunctionDefinitions()
		}
	}
	return err
}

func (e *engine) close() error {
	ctx := context.Background()
	return errors.Join(e.runtime.Close(ctx), e.cache.Close(ctx), e.spare.Close())
}
