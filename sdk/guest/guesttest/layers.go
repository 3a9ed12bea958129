//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// Bounds of layers, as in the real host.
const (
	maxLayers = 4
	maxLayer  = 16 << 10
)

// Layers returns what the skill has laid over the session.
func (h *Host) Layers() []guest.PushedLayer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]guest.PushedLayer(nil), h.layers...)
}

// layer serves layer.push, layer.pop and layer.list. It checks no entries.
func (h *Host) layer(op string, raw json.RawMessage) ([]byte, error) {
	var l struct {
		guest.PushedLayer
		New bool `json:"new"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if op == "layer.list" {
		return reply(map[string]any{"layers": append([]guest.PushedLayer{}, h.layers...), "others": 0})
	}
	kept := []guest.PushedLayer{}
	for _, had := range h.layers {
		if had.Name != l.Name {
			kept = append(kept, had)
		}
	}
	had := len(kept) < len(h.layers)
	if op == "layer.pop" {
		h.layers = kept
		return reply(map[string]any{"popped": had})
	}
	switch {
	case l.New && had:
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: op, What: "it lies there already"}
	case len(l.Lists) > maxLayer || len(kept) >= maxLayers:
		return nil, &sdk.Error{Kind: sdk.Limit, Op: op, What: "too many layers, or too large a one"}
	case len(l.Lists) == 0 || l.Lists[0] != '{' || l.Name == "":
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: op, What: "want a name and an object"}
	}
	if l.Since = time.Now().UTC(); h.Now != nil {
		l.Since = h.Now().UTC()
	}
	h.layers = append(kept, l.PushedLayer)
	return reply(map[string]any{"running": h.running()})
}

// running is how many jobs run. h is locked.
func (h *Host) running() (n int) {
	for _, j := range h.jobs.all {
		if !j.call && j.Status == "running" {
			n++
		}
	}
	return n
}
