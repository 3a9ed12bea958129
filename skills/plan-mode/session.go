package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

// layerName is what says that a plan is open.
const layerName = "plan mode"

// research are the built-in skills that keep the network while a plan is open:
// they read and look up, and change nothing there.
var research = []string{"web", "websearch"}

// A lists is the layer of plan mode: nothing is written but the plan and what
// is private to a call, and the network is for research. Reading is left to the
// other layers. This skill itself may write as before: it keeps copies, and makes
// the plan anew if somebody has removed it.
type lists struct {
	Write   []string                       `json:"filesystem.write"`
	Network []string                       `json:"network"`
	Builtin map[string]map[string][]string `json:"builtin"`
}

const writeEntry = "write:${workspace}/"

// layerOf is the layer for a plan.
func layerOf(id string, f planFile) guest.Layer {
	l := lists{Write: []string{writeEntry + f.rel, "write:${tmp}"}, Network: []string{}, Builtin: map[string]map[string][]string{"plan-mode": {"filesystem.write": nil}}}
	for _, name := range research {
		l.Builtin[name] = map[string][]string{"network": nil}
	}
	return guest.Layer{Name: layerName, Why: whyPrefix + id + whySuffix, Lists: l, New: true}
}

const (
	whyPrefix = "plan "
	whySuffix = "; PlanMode exit ends it"
)

// A session is how things are in the session of a call.
type session struct {
	open   bool
	id     string // of the plan
	file   planFile
	denied int64
	last   ended // if no plan is open
	plan   plan  // as far as it was read

	created  bool   // this call has made the file
	did      string // what this call has done, in a sentence
	outcome  string
	feedback string
	running  int
	notes    []string
}

func (s *session) note(n string) { s.notes = append(s.notes, n) }

// look finds out whether a plan is open, and which.
func look(c *guest.Call) (*session, error) {
	s := &session{file: planFile{workspace: c.Scope().Workspace}}
	layers, _, err := c.Layers()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(layers, func(l guest.PushedLayer) bool { return l.Name == layerName })
	if i < 0 {
		return s, s.remember(c)
	}
	s.open, s.denied = true, layers[i].Refused
	s.id = strings.TrimSuffix(strings.TrimPrefix(layers[i].Why, whyPrefix), whySuffix)
	var said lists
	if err := json.Unmarshal(layers[i].Lists, &said); err != nil {
		return nil, fmt.Errorf("the layer of plan mode: %w", err)
	}
	for _, entry := range said.Write {
		if rel, ok := strings.CutPrefix(entry, writeEntry); ok {
			s.file.rel = rel
		}
	}
	if s.file.rel == "" {
		return nil, errors.New("the layer of plan mode names no plan file")
	}
	return s, nil
}

// An ended is the last plan of a session, once plan mode is off.
type ended struct {
	ID       string    `json:"id"`
	File     string    `json:"file"`
	Approved bool      `json:"approved"`
	At       time.Time `json:"at"`
}

// Where plans of a session are remembered: the last one, and of the open one what
// its file may have lost. Neither says anything of whether a plan is open.
const (
	lastKey = "last"
	openKey = "open"
)

// An opened is what is remembered of the open plan.
type opened struct {
	ID      string `json:"id"`
	Goal    string `json:"goal"`
	Created string `json:"created"`
}

// remember reads the last plan.
func (s *session) remember(c *guest.Call) error {
	found, err := s.recall(c, lastKey, &s.last)
	if err != nil || !found {
		s.last = ended{}
		return err
	}
	f, err := named(s.file.workspace, s.last.File)
	if err != nil {
		s.last = ended{}
		return nil
	}
	s.id, s.file = s.last.ID, f
	return nil
}

// recall reads what is remembered under a key. What cannot be read is kept aside.
func (s *session) recall(c *guest.Call, key string, into any) (found bool, err error) {
	kv := c.KV.In("session")
	b, version, err := kv.Get(key)
	if err != nil || version == 0 {
		return false, err
	}
	if json.Unmarshal(b, into) == nil {
		return true, nil
	}
	aside := fmt.Sprintf("%s.unreadable.%d", key, version)
	if _, err := kv.Put(aside, b, guest.AnyVersion); err != nil {
		return false, err
	}
	if err := kv.Delete(key, version); err != nil && !errors.Is(err, guest.ErrConflict) {
		return false, err
	}
	s.note(fmt.Sprintf("what was remembered of a plan could not be read; it is kept under the key %q of this skill's state", aside))
	return false, nil
}

// keep remembers v. That it could not is a note: nothing depends on it.
func (s *session) keep(c *guest.Call, key string, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = c.KV.In("session").Put(key, b, guest.AnyVersion)
	}
	if err != nil {
		s.note("it could not be remembered: " + err.Error())
	}
}

// keepOpen remembers the open plan.
func (s *session) keepOpen(c *guest.Call) {
	s.keep(c, openKey, opened{s.id, s.plan.goal, s.plan.created})
}

// complete adds what the plan's file has lost: who writes a plan in one go
// often writes over its front matter.
func (s *session) complete(c *guest.Call) error {
	p := &s.plan
	if !s.open || p.goal != "" && p.created != "" {
		return nil
	}
	var o opened
	found, err := s.recall(c, openKey, &o)
	if err != nil || !found || o.ID != s.id {
		return err
	}
	if p.goal == "" {
		p.goal = o.Goal
	}
	if p.created == "" {
		p.created = o.Created
	}
	return nil
}

// forget forgets the last plan.
func forget(c *guest.Call) error {
	return c.KV.In("session").Delete(lastKey, guest.AnyVersion)
}

// end takes the layer away, and remembers how the plan ended.
func (s *session) end(c *guest.Call, now time.Time) error {
	s.last = ended{ID: s.id, File: s.file.rel, Approved: true, At: now}
	s.keep(c, lastKey, s.last)
	if _, err := c.PopLayer(layerName); err != nil {
		return err
	}
	s.open = false
	return nil
}
