// Package executor is the doorway to foreign code: the interface that every
// runtime implements. See executortest for the promises they all keep. It
// knows nothing of protocols, policies, the audit log or the store.
package executor

import (
	"context"
	"io"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// An Executor prepares skills of one runtime.
type Executor interface {
	// Enforces names the capability kinds that this runtime can hold a guest
	// to. A skill that needs another kind is not loaded.
	Enforces() []capability.Kind

	// Load compiles s. It may take long and is never charged to a call's
	// deadline. It fails with kind Invalid if the module is not acceptable or
	// contradicts its manifest.
	Load(ctx context.Context, s *manifest.Skill) (Program, error)
}

// A Program is a loaded skill. Run is safe for concurrent use, and no state
// passes from one Run to the next. Close is idempotent; it may be called only
// when no Run is going on.
type Program interface {
	Run(ctx context.Context, j Job) (sdk.Result, error)
	io.Closer
}

// A Job is one run. It carries everything that the guest may know or touch.
//
// ctx of Run is the hard deadline: when it is done the guest is stopped, and
// Run returns an error of kind Limit or Canceled (context.Cause decides). Soft
// is done a little earlier: the guest is asked to finish and operations end.
type Job struct {
	Input  sdk.Input        // what the guest is told
	Grant  capability.Grant // what it may touch
	Limits manifest.Limits  //
	Dirs   Dirs             //
	Level  string           // native runtimes: the least confinement that manifest and policy accept: "strict", "landlock" or "none"
	Soft   context.Context  // context.Cause may be an *sdk.Stop, which the guest is told
	Ops    Ops              // what it may ask of the host
	Emit   func(sdk.Event)  // progress, partial content and logs; never nil; safe for concurrent use
}

// Dirs are the places behind the guest's path aliases. All are real paths.
type Dirs struct {
	Workspace string                 // /workspace; "" if there is none
	Skill     string                 // /skill, read-only; "" if the skill is embedded
	Tmp       func() (string, error) // /tmp: makes the call's private directory on first use
}

// Ops performs the operations that a guest asks of the host (host/ops). Do
// returns the reply frame; an error of the operation is in the reply's header.
// The error ErrUnknownOp says that there is no such operation. Do may be
// called many times at once, and returns when ctx is done.
type Ops interface {
	Do(ctx context.Context, request sdk.Frame) (reply []byte, err error)
}

// NoOps is the Ops of a guest that may ask for nothing.
type NoOps struct{}

// Do always fails with ErrUnknownOp.
func (NoOps) Do(context.Context, sdk.Frame) ([]byte, error) { return nil, ErrUnknownOp }

// Knows reports that there is no operation.
func (NoOps) Knows(string) bool { return false }

// Fixed is implemented by Executors whose guests are held to rules that are
// fixed when a run starts, as the kernel's are. When the operator changes those
// rules, the run has to end (architecture 8.13).
type Fixed interface{ Fixed() }

// SettingsEnv is the environment variable that tells a guest which reads no
// frames, a program or a module of ABI command/1, what sdk.Input.Settings tells
// others.
const SettingsEnv = "SKILL_SETTINGS"

// ErrUnknownOp is Do's error for an operation that the host does not have.
var ErrUnknownOp = &sdk.Error{Kind: sdk.Invalid, What: "unknown operation"}
