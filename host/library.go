package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/skillhost/skill/host/library"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

var _ conversation.Library = (*Host)(nil)

// shelf keeps the entries of skills that clients can load: to make one, all
// files of the skill are read.
type shelf struct {
	mu      sync.Mutex
	entries map[*manifest.Skill]json.RawMessage
}

// entry returns the entry of s. Of skills that are not among all, none is kept.
func (l *shelf) entry(s *manifest.Skill, all []*manifest.Skill) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[s]; e != nil {
		return e, nil
	}
	e, err := library.Entry(s)
	if err != nil {
		return nil, err
	}
	kept := map[*manifest.Skill]json.RawMessage{s: e}
	for _, other := range all {
		if e := l.entries[other]; e != nil {
			kept[other] = e
		}
	}
	l.entries = kept
	return e, nil
}

// shelved returns the skills that scope may load, sorted by name.
func (h *Host) shelved(scope sdk.Scope) (out []*manifest.Skill) {
	for _, s := range h.Catalog.Skills() {
		if library.Holds(s) && h.Dispatcher.VisibleSkill(s, scope) {
			out = append(out, s)
		}
	}
	return out
}

// loadable returns the skill that a URI names, if scope may load it, and the
// path of the file in it.
func (h *Host) loadable(scope sdk.Scope, uri string) (*manifest.Skill, string, error) {
	if name, file, ok := library.Parse(uri); ok {
		for _, s := range h.shelved(scope) {
			if s.Name == name {
				return s, file, nil
			}
		}
	}
	return nil, "", &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no skill %.100q", uri), Hint: "see skills/list"}
}

// Skill implements conversation.Library.
func (h *Host) Skill(_ context.Context, scope sdk.Scope, uri string) (json.RawMessage, error) {
	s, file, err := h.loadable(scope, uri)
	if err == nil && file != manifest.InstructionsName {
		err = &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no skill %.100q", uri), Hint: "the URI of a skill is that of its " + manifest.InstructionsName}
	}
	if err != nil {
		return nil, err
	}
	return h.shelf.entry(s, h.Catalog.Skills())
}

// Directory implements conversation.Library.
func (h *Host) Directory(_ context.Context, scope sdk.Scope, uri, cursor string, n int) (page conversation.Page, err error) {
	s, dir, err := h.loadable(scope, uri)
	if err != nil {
		return page, err
	}
	all, err := library.Directory(s, dir)
	if err != nil {
		return page, err
	}
	return pageOf(all, func(l library.Listed) string { return l.Name }, cursor, n, func(l library.Listed) (json.RawMessage, error) { return json.Marshal(l) })
}

// skills is a page of the skills that scope may load. One whose files cannot be
// read is left out, loudly.
func (h *Host) skills(scope sdk.Scope, cursor string, n int) (page conversation.Page, err error) {
	all := h.shelved(scope)
	return pageOf(all, func(s *manifest.Skill) string { return s.Name }, cursor, n, func(s *manifest.Skill) (json.RawMessage, error) {
		item, err := h.shelf.entry(s, h.Catalog.Skills())
		if err != nil {
			fmt.Fprintf(h.options.Log, "skill: %s is not offered to clients: %v\n", s.Name, err)
			return nil, nil
		}
		return item, nil
	})
}

// pageOf returns at most n of all, which are sorted by their names, after the
// one that a cursor names. What show returns as nil is left out.
func pageOf[T any](all []T, name func(T) string, cursor string, n int, show func(T) (json.RawMessage, error)) (page conversation.Page, err error) {
	for _, x := range all {
		if cursor != "" && name(x) <= cursor {
			continue
		}
		if len(page.Items) == n {
			page.Next = cursor
			break
		}
		item, err := show(x)
		if err != nil {
			return page, err
		}
		cursor = name(x)
		if item != nil {
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}
