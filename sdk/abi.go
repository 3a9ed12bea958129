package sdk

// ABI is the name of the WASM interface, version 1 (docs/abi.md).
const ABI = "skill/1"

// The kinds of emit(kind, ptr, len).
const (
	EmitResult   = 1 // a frame: the header is a Result, or {"error": Error}
	EmitProgress = 2 // JSON {"progress", "total", "message"}
	EmitPartial  = 3 // a frame: the header is a Content
	EmitLog      = 4 // JSON {"level", "message"}
)

// What an import of module "skill" returns for a misuse of the interface: the
// negated WASI preview 1 errno. Errors of an operation itself are never
// negative returns; they are the "error" member of its reply.
const (
	ErrAgain    = -6  // wait: the time is over and no operation is done
	ErrBadf     = -8  // no such handle
	ErrCanceled = -11 // the call is past its deadline
	ErrFault    = -21 // a pointer or length outside of memory
	ErrInval    = -28 // a frame, a kind or a count that is not valid
	ErrNoSys    = -52 // start: the host does not know the operation
	ErrOverflow = -61 // a frame over the host's limit, or too many handles
)
