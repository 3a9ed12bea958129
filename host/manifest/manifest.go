// Package manifest reads skill.toml: what a skill is, how it runs, what it
// offers and what it asks for. It does not decide what is granted, and it
// never runs or compiles a guest.
package manifest

import (
	"encoding/json"
	"io/fs"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/template"
	"github.com/skillhost/skill/host/manifest/uri"
	"github.com/skillhost/skill/sdk"
)

// The names of a skill's own files in its directory.
const (
	FileName         = "skill.toml"
	InstructionsName = "SKILL.md" // the text of an instruction skill (Agent Skills format)
)

// A Skill is a decoded, checked manifest together with the place of its files.
// It is a value: nobody changes it after Open.
type Skill struct {
	About
	Runtime   string // "wasm", "plugin", "exec", "container", "mcp" or "instructions"
	ABI       string // wasm: "skill/1" or "command/1"
	Source    string // the module or program, relative to the skill's directory; container: an image; mcp: a URL; exec: "". Of a plugin that is Home.Builtin: which one of the binary's
	Tools     []Tool // sorted by name
	Resources []Resource
	Prompts   []Prompt
	Needs     capability.Layer // [capabilities]; Closed
	Secrets   []Secret         // [[capabilities.secrets]]
	Limits    Limits
	Sandbox   Sandbox
	Settings  json.RawMessage // the JSON Schema of what the operator may set for the skill; nil: nothing
	Home      Home
}

// About says what a skill is.
type About struct {
	Name        string // lower-case letters, digits and single hyphens, 1 to 64
	Version     string // semantic version
	Title       string
	Description string
	License     string
	Homepage    string
}

// Home is where a skill's files are. Digest covers all of them.
type Home struct {
	Files   fs.FS  // rooted at the skill's directory; a file that changed after Open cannot be read
	Dir     string // the real directory, or "" if the skill is embedded in the binary
	File    string // the manifest's path as messages show it
	Digest  string // "sha256:" and 64 hex digits, over every file of the skill
	Builtin bool   // embedded in the binary: granted as shipped; never set by Open

	Warnings []string // what Open let pass in a SKILL.md, for the operator
}

// A Tool is one tool of a skill.
type Tool struct {
	sdk.Tool
	Narrow  *capability.Layer // [tools.NAME.capabilities]: only narrows; nil if absent
	Limits  Limits            // the skill's, with [tools.NAME.limits] over them
	Task    Task              //
	Command *template.Command // exec: the program and its arguments; nil for all others
	Pos     capability.Pos
}

// A Task says when calls of a tool become tasks, for clients that know tasks.
type Task struct {
	When     string // "optional": at once; "required": at once, and other clients may not call it; "long": if they take long; "": never
	AskFirst bool   // what the tool asks at first is answered before there is a task
}

// A Resource is a document that a skill serves.
type Resource struct {
	Name, Title, Description string
	URI                      string        // or a template with {variables} (RFC 6570)
	Template                 *uri.Template // of URI; nil if it has no variables
	MIME                     string
	File                     string // relative to the skill's directory, or "" if a tool serves it
	Tool                     string // the tool that reads it, or ""
	Look                     Look
	Variables                map[string]Completion // of the template
	Narrow                   *capability.Layer
	Pos                      capability.Pos
}

// Look is what clients are shown of a resource beside its texts.
type Look struct {
	Audience []string // "user", "assistant"
	Priority *float64 // 0 to 1
	Modified string   // ISO 8601
	Icons    []sdk.Icon
	Meta     json.RawMessage // a JSON object, or nil
}

// A Prompt is a template for messages.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument
	File                     string // relative to the skill's directory; {{name}} stands for an argument
	Tool                     string // the tool that writes the messages, or "" if a file does
	Icons                    []sdk.Icon
	Narrow                   *capability.Layer
	Pos                      capability.Pos
}

// An Argument is a variable of a Prompt.
type Argument struct {
	Name, Title, Description string
	Required                 bool
	Complete                 Completion
}

// A Completion says where suggestions for a variable's value come from. The
// zero Completion suggests nothing.
type Completion struct {
	Values []string // all there are, in their order
	Tool   string   // the tool of the skill that knows them
}

// A Secret is a value that the host adds to requests and the guest never sees.
// Where the value comes from, and the most hosts it may go to, is the
// operator's to say.
type Secret struct {
	Name   string
	Hosts  []string // network entries, each within the skill's network list
	Header string   // such as "Authorization"; "" if Query says it
	Query  string   // or the parameter of the URL that carries it, such as "api_key"
	Format string   // "{}" stands for the value, such as "Bearer {}"
	Pos    capability.Pos
}

// Reach returns x.Hosts as capabilities.
func (x Secret) Reach() (hosts capability.Set) {
	for _, entry := range x.Hosts {
		if c, err := capability.Parse(capability.Network, entry, x.Pos); err == nil { // checked when the manifest was read
			hosts = append(hosts, c)
		}
	}
	return hosts
}

// Limits bound one call. Load fills in the defaults; a zero field means "not
// said" only inside this package.
type Limits struct {
	Memory      int64         // bytes of linear memory or address space
	Timeout     time.Duration // restarts with each partial output
	MaxTimeout  time.Duration // never restarts
	Output      int64         // bytes of result, partial content and logs together
	Concurrency int           // calls of this skill at the same time
	Rate        Rate          // calls of this skill
	Processes   int           // native runtimes
	HTTPBody    int64         // bytes of one HTTP body, either way
}

// A Rate is Calls per Per. The zero Rate is unlimited.
type Rate struct {
	Calls int
	Per   time.Duration
}

// DefaultLimits are the limits of a manifest that names none.
var DefaultLimits = Limits{
	Memory:      128 << 20,
	Timeout:     30 * time.Second,
	MaxTimeout:  10 * time.Minute,
	Output:      8 << 20,
	Concurrency: 4,
	Processes:   32,
	HTTPBody:    16 << 20,
}

// Sandbox says how a skill is confined.
type Sandbox struct {
	Require   string // native runtimes: "strict", "landlock" or "none"
	Isolation string // "call" (default), "fresh" or "session"
	Home      string // plugin, exec: "private" is a home directory that is kept for each caller and workspace; "" is none
	Loopback  bool   // native runtimes at level strict: programs may listen and connect on a loopback of their own
	Nest      bool   // native runtimes at level strict: programs may make user, PID and network namespaces of their own
}

// Frontmatter is the head of a SKILL.md as JSON, verbatim (Agent Skills format).
type Frontmatter = json.RawMessage
