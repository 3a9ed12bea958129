package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"sync"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Backend = (*Host)(nil)

// changes tells who watches that the set of tools may have changed: another
// set of skills, or another policy.
type changes struct {
	mu      sync.Mutex
	next    chan struct{} // closed at the next change
	version uint64
	errs    []error
	from    *policy.Policy // what derived was made from
	derived *policy.Policy
}

func (c *changes) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	close(c.next)
	c.next = make(chan struct{})
}

func (c *changes) now() (version uint64, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.next
}

func (c *changes) problems(errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = errs
}

func (c *changes) list() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]error(nil), c.errs...)
}

// allowing returns p with the skill in Options.Folder allowed, as if the
// operator had written it into the file: there is no other way to allow.
func (c *changes) allowing(p *policy.Policy, cat *catalog.Catalog, name string) *policy.Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.derived != nil && c.from == p {
		return c.derived
	}
	s, err := cat.Skill(name)
	if err != nil || p.Forbids(name) { // the operator's own no stays one
		return p
	}
	derived, err := p.Allowing(name, s.Home.Digest)
	if err != nil {
		return p
	}
	c.from, c.derived = p, derived
	return derived
}

// policyChanged reports what became of a change of policy.toml. A broken file
// changes nothing, loudly.
func (h *Host) policyChanged(e policy.Event) {
	select {
	case <-h.furnished: // a change may come while the house is being built
	case <-h.ctx.Done():
		return
	}
	event := audit.Event{Type: audit.TypePolicy, Note: "policy reloaded from " + e.Path}
	switch {
	case e.Err != nil:
		event.Note, event.Kind, event.Error = "policy rejected; the old one stays in force", sdk.KindOf(e.Err), e.Err.Error()
		fmt.Fprintf(h.options.Log, "skill: the policy was NOT changed, the old one stays in force: %v\n", e.Err)
	default:
		fmt.Fprintf(h.options.Log, "skill: policy reloaded from %s\n", e.Path)
	}
	h.learnSecrets()
	if err := h.audit.Append(h.ctx, event); err != nil {
		fmt.Fprintln(h.options.Log, "skill:", err)
	}
	h.Dispatcher.Recheck()
	h.changes.announce()
}

// List returns a page of the tools that the caller of scope may call.
func (h *Host) List(_ context.Context, scope sdk.Scope, kind conversation.Kind, cursor string, n int) (conversation.Page, error) {
	version, _ := h.changes.now()
	page := conversation.Page{Version: version}
	if kind != conversation.Tools {
		return page, nil
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return page, &sdk.Error{Kind: sdk.Invalid, What: "the cursor is not one of this server's"}
	}
	for _, e := range h.Catalog.Entries() {
		if e.Name <= string(after) || !h.Dispatcher.Visible(e, scope) {
			continue
		}
		if len(page.Items) == n {
			page.Next = base64.RawURLEncoding.EncodeToString(after)
			break
		}
		item, err := h.Catalog.Describe(e, func(s *manifest.Skill) bool { return h.Dispatcher.VisibleSkill(s, scope) })
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, json.RawMessage(item))
		after = []byte(e.Name)
	}
	return page, nil
}

// Call takes a call through the corridor.
func (h *Host) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	return h.Dispatcher.Call(ctx, c, emit)
}

// Watch yields each time the set of tools may have changed.
func (h *Host) Watch(ctx context.Context, _ sdk.Scope) iter.Seq[conversation.Change] {
	return func(yield func(conversation.Change) bool) {
		_, next := h.changes.now()
		for {
			select {
			case <-next:
				_, next = h.changes.now() // before the yield, so that no change is missed meanwhile
				if !yield(conversation.Change{Kind: conversation.Tools}) {
					return
				}
			case <-ctx.Done():
				return
			case <-h.ctx.Done():
				return
			}
		}
	}
}
