// Package settings gives each skill what the operator set for it, once it is
// known to be what the skill's manifest describes. It reads no file, and does
// not know what the settings mean.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/nearest"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
)

// A Table is what the operator set for one skill.
type Table struct {
	Values json.RawMessage // a JSON object
	From   string          // where it is written, for messages
}

// Settings are the tables of all skills. They are safe for concurrent use.
type Settings struct {
	tables map[string]Table // by the names of skills

	mu      sync.Mutex
	checked map[string]error // by name and digest
}

// New returns the Settings of the skills that are the keys of tables.
func New(tables map[string]Table) *Settings {
	return &Settings{tables: tables, checked: map[string]error{}}
}

// maxChecked bounds what is remembered; past it the table starts afresh.
const maxChecked = 1024

// Of returns what the operator set for s, a JSON object that fits s.Settings,
// or nil if nothing is set or s declares none. If it does not fit, the error has
// kind Unavailable: no other arguments would help, but another file would.
func (t *Settings) Of(s *manifest.Skill) (json.RawMessage, error) {
	if s.Settings == nil {
		return nil, nil
	}
	table := t.tables[s.Name]
	key := s.Name + "\x00" + s.Home.Digest
	t.mu.Lock()
	err, known := t.checked[key]
	t.mu.Unlock()
	if !known {
		err = check(s, table)
		t.mu.Lock()
		if len(t.checked) >= maxChecked {
			clear(t.checked)
		}
		t.checked[key] = err
		t.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return table.Values, nil
}

// check holds table against the schema of s.
func check(s *manifest.Skill, table Table) error {
	shape, err := schema.CompileSettings(s.Settings)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, Op: s.Home.File, What: "settings", Err: errors.New(err.Error())}
	}
	if err := shape.Check(table.Values); err != nil {
		at := table.From
		if at == "" {
			at = "config.toml"
		}
		return &sdk.Error{Kind: sdk.Unavailable, Op: at, What: fmt.Sprintf("[settings.%s] is not what the skill %q takes", s.Name, s.Name), Err: errors.New(err.Error()),
			Hint: "the operator has to correct it; skill show " + s.Name + " prints the schema"}
	}
	return nil
}

// Problems returns what is wrong with the tables, given the skills that are
// installed: tables of no skill, or of one that takes none, and those that do
// not fit.
func (t *Settings) Problems(skills []*manifest.Skill) (errs []error) {
	byName, names := map[string]*manifest.Skill{}, []string(nil)
	for _, s := range skills {
		byName[s.Name] = s
		if s.Settings != nil {
			names = append(names, s.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.tables)) {
		table, s := t.tables[name], byName[name]
		hint := ""
		if near := nearest.Names(name, names, 1); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		switch {
		case s == nil:
			errs = append(errs, &sdk.Error{Kind: sdk.Invalid, Op: table.From, What: fmt.Sprintf("[settings.%s]: there is no such skill", name), Hint: hint})
		case s.Settings == nil:
			errs = append(errs, &sdk.Error{Kind: sdk.Invalid, Op: table.From, What: fmt.Sprintf("[settings.%s]: the skill takes no settings", name)})
		}
	}
	for _, s := range skills {
		if _, err := t.Of(s); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
