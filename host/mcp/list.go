package mcp

import (
	"sync"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
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
	cursor, flt := c.msg.ListCursor()
	if flt != nil {
		c.fail(flt)
		return
	}
	body, err := c.page(cursor)
	if err != nil {
		flt := c.front.protocolFault(err, "tools/list")
		if flt == nil {
			flt = &wire.Fault{Code: wire.CodeServer, Message: string(sdk.KindOf(err)) + ": " + err.Error()}
			if sdk.KindOf(err) == sdk.Invalid {
				flt = wire.BadParams(err.Error())
			}
		}
		c.fail(flt)
		return
	}
	out := c.begin()
	if out == nil {
		return
	}
	l := c.era.Open(out.B, "complete", nil)
	if c.era.Modern {
		l.Raw("ttlMs", raw("0"))
		l.Text("cacheScope", cacheScope)
	}
	l.Comma()
	out.B = append(append(l.B, body...), '}')
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
	body, shaped, bad := message.AppendTools(nil, p.Items, p.Next)
	for range bad {
		f.o.Logger.Error("a tool is listed that is not a JSON object", "cursor", cursor)
	}
	for _, tool := range shaped {
		if s.outputs == nil {
			s.outputs = map[string]struct{}{}
		}
		s.outputs[tool] = struct{}{}
	}
	s.pages[cursor] = body
	return body, nil
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
