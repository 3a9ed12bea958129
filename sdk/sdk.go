// Package sdk defines the words that the host and its guests share: tools,
// calls, results, questions, events, errors, and the frame in which they
// travel. It imports only the standard library, so that any guest can be built
// against it. It knows nothing of transports, permissions or runtimes.
package sdk

import (
	"encoding/json"
	"time"
)

// A Tool describes one callable tool. Its JSON form is that of the Model
// Context Protocol's Tool (specification, server/tools).
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`            // a JSON Schema of type object
	Output      json.RawMessage `json:"outputSchema,omitempty"` // a JSON Schema, or nil
	Annotations *Annotations    `json:"annotations,omitempty"`
	Icons       []Icon          `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`

	// Hidden makes the tool one that only serves resources, prompts and
	// completions of its skill: no client lists or calls it by itself.
	Hidden bool `json:"hidden,omitempty"`

	// Examples are queries that should find this tool. They feed the search
	// and are not sent to clients.
	Examples []string `json:"-"`
}

// Annotations are hints on a tool's behaviour; nil means "not said". No
// decision of the host rests on them.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// An Icon is an image that a client may show beside a tool.
type Icon struct {
	Src   string   `json:"src"`
	MIME  string   `json:"mimeType,omitempty"`
	Sizes []string `json:"sizes,omitempty"`
	Theme string   `json:"theme,omitempty"` // "light" or "dark": the background that it is made for
}

// A Scope says for whom and where a call runs. Every stored key, task and
// handle names its Scope.
type Scope struct {
	Caller    string `json:"caller"`              // "local:NAME" or an OAuth subject
	Workspace string `json:"workspace,omitempty"` // real absolute path
	Session   string `json:"session,omitempty"`   // the transport's session, else the task id, else the host process
	Rights    string `json:"rights,omitempty"`    // the OAuth scopes of a remote caller, sorted, with spaces between them
}

// A Client says what the caller's client can do for a tool that needs its user.
type Client struct {
	Name     string `json:"name,omitempty"`
	Form     bool   `json:"form,omitempty"`     // can show a form (elicitation)
	URL      bool   `json:"url,omitempty"`      // can open a URL (elicitation)
	Sampling bool   `json:"sampling,omitempty"` // can ask its model
	Roots    bool   `json:"roots,omitempty"`    // can list its roots
}

// A CallKind says what a Call asks for. Whatever it is, a tool of a skill does
// the work, under the same rules, or a file of the skill that is read like one.
//
// Of a resource, each Content of the Result has the type TypeResource and is a
// part of it, a text or Data, with its URI and, if it is known, its MIME type,
// whatever type the tool gave it. Of a prompt, each Content is a message and has
// a Role, and the Result's Meta may have a "description". Of a completion,
// Structured is {"values": […], "total", "hasMore"}. A tool that reports failure
// is an error of kind Guest for all of them.
type CallKind string

// The kinds of Call.
const (
	CallTool       CallKind = ""           // Tool is a tool's name
	CallResource   CallKind = "resource"   // Tool is the URI to read
	CallPrompt     CallKind = "prompt"     // Tool is a prompt's name, Args its arguments, which are strings
	CallCompletion CallKind = "completion" // Args are {"prompt" or "uri": …, "argument": {"name", "value"}, "context": {…}}; Tool is the same prompt's name or URI template
)

// A Call is one request to run a tool.
type Call struct {
	Kind    CallKind          //
	Tool    string            // as the client spelled it
	Args    json.RawMessage   // a JSON object; nil means {}
	Scope   Scope             //
	Client  Client            //
	Trace   string            // W3C traceparent, or empty
	Narrow  json.RawMessage   // the call layer in the manifest's vocabulary as JSON, or nil
	Roots   []string          // the file: URIs that the client confines its server to; nil says nothing
	Answers map[string]Answer // to the Questions of an earlier Result; without a State they are for nobody
	State   string            // as given in that Result
}

// A Result is what a tool answers. A Result with Questions is not final: the
// front asks the user and calls again with the Answers and the same State.
type Result struct {
	Content    []Content           `json:"content,omitempty"`
	Structured json.RawMessage     `json:"structured,omitempty"` // any JSON value
	Failed     bool                `json:"failed,omitempty"`     // the tool ran and reports failure
	Questions  map[string]Question `json:"questions,omitempty"`
	State      string              `json:"state,omitempty"`
	Meta       json.RawMessage     `json:"_meta,omitempty"`
}

// The types of Content, as in the Model Context Protocol.
const (
	TypeText         = "text"
	TypeImage        = "image"
	TypeAudio        = "audio"
	TypeResource     = "resource"
	TypeResourceLink = "resource_link"
)

// Content is one piece of a result. Data travels as a blob of the frame, never
// as base64; Blob is its index there and has no meaning elsewhere.
type Content struct {
	Type        string   `json:"type"`
	Text        string   `json:"text,omitempty"`
	Data        []byte   `json:"-"`
	MIME        string   `json:"mimeType,omitempty"`
	URI         string   `json:"uri,omitempty"`
	Name        string   `json:"name,omitempty"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Size        int64    `json:"size,omitempty"`         // of what a resource_link points to, bytes
	Audience    []string `json:"audience,omitempty"`     // "user", "assistant"
	Priority    *float64 `json:"priority,omitempty"`     // 0 to 1
	Modified    string   `json:"lastModified,omitempty"` // ISO 8601
	Role        string   `json:"role,omitempty"`         // of a prompt's message: "user" (the default) or "assistant"
	Blob        *int     `json:"blob,omitempty"`
}

// A QuestionKind says how a Question is put to the user.
type QuestionKind string

// The kinds of Question. Sampling and Roots exist for legacy clients only, and
// have to be granted: they are for the client, where the others are for its user.
const (
	QuestionForm     QuestionKind = "form"
	QuestionURL      QuestionKind = "url"
	QuestionSampling QuestionKind = "sampling"
	QuestionRoots    QuestionKind = "roots"
)

// A Question asks the user for something that a tool needs.
type Question struct {
	Kind    QuestionKind    `json:"kind"`
	Message string          `json:"message,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"` // form: a flat object schema
	URL     string          `json:"url,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"` // sampling

	// Lenient lets an answer that does not fit Schema reach the tool all the
	// same, as long as it is an object: the tool makes of it what it can.
	Lenient bool `json:"lenient,omitempty"`
}

// An Answer is what the user did with a Question. All three actions reach the
// guest.
type Answer struct {
	Action  string          `json:"action"` // "accept", "decline" or "cancel"
	Content json.RawMessage `json:"content,omitempty"`

	// Channel is the way it came: "mrtr", "elicitation" or "url" from the
	// client, "page", "terminal" or "tty" from the user beside it, "call" if it
	// was there before it was asked for. Only the host sets it.
	Channel string `json:"channel,omitempty"`

	// Took is how long the question was open before it was answered beside the
	// client, ms. Only the host sets it.
	Took int64 `json:"took_ms,omitempty"`
}

// An EventKind classifies an Event.
type EventKind int

// The kinds of Event.
const (
	EventProgress EventKind = iota + 1
	EventPartial
	EventLog
	EventJob // from the host alone: the call has started a background job
)

// An Event is what a running tool says before its Result.
type Event struct {
	Kind     EventKind
	Progress float64 // EventProgress: how much is done
	Total    float64 // EventProgress: of how much; 0 if not known
	Message  string  // EventProgress, EventLog; EventJob: whose the job is, beside the caller
	Job      int64   // EventJob: its number
	Level    string  // EventLog: an RFC 5424 severity as MCP spells it: "debug" … "emergency"
	Content  Content // EventPartial
}

// Input is what a guest is handed: the header of a call's input frame
// (docs/abi.md).
type Input struct {
	Tool     string            `json:"tool"`
	Args     json.RawMessage   `json:"args,omitempty"`
	Describe bool              `json:"describe,omitempty"` // answer with a Description instead of running a tool
	Call     string            `json:"call,omitempty"`     // the call's id in the audit log
	Scope    Scope             `json:"scope,omitzero"`
	Client   Client            `json:"client,omitzero"`
	Env      map[string]string `json:"env,omitempty"`      // the environment variables granted
	Settings json.RawMessage   `json:"settings,omitempty"` // what the operator set for the skill: a JSON object that fits the manifest's settings; nil means {}
	Timeout  time.Duration     `json:"timeout,omitempty"`  // ns until cancelled() turns 1
	Answers  map[string]Answer `json:"answers,omitempty"`
	State    string            `json:"state,omitempty"`
	Proxy    string            `json:"proxy,omitempty"` // native guests: URL of the one way out for programs they run, with the call's credentials; "" means no network
	Job      int64             `json:"job,omitempty"`   // not 0: this run is that background job of the tool (job.start)
}

// A Stop is the cause with which a native guest's Context ends when somebody
// asks it to stop (job.kill). The guest has Grace left.
type Stop struct {
	Signal string        `json:"signal"` // "TERM", "INT" or "HUP"
	Grace  time.Duration `json:"grace"`  // ns
}

func (s *Stop) Error() string { return "asked to stop by signal " + s.Signal }

// A Description is a module's own account of its tools, which the build step
// writes into the manifest and the host compares with it at load.
type Description struct {
	Tools []Tool `json:"tools"`
}

// Text returns a Result that holds one text.
func Text(s string) Result { return Result{Content: []Content{{Type: TypeText, Text: s}}} }
