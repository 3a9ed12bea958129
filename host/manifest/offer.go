package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/host/manifest/uri"
	"github.com/skillhost/skill/host/manifest/words"
)

// Bounds of what one skill offers. Every template that there is may be tried
// against a URI.
const (
	maxOffers      = 512 // tools, and as many resources and prompts
	maxTemplates   = 64
	maxSuggestions = 1000 // of one variable
)

func (r *reader) offerName(path []string) error {
	if name := path[1]; !words.IsToolName(name) {
		return r.fail(path, "1 to 128 ASCII letters, digits, \"_\", \"-\" and \".\"", "bad name %q in [%s]", words.Clip(name), path[0])
	}
	return nil
}

func (r *reader) resources() error {
	if len(r.in.Resources) > maxOffers {
		return r.fail(at("resources"), fmt.Sprintf("at most %d", maxOffers), "%d resources are too many for one skill", len(r.in.Resources))
	}
	templates, first := 0, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.in.Resources)) {
		res, err := r.resource(name, r.in.Resources[name])
		if err != nil {
			return err
		}
		if other, ok := first[res.URI]; ok {
			return r.fail(at("resources", name, "uri"), "", "resources.%s: the uri of resources.%s", name, other)
		}
		first[res.URI] = name
		if res.Template != nil {
			if templates++; templates > maxTemplates {
				return r.fail(at("resources", name), fmt.Sprintf("at most %d", maxTemplates), "too many templates for one skill")
			}
		}
		r.out.Resources = append(r.out.Resources, res)
	}
	return nil
}

func (r *reader) resource(name string, in resourceDoc) (res Resource, err error) {
	path := at("resources", name)
	key := func(k string) []string { return at("resources", name, k) }
	if err := r.offerName(path); err != nil {
		return res, err
	}
	res = Resource{Name: name, Title: in.Title, Description: in.Description, URI: in.URI, MIME: in.MIME, File: in.File, Tool: in.Tool, Pos: r.doc.Pos(path...)}
	if err := r.texts(path, "title", in.Title, "description", in.Description, "mime", in.MIME); err != nil {
		return res, err
	}
	if res.Template, err = r.address(name, in); err != nil {
		return res, err
	}
	if err := r.served(path, in.File, in.Tool, in.Capabilities); err != nil {
		return res, err
	}
	if in.File != "" && res.Template != nil {
		return res, r.fail(key("uri"), "name the tool that fills it in", "resources.%s: a template %q cannot be served from one file", name, words.Clip(in.URI))
	}
	if res.Look, err = r.look(path, in); err != nil {
		return res, err
	}
	for _, v := range slices.Sorted(maps.Keys(in.Variables)) {
		if res.Template == nil || !slices.Contains(res.Template.Names, v) {
			return res, r.fail(at("resources", name, "variables", v), "", "resources.%s: the uri has no variable %q", name, words.Clip(v))
		}
		c, err := r.completion(at("resources", name, "variables", v), in.Variables[v])
		if err != nil {
			return res, err
		}
		if res.Variables == nil {
			res.Variables = map[string]Completion{}
		}
		res.Variables[v] = c
	}
	res.Narrow, err = r.narrow(key("capabilities"), in.Capabilities)
	return res, err
}

// address checks the URI of a resource. Those of the scheme skill name a skill,
// which no other one may speak for.
func (r *reader) address(name string, in resourceDoc) (*uri.Template, error) {
	path := at("resources", name, "uri")
	bad := func(why, hint string) (*uri.Template, error) {
		return nil, r.fail(path, hint, "resources.%s: bad uri %q: %s", name, words.Clip(in.URI), why)
	}
	if !words.IsTemplate(in.URI) {
		return bad("want an absolute URI, or a template of one", `for example uri = "hello://greetings/{language}"`)
	}
	scheme, _, _ := strings.Cut(strings.ToLower(in.URI), ":")
	switch own := "skill://" + r.out.Name + "/"; {
	case scheme == "skill" && !strings.HasPrefix(in.URI, own):
		return bad("it names another skill", fmt.Sprintf("begin with %q, or take another scheme", own))
	case scheme == "skill-output" && !r.builtin:
		return bad("the scheme is the host's own", "take another one")
	}
	if !strings.Contains(in.URI, "{") {
		if why := uri.Fault(in.URI); why != "" {
			return bad(why, "")
		}
		return nil, nil
	}
	t, err := uri.Parse(in.URI)
	if err != nil {
		return bad(err.Error(), `for example uri = "hello://greetings/{language}"`)
	}
	return t, nil
}

// served checks what serves the resource or the prompt at path. A file of the
// skill is read under no other grant than for itself.
func (r *reader) served(path []string, file, tool string, narrow *narrowDoc) error {
	where := strings.Join(path, ".")
	key := func(k string) []string { return append(path[:len(path):len(path)], k) }
	switch {
	case (file == "") == (tool == ""):
		return r.fail(path, "file = \"…\" serves a file of the skill, tool = \"…\" calls one of its tools", "%s: want either a file or a tool", where)
	case tool != "":
		return r.knownTool(key("tool"), tool)
	case narrow != nil:
		return r.fail(key("capabilities"), "remove it", "%s: a file of the skill needs no capabilities", where)
	}
	return r.ref(key("file"), file, nil)
}

// knownTool checks that the skill has a tool of that name.
func (r *reader) knownTool(path []string, name string) error {
	if _, ok := r.in.Tools[name]; ok {
		return nil
	}
	return r.fail(path, words.Near(name, slices.Sorted(maps.Keys(r.in.Tools)), "tools of this skill"), "%s: no tool %q", strings.Join(path, "."), words.Clip(name))
}

func (r *reader) look(path []string, in resourceDoc) (l Look, err error) {
	key := func(k ...string) []string { return append(path[:len(path):len(path)], k...) }
	a := in.Annotations
	l.Audience, l.Priority, l.Modified = a.Audience, a.Priority, a.Modified
	for i, who := range a.Audience {
		if err := r.oneOf(key("annotations", "audience", fmt.Sprint(i)), who, audiences); err != nil {
			return l, err
		}
	}
	if p := a.Priority; p != nil && !(*p >= 0 && *p <= 1) {
		return l, r.fail(key("annotations", "priority"), "from 0 (optional) to 1 (required)", "%s.annotations.priority: bad priority %v", strings.Join(path, "."), *p)
	}
	if a.Modified != "" {
		_, day := time.Parse(time.DateOnly, a.Modified)
		if _, err := time.Parse(time.RFC3339, a.Modified); err != nil && day != nil {
			return l, r.fail(key("annotations", "last_modified"), `for example "2026-11-22T10:00:00Z"`, "%s.annotations.last_modified: bad time %q", strings.Join(path, "."), words.Clip(a.Modified))
		}
	}
	if l.Icons, err = r.icons(key("icons"), in.Icons); err != nil {
		return l, err
	}
	if in.Meta != nil {
		l.Meta, err = r.toJSON(key("meta"), in.Meta)
	}
	return l, err
}

// completion reads where suggestions for the variable at path come from.
func (r *reader) completion(path []string, in completionDoc) (Completion, error) {
	key := func(k ...string) []string { return append(path[:len(path):len(path)], k...) }
	switch {
	case in.Values != nil && in.Complete != "":
		return Completion{}, r.fail(path, "values = […] lists them, complete = \"…\" asks a tool of the skill", "%s: both values and a tool that knows them", strings.Join(path, "."))
	case in.Complete != "":
		if err := r.knownTool(key("complete"), in.Complete); err != nil {
			return Completion{}, err
		}
	case len(in.Values) > maxSuggestions:
		return Completion{}, r.fail(key("values"), fmt.Sprintf("at most %d; a tool may know more", maxSuggestions), "%s: %d values are too many", strings.Join(path, "."), len(in.Values))
	}
	for i, v := range in.Values {
		if err := r.text(key("values", fmt.Sprint(i)), v); err != nil {
			return Completion{}, err
		}
	}
	return Completion{Values: in.Values, Tool: in.Complete}, nil
}

func (r *reader) prompts() error {
	if len(r.in.Prompts) > maxOffers {
		return r.fail(at("prompts"), fmt.Sprintf("at most %d", maxOffers), "%d prompts are too many for one skill", len(r.in.Prompts))
	}
	for _, name := range slices.Sorted(maps.Keys(r.in.Prompts)) {
		p, err := r.prompt(name, r.in.Prompts[name])
		if err != nil {
			return err
		}
		r.out.Prompts = append(r.out.Prompts, p)
	}
	return nil
}

func (r *reader) prompt(name string, in promptDoc) (p Prompt, err error) {
	path := at("prompts", name)
	key := func(k string) []string { return at("prompts", name, k) }
	if err := r.offerName(path); err != nil {
		return p, err
	}
	p = Prompt{Name: name, Title: in.Title, Description: in.Description, File: in.File, Tool: in.Tool, Pos: r.doc.Pos(path...)}
	if err := r.texts(path, "title", in.Title, "description", in.Description); err != nil {
		return p, err
	}
	if err := r.served(path, in.File, in.Tool, in.Capabilities); err != nil {
		return p, err
	}
	if p.Icons, err = r.icons(key("icons"), in.Icons); err != nil {
		return p, err
	}
	for i, a := range in.Arguments {
		arg := append(key("arguments"), fmt.Sprint(i))
		if !words.IsToolName(a.Name) {
			return p, r.fail(append(arg, "name"), "1 to 128 ASCII letters, digits, \"_\", \"-\" and \".\"", "prompts.%s: bad argument name %q", name, words.Clip(a.Name))
		}
		if slices.ContainsFunc(p.Arguments, func(b Argument) bool { return a.Name == b.Name }) {
			return p, r.fail(append(arg, "name"), "", "prompts.%s: duplicate argument %q", name, a.Name)
		}
		if err := r.texts(arg, "title", a.Title, "description", a.Description); err != nil {
			return p, err
		}
		c, err := r.completion(arg, completionDoc{a.Values, a.Complete})
		if err != nil {
			return p, err
		}
		p.Arguments = append(p.Arguments, Argument{a.Name, a.Title, a.Description, a.Required, c})
	}
	p.Narrow, err = r.narrow(key("capabilities"), in.Capabilities)
	return p, err
}
