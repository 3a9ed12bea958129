package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/manifest/words"
)

// maxOffers bounds the tools, the resources and the prompts of one skill.
const maxOffers = 512

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
	for _, name := range slices.Sorted(maps.Keys(r.in.Resources)) {
		res, err := r.resource(name, r.in.Resources[name])
		if err != nil {
			return err
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
	if !words.IsTemplate(in.URI) {
		return res, r.fail(key("uri"), `for example uri = "hello://greetings/{language}"`, "resources.%s: bad uri %q: want an absolute URI, or a template of one", name, words.Clip(in.URI))
	}
	switch {
	case (in.File == "") == (in.Tool == ""):
		return res, r.fail(path, "file = \"…\" serves a file of the skill, tool = \"…\" calls one of its tools", "resources.%s: want either a file or a tool", name)
	case in.File != "" && strings.Contains(in.URI, "{"):
		return res, r.fail(key("uri"), "name the tool that fills it in", "resources.%s: a template %q cannot be served from one file", name, words.Clip(in.URI))
	case in.File != "":
		err = r.ref(key("file"), in.File, nil)
	default:
		err = r.knownTool(key("tool"), in.Tool)
	}
	if err != nil {
		return res, err
	}
	res.Narrow, err = r.narrow(key("capabilities"), in.Capabilities)
	return res, err
}

// knownTool checks that the skill has a tool of that name.
func (r *reader) knownTool(path []string, name string) error {
	if _, ok := r.in.Tools[name]; ok {
		return nil
	}
	return r.fail(path, words.Near(name, slices.Sorted(maps.Keys(r.in.Tools)), "tools of this skill"), "%s: no tool %q", strings.Join(path, "."), words.Clip(name))
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
	p = Prompt{Name: name, Title: in.Title, Description: in.Description, File: in.File, Pos: r.doc.Pos(path...)}
	if err := r.texts(path, "title", in.Title, "description", in.Description); err != nil {
		return p, err
	}
	if err := r.ref(key("file"), in.File, nil); err != nil {
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
		p.Arguments = append(p.Arguments, Argument(a))
	}
	p.Narrow, err = r.narrow(key("capabilities"), in.Capabilities)
	return p, err
}
