package host

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/dispatch"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/policy/disk"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Backend = (*Host)(nil)

// changes tells who watches what may have changed: another set of skills,
// another policy, or what a skill announces of itself.
type changes struct {
	mu      sync.Mutex
	next    chan struct{} // closed at the next change
	version uint64        // of all that can be listed
	seq     uint64        // how much has been said
	said    []news        // the last of it
	errs    []error
	from    *policy.Policy // what derived was made from
	derived *policy.Policy
}

// news is one change, of one skill or of everything.
type news struct {
	skill  *manifest.Skill // nil: of everything
	change conversation.Change
}

// maxNews is how much a watcher may be late without missing something. What it
// misses it is told as a change of all lists.
const maxNews = 256

// everything is what has changed when nobody can say what.
var everything = []conversation.Change{{Kind: conversation.Tools}, {Kind: conversation.Resources}, {Kind: conversation.Prompts}}

// announce says that everything may have changed.
func (c *changes) announce() { c.tell(news{}) }

func (c *changes) tell(n news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.change.URI == "" {
		c.version++
	}
	c.seq++
	if len(c.said) == maxNews {
		c.said = append(c.said[:0:0], c.said[1:]...)
	}
	c.said = append(c.said, n)
	close(c.next)
	c.next = make(chan struct{})
}

func (c *changes) now() (version uint64, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.next
}

// since returns what was said after the first seq news, how many there are now,
// and a channel that is closed when there are more.
func (c *changes) since(seq uint64) (fresh []news, now uint64, next <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if missed := c.seq - seq; missed > uint64(len(c.said)) {
		fresh = []news{{}}
	} else {
		fresh = slices.Clone(c.said[uint64(len(c.said))-missed:])
	}
	return fresh, c.seq, c.next
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
func (h *Host) policyChanged(e disk.Event) {
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

// List returns a page of the things of that kind that the caller of scope may
// call. Where several skills serve one URI, it is listed once, as it is read.
func (h *Host) List(_ context.Context, scope sdk.Scope, kind conversation.Kind, cursor string, n int) (conversation.Page, error) {
	version, _ := h.changes.now()
	page := conversation.Page{Version: version}
	if kind == conversation.Skills {
		page, err := h.skills(scope, cursor, n)
		page.Version = version
		return page, err
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return page, &sdk.Error{Kind: sdk.Invalid, What: "the cursor is not one of this server's"}
	}
	last := string(after)
	for x := range h.listed(catalog.Kind(kind)) {
		if x.key <= last || !h.Dispatcher.Visible(x.entry, scope) {
			continue
		}
		if len(page.Items) == n {
			page.Next = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		item := x.item
		if item == nil {
			item, err = h.Catalog.Describe(x.entry, func(s *manifest.Skill) bool { return h.Dispatcher.VisibleSkill(s, scope) })
		}
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, item)
		last = x.key
	}
	return page, nil
}

// A listing is one thing that can be listed.
type listing struct {
	key   string // by which the list is sorted
	entry *catalog.Entry
	item  json.RawMessage // nil: as the catalog describes the entry
}

// listed yields all things of a kind; none of a kind that there is not.
func (h *Host) listed(kind catalog.Kind) iter.Seq[listing] {
	return func(yield func(listing) bool) {
		if kind == catalog.Tools {
			for _, e := range h.Catalog.Entries() {
				if !yield(listing{e.Name, e, nil}) {
					return
				}
			}
			return
		}
		for _, o := range h.Catalog.Offers(kind) {
			if !yield(listing{o.Key, o.Entry, o.JSON}) {
				return
			}
		}
	}
}

// Call takes a call through the corridor.
func (h *Host) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	r, err := h.Dispatcher.Call(ctx, c, emit)
	if err != nil && policy.Remote(c.Scope.Caller) {
		failed := c // of its own, so that c need not be on the heap for calls that go well
		err = h.discreet(&failed, err)
	}
	return r, err
}

// discreet is what a remote caller is told: what it may not call does not exist,
// and what exists beside it is not said. The record says why (ADR 0005).
func (h *Host) discreet(c *sdk.Call, err error) error {
	if kind := sdk.KindOf(err); kind != sdk.NotFound && kind != sdk.Denied || h.Dispatcher.Names(c) {
		return err // the tool's own words, or what it is denied
	}
	what := map[sdk.CallKind]string{sdk.CallResource: "resource", sdk.CallPrompt: "prompt", sdk.CallCompletion: "completion"}[c.Kind]
	return &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no %s %.80q", cmp.Or(what, "tool"), c.Tool)}
}

// changed passes on what a tool of a skill announces.
func (h *Host) changed(s *manifest.Skill, c dispatch.Change) {
	h.changes.tell(news{s, conversation.Change{Kind: conversation.Kind(c.Kind), URI: c.URI}})
}

// Watch yields what changes, as far as the caller of scope may see the skill.
func (h *Host) Watch(ctx context.Context, scope sdk.Scope) iter.Seq[conversation.Change] {
	_, seq, _ := h.changes.since(0) // now, and not when it is first asked
	return func(yield func(conversation.Change) bool) {
		for {
			fresh, now, next := h.changes.since(seq)
			seq = now
			for _, change := range h.seen(fresh, scope) {
				if !yield(change) {
					return
				}
			}
			select {
			case <-next:
			case <-ctx.Done():
				return
			case <-h.ctx.Done():
				return
			}
		}
	}
}

// seen returns each change in fresh once, without those of skills that the
// caller of scope does not see.
func (h *Host) seen(fresh []news, scope sdk.Scope) (changes []conversation.Change) {
	for _, n := range fresh {
		list := everything
		if n.skill != nil {
			if !h.Dispatcher.VisibleSkill(n.skill, scope) {
				continue
			}
			list = []conversation.Change{n.change}
		}
		for _, c := range list {
			if !slices.Contains(changes, c) {
				changes = append(changes, c)
			}
		}
	}
	return changes
}
