package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"

	"github.com/skillhost/skill/sdk"
)

// probed is a module with one function, which does nothing.
var probed = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x05\x01\x01f\x00\x00" + "\x0a\x04\x01\x02\x00\x0b")

// Probe runs a module as Load would, with compiled code kept in cacheDir, and
// returns what runs modules on this machine: "compiler" or "interpreter". The
// error, of kind Unavailable, is why none can run.
func Probe(ctx context.Context, cacheDir string) (engine string, err error) {
	eng, err := newEngine(ctx, cacheDir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, eng.close()) }()
	if err := runProbe(ctx, eng.runtime); err != nil {
		return "", err
	}
	native := wazero.NewRuntimeConfigCompiler()
	if runCompiled(ctx, native) != nil {
		return "interpreter", nil
	}
	return "compiler", nil
}

// runCompiled fails where there is no compiler, for which wazero panics.
func runCompiled(ctx context.Context, config wazero.RuntimeConfig) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	r := wazero.NewRuntimeWithConfig(ctx, config)
	return errors.Join(runProbe(ctx, r), r.Close(ctx))
}

func runProbe(ctx context.Context, r wazero.Runtime) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = &sdk.Error{Kind: sdk.Unavailable, Op: "wasm.Probe", What: "this machine runs no module", Err: err}
		}
	}()
	m, err := r.Instantiate(ctx, probed)
	if err != nil {
		return err
	}
	_, err = m.ExportedFunction("f").Call(ctx)
	return errors.Join(err, m.Close(ctx))
}
