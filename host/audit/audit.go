// Package audit keeps the record of what was decided, touched and answered. It
// knows nothing of how calls run, and it never keeps the value of a secret.
package audit

import (
	"context"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Type says what an Event records.
type Type string

// The types of Event.
const (
	TypeBoot   Type = "boot"   // the file's first line: who writes it, and the heads of earlier files
	TypeStart  Type = "start"  // a call is allowed and about to run
	TypeRefuse Type = "refuse" // a call was refused before it ran
	TypeAccess Type = "access" // a guest touched or tried to touch something
	TypeEnd    Type = "end"    // a call ended
	TypeAnswer Type = "answer" // a user answered a tool's question beside the client
	TypePolicy Type = "policy" // the operator's policy changed, or a change was rejected
	TypeClose  Type = "close"  // the file's last line
)

// An Event is one line of the log. Zero fields are left out of the line.
type Event struct {
	Type     Type
	Call     string // the call's id
	Parent   string // the id of the call that invoked it
	Trace    string // W3C traceparent
	Caller   string
	Client   string // the client program's own account of itself
	Session  string
	Skill    string // name@version
	Digest   string // of the skill
	Tool     string
	Runtime  string
	Level    string        // enforcement level, such as "wasm" or "strict"
	Decision string        // "allow" or "deny"
	Kind     sdk.Kind      // how it ended, "" for well
	Error    string        // redacted
	Denied   *sdk.Denial   // who refused
	Access   string        // "filesystem.read", "network.connect" …
	Target   string        // of an access, redacted
	Count    int           // coalesced accesses; 0 means 1
	Params   []byte        // JSON of the arguments as they came; sanitised before it is written
	Duration time.Duration // of the call
	Bytes    int64         // of the result
	Note     string        // policy, boot, answer
}

// A Log keeps Events. When Append returns nil the record is with the kernel
// (default; it survives the death of the process) or on disk (durability
// "disk"). If it fails, the call must not run. It may be called at any time
// from many goroutines.
type Log interface {
	Append(ctx context.Context, e Event) error
}
