//go:build !linux && !darwin

package sandbox

import (
	"context"
	"runtime"

	"github.com/skillhost/skill/sdk"
)

const proxyLevel = Strict

type spawner struct{}

const refusal = "native programs cannot be confined on " + runtime.GOOS

func (*spawner) start(context.Context, Cage, Program) (Process, error) {
	return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: refusal, Hint: "WASM skills work here"}
}

func (*spawner) stop() error { return nil }

// Probe reports what this machine offers: nothing for native processes.
func Probe() Report { return Report{Missing: []string{refusal + "; WASM skills work"}} }
