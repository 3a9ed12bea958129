// Package catalog knows which tools, resources and prompts exist, under which
// names, and when that changes. It holds values only: it never runs a tool, and it knows nothing of
// callers and permissions.
package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/library"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
)

// An Entry is what does the work of calls: one tool of one installed skill, or
// the instructions or another file of a skill. It is never changed.
type Entry struct {
	Name   string // as offered to clients; for instructions the skill's name
	Skill  *manifest.Skill
	Tool   *manifest.Tool
	Input  *schema.Schema
	Output *schema.Schema  // nil if the tool promises nothing
	JSON   json.RawMessage // the MCP Tool object; nil for instructions
	Hidden bool            // reached only through an address such as InvokeSkill
	Offer  *Offer          // the resource or prompt that it serves; nil for the tool itself

	texts []text // arguments that hold JSON in a string
}

// Narrow returns the layers by which the manifest narrows what the skill has:
// for the tool, and for what the tool serves.
func (e *Entry) Narrow() (layers []*capability.Layer) {
	if e.Tool.Narrow != nil {
		layers = append(layers, e.Tool.Narrow)
	}
	if e.Offer != nil && e.Offer.narrow != nil {
		layers = append(layers, e.Offer.narrow)
	}
	return layers
}

// A Catalog is the current set of entries. It is safe for concurrent use.
type Catalog struct {
	names names
	mu    sync.Mutex // of Replace
	now   atomic.Pointer[snapshot]
}

// snapshot is one immutable state of the catalog.
type snapshot struct {
	skills  []*manifest.Skill // sorted by name
	listed  []*Entry          // sorted by name
	names   map[string]*Entry // by every accepted spelling
	bySkill map[string]*stock
	offers  map[Kind][]*Offer // in the order of lists
	exact   map[string][]*Offer
	tries   []*Offer          // the templates, in the order in which they are tried
	prompts map[string]*Offer // by every accepted spelling
}

// stock is what one skill has.
type stock struct {
	skill   *manifest.Skill
	entries []*Entry
	offers  []*Offer
	files   *Entry // that gives out any file of a skill which clients can load; nil: they cannot
}

func newSnapshot() *snapshot {
	return &snapshot{names: map[string]*Entry{}, bySkill: map[string]*stock{}, offers: map[Kind][]*Offer{}, exact: map[string][]*Offer{}, prompts: map[string]*Offer{}}
}

// New returns an empty Catalog that offers third-party tools as
// skill<separator>tool, but those of bare skills as tool. The separator is ".",
// "_" or "__".
func New(separator string, bare ...string) *Catalog {
	c := &Catalog{names: names{separator, bare}}
	c.now.Store(newSnapshot())
	return c
}

// Replace makes skills the whole content of the catalog, and reports whether
// that is another one. A skill that cannot be taken in is left out and
// reported; it does not harm the others. Of two skills with one name the first
// stays: put the built-ins first.
func (c *Catalog) Replace(skills []*manifest.Skill) (changed bool, errs []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := newSnapshot()
	old := c.now.Load()
	for _, s := range skills {
		if err := next.add(s, c.names, old); err != nil {
			errs = append(errs, err)
		}
	}
	next.sort()
	c.now.Store(next)
	return !slices.EqualFunc(old.skills, next.skills, func(a, b *manifest.Skill) bool {
		return a.Name == b.Name && a.Home.Digest == b.Home.Digest && a.Home.Dir == b.Home.Dir
	}), errs
}

// Entries returns the tools that are offered to clients, sorted by name. The
// slice must not be changed.
func (c *Catalog) Entries() []*Entry { return c.now.Load().listed }

// Of returns the entries of one skill, without those that serve its resources
// and prompts. The slice must not be changed.
func (c *Catalog) Of(skill string) []*Entry { return c.now.Load().entriesOf(skill) }

// Instructions returns the entries that are texts, sorted by name.
func (c *Catalog) Instructions() (texts []*Entry) {
	s := c.now.Load()
	for _, skill := range s.skills {
		for _, e := range s.bySkill[skill.Name].entries {
			if e.Hidden {
				texts = append(texts, e)
			}
		}
	}
	return texts
}

// Skills returns all skills, sorted by name. The slice must not be changed.
func (c *Catalog) Skills() []*manifest.Skill { return c.now.Load().skills }

// Skill returns the skill called name, or a not_found error with the nearest
// names.
func (c *Catalog) Skill(name string) (*manifest.Skill, error) {
	s := c.now.Load()
	if x, ok := s.bySkill[name]; ok {
		return x.skill, nil
	}
	return nil, s.noSkill(name)
}

// Lookup returns the entry that name spells.
func (c *Catalog) Lookup(name string) (*Entry, error) {
	s := c.now.Load()
	if e, ok := s.names[name]; ok {
		return e, nil
	}
	return nil, s.noTool(name)
}

func (s *snapshot) add(skill *manifest.Skill, as names, old *snapshot) error {
	if first, ok := s.bySkill[skill.Name]; ok {
		return &sdk.Error{Kind: sdk.Invalid, Op: "catalog", What: fmt.Sprintf("skill %q exists twice: %s and %s", skill.Name, first.skill.Home.File, skill.Home.File),
			Hint: "rename one or remove it; the first one is used"}
	}
	x, err := stockOf(skill, as, old)
	if err != nil {
		return err
	}
	names := map[string]*Entry{}
	for _, e := range x.entries {
		for _, spelling := range e.Spellings() {
			other := s.names[spelling]
			if other == nil {
				other = names[spelling]
			}
			if other != nil && other != e {
				return &sdk.Error{Kind: sdk.Invalid, Op: skill.Home.File, What: fmt.Sprintf("tool %q could also be called %q, which is a name of %s of %s", e.Tool.Name, spelling, other.Tool.Name, other.Skill.Home.File)}
			}
			names[spelling] = e
		}
	}
	if err := s.addOffers(x, as); err != nil {
		return err
	}
	maps.Copy(s.names, names)
	for _, e := range x.entries {
		if !e.Hidden && !e.Tool.Hidden {
			s.listed = append(s.listed, e)
		}
	}
	s.bySkill[skill.Name] = x
	s.skills = append(s.skills, skill)
	return nil
}

// stockOf makes the entries and offers of a skill, or takes them from the old
// snapshot if the skill is the same: compiling schemas is the slow part of a
// reload.
func stockOf(skill *manifest.Skill, as names, old *snapshot) (*stock, error) {
	if slices.Contains(old.skills, skill) {
		return old.bySkill[skill.Name], nil
	}
	x := &stock{skill: skill}
	if skill.Settings != nil && !skill.Home.Builtin {
		if _, err := schema.CompileSettings(skill.Settings); err != nil {
			return nil, fmt.Errorf("%s: settings: %w", skill.Home.File, err)
		}
	}
	for i := range skill.Tools {
		e, err := newEntry(skill, &skill.Tools[i], as)
		if err != nil {
			return nil, err
		}
		x.entries = append(x.entries, e)
	}
	if skill.HasInstructions() && !skill.Home.Builtin {
		e, err := textEntry(skill, instructionsOf(skill), "instructions", instructionsInput)
		if err != nil {
			return nil, err
		}
		e.Name, e.Hidden, e.Tool.Description = skill.Name, true, skill.Description
		x.entries = append(x.entries, e)
	}
	if library.Holds(skill) {
		var err error
		if x.files, err = textEntry(skill, instructionsOf(skill), "instructions", fileInput); err != nil { // who may have the text may have its files
			return nil, err
		}
	}
	if err := x.makeOffers(as); err != nil {
		return nil, err
	}
	if len(x.entries)+len(x.offers) == 0 {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: skill.Home.File, What: "the skill has neither tools nor instructions", Hint: "add a [tools.NAME] table or a SKILL.md"}
	}
	return x, nil
}

// textEntry makes an entry that gives out a file of skill, which text is as the
// runtime for texts reads it.
func textEntry(skill, text *manifest.Skill, name string, input json.RawMessage) (*Entry, error) {
	e := &Entry{Name: skill.Name + "." + name, Skill: text, Tool: &manifest.Tool{Tool: sdk.Tool{Name: name, Input: input}, Limits: skill.Limits}}
	return e, e.schemas()
}

// instructionsOf returns skill as the text that it also is: read by the runtime
// for texts, and granted nothing but its own folder.
func instructionsOf(skill *manifest.Skill) *manifest.Skill {
	if skill.Runtime == "instructions" {
		return skill
	}
	text := *skill
	text.Runtime, text.Secrets = "instructions", nil
	text.Needs.Allow = nil
	if own, err := capability.Parse(capability.Filesystem, "read:"+capability.VarSkillDir, skill.Needs.Pos); err == nil {
		text.Needs.Allow = capability.Set{own}
	}
	return &text
}

var fileInput = json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"}},"required":["file"],"additionalProperties":false}`)

var instructionsInput = json.RawMessage(`{"type":"object","properties":{"arguments":{"type":"string"}},"additionalProperties":false}`)

// schemas compiles the schemas of e's tool, those of built-in skills when they
// are needed: they are tested, and most calls need one of them.
func (e *Entry) schemas() (err error) {
	skill, tool := e.Skill, e.Tool
	if skill.Home.Builtin {
		if e.Input = schema.Later(tool.Input, false); tool.Output != nil {
			e.Output = schema.Later(tool.Output, true)
		}
		return nil
	}
	if e.Input, err = schema.Compile(tool.Input); err != nil {
		return wrap(skill, tool, "input", err)
	}
	if tool.Output != nil {
		if e.Output, err = schema.CompileAny(tool.Output); err != nil {
			return wrap(skill, tool, "output", err)
		}
	}
	return nil
}

func newEntry(skill *manifest.Skill, tool *manifest.Tool, as names) (*Entry, error) {
	e := &Entry{Name: offered(skill, tool.Name, as), Skill: skill, Tool: tool, texts: textsOf(tool.Input)}
	err := e.schemas()
	if err != nil {
		return nil, err
	}
	wire := tool.Tool
	wire.Name = e.Name
	if len(wire.Input) == 0 {
		wire.Input = json.RawMessage(`{"type":"object"}`)
	}
	if e.JSON, err = json.Marshal(wire); err != nil {
		return nil, wrap(skill, tool, "definition", err)
	}
	return e, nil
}

func wrap(skill *manifest.Skill, tool *manifest.Tool, part string, err error) error {
	return fmt.Errorf("%s: tool %q: %s: %w", skill.Home.File, tool.Name, part, err)
}

func (s *snapshot) sort() {
	slices.SortFunc(s.listed, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.skills, func(a, b *manifest.Skill) int { return strings.Compare(a.Name, b.Name) })
	s.sortOffers()
}
