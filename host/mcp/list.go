package mcp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"sync"

	"github.com/skillhost/skill/sdk"
)

const (
	pageSize   = 1000
	cacheScope = "private" // what exists depends on who asks
	maxPages   = 64        // kept encoded
)

// lists keeps the pages of tools/list encoded.
type lists struct {
	mu      sync.Mutex
	version uint64
	pages   map[string]raw      // by the Backend's cursor
	outputs map[string]struct{} // the tools that were ever listed with an output schema
}

// listTools answers a tools/list.
func (c *call) listTools() {
	p := &c.msg.params
	if v := c.msg.envelope.params; !isNull(v) && !isObject(v) {
		c.fail(badParams("params is not an object"))
		return
	}
	cursor := ""
	if !isNull(p.cursor) {
		t, ok := text(p.cursor)
		if ok && t != "" {
			cursor, ok = openCursor(t)
		}
		if !ok {
			c.fail(badParams("cursor: not one that this server gave"))
			return
		}
	}
	body, err := c.page(cursor)
	if err != nil {
		flt := c.front.protocolFault(err, "tools/list")
		if flt == nil {
			flt = &fault{code: codeServer, message: string(sdk.KindOf(err)) + ": " + err.Error()}
			if sdk.KindOf(err) == sdk.Invalid {
				flt = badParams(err.Error())
			}
		}
		c.fail(flt)
		return
	}
	out := c.begin()
	if out == nil {
		return
	}
	l := c.era.open(out.b, "complete", nil)
	if c.era.modern {
		l.raw("ttlMs", raw("0"))
		l.text("cacheScope", cacheScope)
	}
	l.comma()
	out.b = append(append(l.b, body...), '}')
	c.end(out)
}

// page returns the members "tools" and "nextCursor" of one page.
func (c *call) page(cursor string) (body raw, err error) {
	f := c.front
	p, err := c.list(cursor)
	if err != nil {
		return nil, err
	}
	s := f.lists
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil || s.version != p.Version || len(s.pages) >= maxPages {
		s.version, s.pages = p.Version, map[string]raw{}
	}
	if body := s.pages[cursor]; body != nil {
		return body, nil
	}
	l := list{b: []byte(`"tools":[`), first: true}
	for _, item := range p.Items {
		var tool struct {
			Name   string `json:"name"`
			Output raw    `json:"outputSchema"`
		}
		item = compact(item)
		if item == nil || json.Unmarshal(item, &tool) != nil {
			f.o.Logger.Error("a tool is listed that is not a JSON object", "cursor", cursor)
			continue
		}
		if tool.Output != nil {
			if s.outputs == nil {
				s.outputs = map[string]struct{}{}
			}
			s.outputs[tool.Name] = struct{}{}
		}
		l.comma()
		l.b = append(l.b, item...)
	}
	l.b = append(l.b, ']')
	l.first = false
	if p.Next != "" {
		l.text("nextCursor", sealCursor(p.Next))
	}
	s.pages[cursor] = l.b
	return l.b, nil
}

// list asks the Backend; a panic below becomes an internal error.
func (c *call) list(cursor string) (p Page, err error) {
	defer caught(&err)
	return c.front.b.List(c.ctx, c.front.o.Scope, Tools, cursor, pageSize)
}

func (s *lists) hasOutput(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.outputs[tool]
	return ok
}

// sealCursor makes a Backend's cursor opaque, with a sum that tells garbage
// apart. It is no secret: a cursor grants nothing.
func sealCursor(c string) string {
	b := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(c)))
	return base64.RawURLEncoding.EncodeToString(append(b, c...))
}

func openCursor(s string) (string, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 5 || binary.BigEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return "", false
	}
	return string(b[4:]), true
}
