package conversation

import (
	"context"
	"sync"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

const (
	pageSize   = 1000
	cacheScope = "private" // what exists depends on who asks
	maxPages   = 256       // kept encoded
)

// lists keeps the pages of lists encoded.
type lists struct {
	mu      sync.Mutex
	pages   map[pageKey]page
	outputs map[string]struct{} // the tools that were ever listed with an output schema
}

type pageKey struct {
	kind           Kind
	caller, rights string
	cursor         string // the Backend's
}

type page struct {
	version uint64
	members raw // the list and "nextCursor"
}

// list answers a request for the list of that kind.
func (c *call) list(kind Kind) {
	cursor, flt := c.msg.ListCursor()
	if flt != nil {
		c.fail(flt)
		return
	}
	members, err := c.page(kind, cursor)
	if err != nil {
		c.refused(err, nil)
		return
	}
	c.succeed(func(l *wire.List) {
		c.cacheable(l)
		l.Comma()
		l.B = append(l.B, members...)
	})
}

// cacheable says how long a modern client may keep a result.
func (c *call) cacheable(l *wire.List) {
	if c.era.Modern {
		l.Raw("ttlMs", raw("0"))
		l.Text("cacheScope", cacheScope)
	}
}

// page returns the members of one page.
func (c *call) page(kind Kind, cursor string) (members raw, err error) {
	p, err := c.room.List(c.ctx, c.scope, kind, cursor)
	if err != nil {
		return nil, err
	}
	s, key := &c.room.lists, pageKey{kind, c.scope.Caller, c.scope.Rights, cursor}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.pages[key]; ok && k.version == p.Version && p.Version != 0 {
		return k.members, nil
	}
	members, shaped, bad := message.AppendList(nil, string(kind), p.Items, p.Next)
	for range bad {
		c.room.o.Logger.Error("something is listed that is not a JSON object", "kind", kind, "cursor", cursor)
	}
	if kind == Tools {
		for _, tool := range shaped {
			if s.outputs == nil {
				s.outputs = map[string]struct{}{}
			}
			s.outputs[tool] = struct{}{}
		}
	}
	if s.pages == nil || len(s.pages) >= maxPages {
		s.pages = map[pageKey]page{}
	}
	s.pages[key] = page{p.Version, members}
	return members, nil
}

// List returns the page of the Backend's list at that cursor of its own; a panic
// below becomes an internal error.
func (r *Room) List(ctx context.Context, scope sdk.Scope, kind Kind, cursor string) (p Page, err error) {
	defer caught(&err)
	return r.b.List(ctx, scope, kind, cursor, pageSize)
}

func (s *lists) hasOutput(tool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.outputs[tool]
	return ok
}
