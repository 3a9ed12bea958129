package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/library"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/manifest/uri"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/sdk"
)

// A Kind is a kind of things that are listed.
type Kind string

// The kinds. Templates are those of resources.
const (
	Tools     Kind = "tools"
	Resources Kind = "resources"
	Templates Kind = "resourceTemplates"
	Prompts   Kind = "prompts"
)

// An Offer is a resource, a template of resources or a prompt of a skill. A
// call of its Entry serves it. It is never changed.
type Offer struct {
	Kind  Kind
	Key   string // the URI, the template, or the prompt's name as offered; lists are sorted by it
	MIME  string // of a resource, as the manifest says it
	About string // what a prompt is for
	Entry *Entry
	JSON  json.RawMessage // the MCP Resource, ResourceTemplate or Prompt object

	spellings []string // of a prompt
	optional  bool     // a prompt that stands back where its name is taken
	mention   bool     // a resource that is listed only: it is read as a file of its skill
	template  *uri.Template
	given     *schema.Schema         // prompts: of the arguments that clients give
	narrow    *capability.Layer      // of the resource or prompt, or nil
	suggest   map[string]*suggestion // by variable or argument
}

// Offers lists the offers of one kind, sorted by Key. Where several skills offer
// one Key, that which is read comes first. The slice must not be changed.
func (c *Catalog) Offers(kind Kind) []*Offer { return c.now.Load().offers[kind] }

// OffersOf returns the offers of one skill. The slice must not be changed.
func (c *Catalog) OffersOf(skill string) []*Offer {
	if x := c.now.Load().bySkill[skill]; x != nil {
		return x.offers
	}
	return nil
}

// Serves reports whether address is that of a resource of the skill, or fits one
// of its templates.
func (c *Catalog) Serves(skill, address string) bool {
	return slices.ContainsFunc(c.OffersOf(skill), func(o *Offer) bool {
		if o.Kind == Resources {
			return o.Key == address
		}
		if o.Kind != Templates || uri.Fault(address) != "" {
			return false
		}
		_, ok := o.template.Match(address)
		return ok
	})
}

// addOffers takes in the offers of one skill.
func (s *snapshot) addOffers(x *stock, as names) error {
	names := map[string]*Offer{}
	var in []*Offer
	for _, o := range x.offers {
		free := true
		for _, spelling := range o.spellings {
			other := s.prompts[spelling]
			if other == nil {
				other = names[spelling]
			}
			if other == nil {
				continue
			}
			if !o.optional {
				return &sdk.Error{Kind: sdk.Invalid, Op: x.skill.Home.File, What: fmt.Sprintf("prompt %q could also be called %q, which is a name of %s of %s", o.Key, spelling, other.Key, other.Entry.Skill.Home.File)}
			}
			free = false
		}
		if !free {
			continue
		}
		for _, spelling := range o.spellings {
			names[spelling] = o
		}
		in = append(in, o)
	}
	maps.Copy(s.prompts, names)
	for _, o := range in {
		s.offers[o.Kind] = append(s.offers[o.Kind], o)
		switch o.Kind {
		case Resources:
			if !o.mention {
				s.exact[o.Key] = append(s.exact[o.Key], o)
			}
		case Templates:
			s.tries = append(s.tries, o)
		}
	}
	return nil
}

// before orders offers that are about the same thing: built-ins come first,
// then the names of skills decide.
func (o *Offer) before(other *Offer) int {
	a, b := o.Entry.Skill, other.Entry.Skill
	if a.Home.Builtin != b.Home.Builtin {
		if a.Home.Builtin {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(o.Key, other.Key))
}

func (s *snapshot) sortOffers() {
	for _, list := range s.offers {
		slices.SortStableFunc(list, func(a, b *Offer) int { return cmp.Or(strings.Compare(a.Key, b.Key), a.before(b)) })
	}
	for _, list := range s.exact {
		slices.SortStableFunc(list, (*Offer).before)
	}
	slices.SortStableFunc(s.tries, func(a, b *Offer) int {
		return cmp.Or(cmp.Compare(len(b.template.Prefix), len(a.template.Prefix)), a.before(b))
	})
}

// makeOffers makes the offers of x.skill, whose entries are there.
func (x *stock) makeOffers(as names) error {
	text := instructionsOf(x.skill)
	for i := range x.skill.Resources {
		if err := x.addResource(&x.skill.Resources[i], text); err != nil {
			return err
		}
	}
	for i := range x.skill.Prompts {
		if err := x.addPrompt(&x.skill.Prompts[i], text, as); err != nil {
			return err
		}
	}
	return x.addInstructions()
}

func (x *stock) addResource(r *manifest.Resource, text *manifest.Skill) (err error) {
	o := &Offer{Kind: Resources, Key: r.URI, MIME: r.MIME, template: r.Template, narrow: r.Narrow}
	if r.Template != nil {
		o.Kind = Templates
	}
	if o.Entry, err = x.worker(o, r.Tool, text, "resources."+r.Name, noArguments); err != nil {
		return err
	}
	o.suggest = map[string]*suggestion{}
	if r.Template != nil {
		for _, name := range r.Template.Names {
			o.suggest[name] = x.suggestion(o, r.Variables[name])
		}
	}
	o.JSON, err = json.Marshal(resourceJSON(r, x.skill.Home.Files))
	x.offers = append(x.offers, o)
	return err
}

func (x *stock) addPrompt(p *manifest.Prompt, text *manifest.Skill, as names) (err error) {
	o := &Offer{Kind: Prompts, Key: offered(x.skill, p.Name, as), About: p.Description, narrow: p.Narrow}
	o.spellings = spellings(x.skill, o.Key, p.Name)
	input := argumentsSchema(p.Arguments)
	if o.given, err = schema.Compile(input); err != nil {
		return fmt.Errorf("%s: prompt %q: %w", x.skill.Home.File, p.Name, err)
	}
	if o.Entry, err = x.worker(o, p.Tool, text, "prompts."+p.Name, input); err != nil {
		return err
	}
	o.suggest = map[string]*suggestion{}
	for _, a := range p.Arguments {
		o.suggest[a.Name] = x.suggestion(o, a.Complete)
	}
	o.JSON, err = json.Marshal(promptJSON(o.Key, p))
	x.offers = append(x.offers, o)
	return err
}

// addInstructions offers the text of the skill as a resource and as a prompt,
// unless the skill has ones of its own by those names.
func (x *stock) addInstructions() (err error) {
	text := library.Instructions(x.skill)
	if x.files != nil && library.Holds(x.skill) && !slices.ContainsFunc(x.skill.Resources, func(r manifest.Resource) bool { return r.URI == text.URI }) {
		o := &Offer{Kind: Resources, Key: text.URI, MIME: text.MIME, Entry: x.files, mention: true}
		if o.JSON, err = json.Marshal(text); err != nil {
			return err
		}
		x.offers = append(x.offers, o)
	}
	i := slices.IndexFunc(x.entries, func(e *Entry) bool { return e.Hidden })
	if i < 0 || slices.ContainsFunc(x.skill.Prompts, func(p manifest.Prompt) bool { return p.Name == x.skill.Name }) {
		return nil
	}
	o := &Offer{Kind: Prompts, Key: x.skill.Name, About: x.skill.Description, spellings: []string{x.skill.Name}, optional: true, suggest: map[string]*suggestion{"arguments": {}}}
	e := *x.entries[i]
	e.Offer, o.Entry, o.given = o, &e, e.Input
	o.JSON, err = json.Marshal(promptJSON(o.Key, &manifest.Prompt{Title: x.skill.Title, Description: x.skill.Description,
		Arguments: []manifest.Argument{{Name: "arguments", Description: "what the instructions are to be applied to"}}}))
	x.offers = append(x.offers, o)
	return err
}

var noArguments = json.RawMessage(`{"type":"object","additionalProperties":false}`)

// worker returns the entry that serves o: the tool of that name, or without a
// name one that reads a file.
func (x *stock) worker(o *Offer, tool string, text *manifest.Skill, name string, input json.RawMessage) (*Entry, error) {
	for _, e := range x.entries {
		if tool != "" && !e.Hidden && e.Tool.Name == tool {
			serving := *e
			serving.Offer = o
			return &serving, nil
		}
	}
	if tool != "" { // the manifest was read with it
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: x.skill.Home.File, What: fmt.Sprintf("no tool %q", tool)}
	}
	e, err := textEntry(x.skill, text, name, input)
	if err == nil {
		e.Offer = o
	}
	return e, err
}

// argumentsSchema is that of what clients give a prompt: texts.
func argumentsSchema(arguments []manifest.Argument) json.RawMessage {
	type text struct {
		Type string `json:"type"`
	}
	s := struct {
		Type       string          `json:"type"`
		Properties map[string]text `json:"properties"`
		Required   []string        `json:"required,omitempty"`
		Additional bool            `json:"additionalProperties"`
	}{Type: "object", Properties: map[string]text{}}
	for _, a := range arguments {
		s.Properties[a.Name] = text{"string"}
		if a.Required {
			s.Required = append(s.Required, a.Name)
		}
	}
	b, _ := json.Marshal(s) // texts and a bool: it cannot fail
	return b
}

// The JSON objects of lists, as the Model Context Protocol defines them.
type (
	resourceObject struct {
		URI         string          `json:"uri,omitempty"`
		Template    string          `json:"uriTemplate,omitempty"`
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		MIME        string          `json:"mimeType,omitempty"`
		Size        *int64          `json:"size,omitempty"`
		Annotations *audienceObject `json:"annotations,omitempty"`
		Icons       []sdk.Icon      `json:"icons,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}
	audienceObject struct {
		Audience []string `json:"audience,omitempty"`
		Priority *float64 `json:"priority,omitempty"`
		Modified string   `json:"lastModified,omitempty"`
	}
	promptObject struct {
		Name        string           `json:"name"`
		Title       string           `json:"title,omitempty"`
		Description string           `json:"description,omitempty"`
		Arguments   []argumentObject `json:"arguments,omitempty"`
		Icons       []sdk.Icon       `json:"icons,omitempty"`
	}
	argumentObject struct {
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		Required    bool   `json:"required,omitempty"`
	}
)

func resourceJSON(r *manifest.Resource, files fs.FS) resourceObject {
	o := resourceObject{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME, Icons: r.Look.Icons, Meta: r.Look.Meta}
	if r.Template != nil {
		o.URI, o.Template = "", r.URI
	}
	if l := r.Look; l.Audience != nil || l.Priority != nil || l.Modified != "" {
		o.Annotations = &audienceObject{l.Audience, l.Priority, l.Modified}
	}
	if r.File != "" && files != nil {
		if st, err := fs.Stat(files, r.File); err == nil {
			size := st.Size()
			o.Size = &size
		}
	}
	return o
}

func promptJSON(name string, p *manifest.Prompt) promptObject {
	o := promptObject{Name: name, Title: p.Title, Description: p.Description, Icons: p.Icons}
	for _, a := range p.Arguments {
		o.Arguments = append(o.Arguments, argumentObject{a.Name, a.Title, a.Description, a.Required})
	}
	return o
}
