package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

const (
	freshness  = time.Second // how old what is known of the tools may be
	maxKnown   = 64          // callers whose tools are known
	maxPages   = 64          // of their list
	maxNesting = 16          // of annotations
	annotation = `"x-mcp-header"`
)

// Params knows which arguments of which tools headers have to repeat, from the
// annotations of their schemas. It asks for the list of tools once in a while,
// and reads it again when its version is another one.
type Params struct {
	Room  *conversation.Room
	mu    sync.Mutex
	known map[sdk.Scope]*bindings // by scope without session
}

// bindings are those of one caller's tools.
type bindings struct {
	at      time.Time
	version uint64
	tools   map[string][]binding // only of tools that have any
}

// A binding says that a header repeats an argument.
type binding struct {
	path   []string
	header string // in its canonical form
}

// Check refuses a tools/call whose headers are not those of its arguments.
func (p *Params) Check(ctx context.Context, scope sdk.Scope, head http.Header, m *message.Request) *wire.Fault {
	tools, err := p.of(ctx, scope)
	if err != nil || len(tools) == 0 { // the call itself says what is wrong with the house
		return nil
	}
	name, _ := wire.Text(m.Members.Name)
	// Whatever the tool is called by: who reads the headers on the way reads the
	// same ones.
	name, given, direct := p.Room.Means(scope, name, m.Members.Arguments)
	list := tools[name]
	if len(list) == 0 {
		return nil
	}
	var args map[string]raw
	if given != nil && json.Unmarshal(given, &args) != nil {
		return nil // the call itself says so
	}
	for _, b := range list {
		if len(head[b.header]) == 0 && !direct {
			continue // the schema of the tool that was called asks for none
		}
		if why := b.contradicts(head, args); why != "" {
			return lie(why)
		}
	}
	return nil
}

// contradicts says why the headers are not those of the arguments, or "".
func (b *binding) contradicts(head http.Header, args map[string]raw) string {
	values := head[b.header]
	arg, there := lookup(args, b.path)
	what := strings.Join(b.path, ".")
	switch {
	case len(values) > 1:
		return "more than one header " + b.header
	case !there && len(values) > 0 && values[0] != "":
		return "header " + b.header + " repeats an argument that is not there: " + what
	case !there:
		return ""
	case len(values) == 0:
		return "missing header " + b.header + ", which repeats the argument " + what
	}
	if said, ok := decoded(values[0]); !ok || !same(said, arg) {
		return "header " + b.header + " and the argument " + what + " say different things"
	}
	return ""
}

// lookup returns the argument at a path, unless that is null or absent.
func lookup(args map[string]raw, path []string) (raw, bool) {
	v, ok := args[path[0]]
	for _, key := range path[1:] {
		var inner map[string]raw
		if !ok || json.Unmarshal(v, &inner) != nil {
			return nil, false
		}
		v, ok = inner[key]
	}
	return v, ok && !wire.IsNull(v)
}

// maxSafe is the largest integer that every reader of JSON keeps exactly.
const maxSafe = 1<<53 - 1

// same reports whether a header says the value of a primitive argument.
func same(said string, arg raw) bool {
	switch arg[0] {
	case '"':
		text, ok := wire.Text(arg)
		return ok && said == text
	case 't', 'f':
		return said == string(arg)
	}
	want, ok := integer(string(arg))
	if !ok {
		return false
	}
	got, ok := integer(said)
	return ok && got == want
}

func integer(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n == math.Trunc(n) && math.Abs(n) <= maxSafe
}

// of returns the bindings of a caller's tools.
func (p *Params) of(ctx context.Context, scope sdk.Scope) (map[string][]binding, error) {
	scope.Session = ""
	now := time.Now()
	p.mu.Lock()
	old := p.known[scope]
	if old != nil && now.Sub(old.at) < freshness {
		p.mu.Unlock()
		return old.tools, nil
	}
	if old != nil { // others go on with it meanwhile
		p.known[scope] = &bindings{now, old.version, old.tools}
	}
	p.mu.Unlock()
	next, err := p.read(ctx, scope, old)
	if err != nil {
		return nil, err
	}
	next.at = now
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxKnown && old == nil {
		p.known = map[sdk.Scope]*bindings{}
	}
	p.known[scope] = next
	return next.tools, nil
}

// read asks for the list of tools, as far as it is not the one of old.
func (p *Params) read(ctx context.Context, scope sdk.Scope, old *bindings) (*bindings, error) {
	next := &bindings{}
	cursor := ""
	for page := range maxPages {
		list, err := p.Room.List(ctx, scope, conversation.Tools, cursor)
		if err != nil {
			return nil, err
		}
		if page == 0 {
			next.version = list.Version
			if old != nil && old.version == list.Version && list.Version != 0 {
				next.tools = old.tools
				return next, nil
			}
		}
		for _, item := range list.Items {
			next.add(item)
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	return next, nil
}

// add notes the bindings of a listed tool.
func (b *bindings) add(item raw) {
	if !bytes.Contains(item, []byte(annotation)) {
		return
	}
	var tool struct {
		Name   string `json:"name"`
		Schema schema `json:"inputSchema"`
	}
	if json.Unmarshal(item, &tool) != nil {
		return
	}
	list := tool.Schema.bindings(nil, nil)
	if len(list) == 0 {
		return
	}
	if b.tools == nil {
		b.tools = map[string][]binding{}
	}
	b.tools[tool.Name] = list
}

// A schema is what matters here of a JSON Schema.
type schema struct {
	Header     raw            `json:"x-mcp-header"`
	Properties map[string]raw `json:"properties"`
}

// bindings appends those of the properties below path.
func (s *schema) bindings(path []string, out []binding) []binding {
	if len(path) >= maxNesting {
		return out
	}
	for name, text := range s.Properties {
		var property schema
		if json.Unmarshal(text, &property) != nil { // true, for one
			continue
		}
		at := append(path[:len(path):len(path)], name)
		if header, ok := wire.Text(property.Header); ok && header != "" {
			out = append(out, binding{at, http.CanonicalHeaderKey(Param + header)})
		}
		out = property.bindings(at, out)
	}
	return out
}
