package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// The text of a manifest. Every `toml` key in these types is a key of the
// format, and manifests/skill.schema.json has the same ones; tomlfile refuses
// all others.
type (
	document struct {
		identity
		Runtime      string                 `toml:"runtime"`
		ABI          string                 `toml:"abi"`
		Source       string                 `toml:"source"`
		Tools        map[string]toolDoc     `toml:"tools"`
		Resources    map[string]resourceDoc `toml:"resources"`
		Prompts      map[string]promptDoc   `toml:"prompts"`
		Capabilities needsDoc               `toml:"capabilities"`
		Limits       limitsDoc              `toml:"limits"`
		Sandbox      sandboxDoc             `toml:"sandbox"`
		Settings     any                    `toml:"settings"`
	}
	identity struct {
		Name        string `toml:"name"`
		Version     string `toml:"version"`
		Title       string `toml:"title"`
		Description string `toml:"description"`
		License     string `toml:"license"`
		Homepage    string `toml:"homepage"`
	}
	toolDoc struct {
		Title        string         `toml:"title"`
		Description  string         `toml:"description"`
		Input        any            `toml:"input"`
		Output       any            `toml:"output"`
		Annotations  *annotations   `toml:"annotations"`
		Examples     []string       `toml:"examples"`
		Icons        []iconDoc      `toml:"icons"`
		Meta         map[string]any `toml:"meta"`
		Hidden       bool           `toml:"hidden"`
		Task         string         `toml:"task"`
		AskFirst     bool           `toml:"ask_first"`
		Capabilities *narrowDoc     `toml:"capabilities"`
		Limits       *limitsDoc     `toml:"limits"`
		Command      []string       `toml:"command"`
		Stdin        *string        `toml:"stdin"`
		Success      []int          `toml:"success"`
	}
	annotations struct {
		ReadOnly    *bool `toml:"read_only"`
		Destructive *bool `toml:"destructive"`
		Idempotent  *bool `toml:"idempotent"`
		OpenWorld   *bool `toml:"open_world"`
	}
	iconDoc struct {
		Src   string   `toml:"src"`
		MIME  string   `toml:"mime"`
		Sizes []string `toml:"sizes"`
		Theme string   `toml:"theme"`
	}
	resourceDoc struct {
		Title        string                   `toml:"title"`
		Description  string                   `toml:"description"`
		URI          string                   `toml:"uri"`
		MIME         string                   `toml:"mime"`
		File         string                   `toml:"file"`
		Tool         string                   `toml:"tool"`
		Annotations  audienceDoc              `toml:"annotations"`
		Icons        []iconDoc                `toml:"icons"`
		Meta         map[string]any           `toml:"meta"`
		Variables    map[string]completionDoc `toml:"variables"`
		Capabilities *narrowDoc               `toml:"capabilities"`
	}
	audienceDoc struct {
		Audience []string `toml:"audience"`
		Priority *float64 `toml:"priority"`
		Modified string   `toml:"last_modified"`
	}
	completionDoc struct {
		Values   []string `toml:"values"`
		Complete string   `toml:"complete"`
	}
	promptDoc struct {
		Title        string        `toml:"title"`
		Description  string        `toml:"description"`
		Arguments    []argumentDoc `toml:"arguments"`
		File         string        `toml:"file"`
		Tool         string        `toml:"tool"`
		Icons        []iconDoc     `toml:"icons"`
		Capabilities *narrowDoc    `toml:"capabilities"`
	}
	argumentDoc struct {
		Name        string   `toml:"name"`
		Title       string   `toml:"title"`
		Description string   `toml:"description"`
		Required    bool     `toml:"required"`
		Values      []string `toml:"values"`
		Complete    string   `toml:"complete"`
	}
	sandboxDoc struct {
		Require   string `toml:"require"`
		Isolation string `toml:"isolation"`
		Home      string `toml:"home"`
		Loopback  bool   `toml:"loopback"`
		Nest      bool   `toml:"namespaces"`
	}
)

// A reader turns one document into a Skill. It stops at the first error.
type reader struct {
	file    string
	builtin bool // the manifest is part of the binary
	doc     *tomlfile.Doc
	in      document
	out     Skill
	refs    []reference
}

// A reference is a file that the manifest names and Open must find.
type reference struct {
	file string
	pos  capability.Pos
	set  func(s *Skill, content []byte) error // nil: it only has to be there
}

// anyObject is the schema of a tool that says nothing of its arguments.
const anyObject = `{"type":"object"}`

// Read decodes and checks a manifest. It opens nothing: schemas that are kept
// in files are left nil, and Home has no more than File. All errors are of kind
// Invalid and say where, what is allowed there, and which known name is near.
func Read(file string, data []byte) (Skill, error) {
	r, err := read(file, data, false)
	if err != nil {
		return Skill{}, err
	}
	return r.out, nil
}

// ReadBuiltin is Read for a skill that is part of the binary. It may leave to
// the operator which hosts a secret goes to.
func ReadBuiltin(file string, data []byte) (Skill, error) {
	r, err := read(file, data, true)
	if err != nil {
		return Skill{}, err
	}
	return r.out, nil
}

func read(file string, data []byte, builtin bool) (*reader, error) {
	r := &reader{file: file, builtin: builtin}
	if err := r.decode(data); err != nil {
		return nil, err
	}
	r.out.Home.File = file
	for _, step := range []func() error{r.about, r.module, r.needs, r.limits, r.sandbox, r.tools, r.resources, r.prompts, r.offers, r.settings} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *reader) decode(data []byte) (err error) {
	r.doc, err = tomlfile.Decode(r.file, data, &r.in)
	return err
}

// fail returns an error about the value at path.
func (r *reader) fail(path []string, hint, format string, args ...any) error {
	return &sdk.Error{Kind: sdk.Invalid, Op: r.doc.Pos(path...).String(), What: fmt.Sprintf(format, args...), Hint: hint}
}

// at is the path of a value.
func at(path ...string) []string { return path }

func (r *reader) about() error {
	in := r.in.identity
	r.out.About = About(in)
	for _, required := range []struct{ key, value, hint string }{
		{"name", in.Name, `for example name = "hello"`},
		{"version", in.Version, `for example version = "0.1.0"`},
		{"description", in.Description, "say what the skill does and when to use it"},
		{"runtime", r.in.Runtime, "one of " + words.Quoted(runtimes)},
	} {
		if required.value == "" {
			return r.fail(at(required.key), required.hint, "the key %q is missing or empty", required.key)
		}
	}
	if !words.IsSkillName(in.Name) {
		return r.fail(at("name"), words.NameRule, "bad skill name %q", words.Clip(in.Name))
	}
	if !words.IsVersion(in.Version) {
		return r.fail(at("version"), `for example "1.0.0" or "2.1.0-beta.1"`, "bad version %q: want a semantic version", words.Clip(in.Version))
	}
	if in.Homepage != "" && !words.IsURL(in.Homepage, "https", "http") {
		return r.fail(at("homepage"), `for example "https://example.com/hello"`, "bad homepage %q: want an http or https URL", words.Clip(in.Homepage))
	}
	return r.texts(nil, "title", in.Title, "description", in.Description, "license", in.License)
}

// module checks runtime, abi and source, which depend on each other.
func (r *reader) module() error {
	in := &r.in
	if err := r.oneOf(at("runtime"), in.Runtime, runtimes); err != nil {
		return err
	}
	r.out.Runtime, r.out.ABI, r.out.Source = in.Runtime, in.ABI, in.Source
	if in.Runtime == "wasm" {
		if in.ABI == "" {
			r.out.ABI = sdk.ABI
		} else if err := r.oneOf(at("abi"), in.ABI, abis); err != nil {
			return err
		}
	} else if in.ABI != "" {
		return r.fail(at("abi"), "remove it", "abi %q: only the runtime \"wasm\" has one, and this is %q", words.Clip(in.ABI), in.Runtime)
	}
	switch in.Runtime {
	case "instructions":
		if in.Source != "" && in.Source != InstructionsName {
			return r.fail(at("source"), "remove it", "source %q: the text of an instruction skill is always %s", words.Clip(in.Source), InstructionsName)
		}
		r.out.Source = InstructionsName
		r.refs = append(r.refs, reference{file: InstructionsName, pos: r.doc.Pos("runtime")})
		return nil
	case "container":
		if !words.IsImage(in.Source) {
			return r.fail(at("source"), `for example source = "ghcr.io/owner/name@sha256:…"`, "bad source %q: want a container image", words.Clip(in.Source))
		}
		return nil
	case "mcp":
		if !words.IsURL(in.Source, "https", "http") {
			return r.fail(at("source"), `for example source = "https://mcp.example.com/mcp"`, "bad source %q: want the URL of an MCP server", words.Clip(in.Source))
		}
		return nil
	case "exec":
		if in.Source != "" {
			return r.fail(at("source"), "remove it", "source %q: a skill of runtime \"exec\" has no module: each of its tools has a command", words.Clip(in.Source))
		}
		return nil
	}
	return r.source()
}

// source checks the file of a module or of a plugin. A plugin of the binary has
// none: the binary itself runs as the plugin that is named.
func (r *reader) source() error {
	in := &r.in
	if in.Source == "" {
		example, what := "hello.wasm", "a module"
		if in.Runtime == "plugin" {
			example, what = "hello", "a program"
		}
		return r.fail(at("source"), fmt.Sprintf("for example source = %q", example), "the key \"source\" is missing or empty: a skill of runtime %q has %s", in.Runtime, what)
	}
	if in.Runtime == "plugin" && r.builtin {
		if !words.IsSkillName(in.Source) {
			return r.fail(at("source"), words.NameRule, "bad source %q: want the name of a plugin in the binary", words.Clip(in.Source))
		}
		return nil
	}
	return r.ref(at("source"), in.Source, nil)
}

// ref notes that the manifest names file, which must lie in the skill's
// directory.
func (r *reader) ref(path []string, file string, set func(*Skill, []byte) error) error {
	if why := words.BadFile(file); why != "" {
		return r.fail(path, "name a file of the skill's directory, such as \"hello.wasm\"", "%s %q: %s", strings.Join(path, "."), words.Clip(file), why)
	}
	r.refs = append(r.refs, reference{file: file, pos: r.doc.Pos(path...), set: set})
	return nil
}

func (r *reader) sandbox() error {
	in, out := r.in.Sandbox, Sandbox(r.in.Sandbox)
	native := slices.Contains(nativeRuntimes, r.in.Runtime)
	if in.Require != "" {
		if err := r.oneOf(at("sandbox", "require"), in.Require, requires); err != nil {
			return err
		}
		if !native {
			return r.fail(at("sandbox", "require"), "remove it", "sandbox.require: only the runtimes %s run as native processes, and this is %q", words.Quoted(nativeRuntimes), r.in.Runtime)
		}
	} else if native {
		out.Require = "landlock"
	}
	if in.Isolation == "" {
		out.Isolation = "call"
	} else if err := r.oneOf(at("sandbox", "isolation"), in.Isolation, isolations); err != nil {
		return err
	}
	if in.Home != "" {
		if err := r.oneOf(at("sandbox", "home"), in.Home, homes); err != nil {
			return err
		}
		if r.in.Runtime != "plugin" && r.in.Runtime != "exec" {
			return r.fail(at("sandbox", "home"), "remove it", "sandbox.home: only the runtimes \"plugin\", \"exec\" have a home directory, and this is %q", r.in.Runtime)
		}
	}
	for _, only := range []struct {
		said bool
		key  string
		what string
	}{{in.Loopback, "loopback", "have a network of their own"}, {in.Nest, "namespaces", "start programs"}} {
		if only.said && r.in.Runtime != "plugin" && r.in.Runtime != "exec" {
			return r.fail(at("sandbox", only.key), "remove it", "sandbox.%s: only the runtimes \"plugin\", \"exec\" %s, and this is %q", only.key, only.what, r.in.Runtime)
		}
	}
	r.out.Sandbox = out
	return nil
}

func (r *reader) tools() error {
	if len(r.in.Tools) > maxOffers {
		return r.fail(at("tools"), fmt.Sprintf("at most %d", maxOffers), "%d tools are too many for one skill", len(r.in.Tools))
	}
	for _, name := range slices.Sorted(maps.Keys(r.in.Tools)) {
		t, err := r.tool(name, r.in.Tools[name])
		if err != nil {
			return err
		}
		r.out.Tools = append(r.out.Tools, t)
	}
	return nil
}

func (r *reader) tool(name string, in toolDoc) (t Tool, err error) {
	path := at("tools", name)
	t.Name, t.Title, t.Description, t.Examples, t.Hidden, t.Pos = name, in.Title, in.Description, in.Examples, in.Hidden, r.doc.Pos(path...)
	if err := r.offerName(path); err != nil {
		return t, err
	}
	if err := r.texts(path, "title", in.Title, "description", in.Description); err != nil {
		return t, err
	}
	for i, example := range in.Examples {
		if err := r.text(at("tools", name, "examples", fmt.Sprint(i)), example); err != nil {
			return t, err
		}
	}
	if t.Input, err = r.schema(at("tools", name, "input"), in.Input, func(t *Tool) *[]byte { return (*[]byte)(&t.Input) }); err != nil {
		return t, err
	}
	if in.Input == nil {
		t.Input = []byte(anyObject)
	}
	if t.Output, err = r.schema(at("tools", name, "output"), in.Output, func(t *Tool) *[]byte { return (*[]byte)(&t.Output) }); err != nil {
		return t, err
	}
	if in.Annotations != nil {
		a := sdk.Annotations(*in.Annotations)
		t.Annotations = &a
	}
	if t.Icons, err = r.icons(at("tools", name, "icons"), in.Icons); err != nil {
		return t, err
	}
	if in.Meta != nil {
		if t.Meta, err = r.toJSON(at("tools", name, "meta"), in.Meta); err != nil {
			return t, err
		}
	}
	if t.Narrow, err = r.narrow(append(path, "capabilities"), in.Capabilities); err != nil {
		return t, err
	}
	if t.Task, err = r.task(path, in); err != nil {
		return t, err
	}
	t.Limits = r.out.Limits
	if in.Limits != nil {
		for key, said := range map[string]bool{"concurrency": in.Limits.Concurrency != nil, "rate": in.Limits.Rate != nil} {
			if said { // they hold for all tools of a skill together
				return t, r.fail(at("tools", name, "limits", key), "write it under [limits]", "%s is a limit of the whole skill, not of one tool", key)
			}
		}
		if t.Limits, err = r.limitsOver(append(path, "limits"), *in.Limits, r.out.Limits); err != nil {
			return t, err
		}
	}
	t.Command, err = r.command(&t, in)
	return t, err
}

// task reads when calls of a tool become tasks.
func (r *reader) task(path []string, in toolDoc) (Task, error) {
	switch {
	case in.Task != "":
		return Task{When: in.Task, AskFirst: in.AskFirst}, r.oneOf(append(path[:len(path):len(path)], "task"), in.Task, taskWhens)
	case in.AskFirst:
		return Task{}, r.fail(append(path[:len(path):len(path)], "ask_first"), "add task, or remove it", "%s.ask_first: its calls do not become tasks", strings.Join(path, "."))
	}
	return Task{}, nil
}

func (r *reader) icons(path []string, in []iconDoc) (icons []sdk.Icon, err error) {
	for i, icon := range in {
		if !words.IsURL(icon.Src, "https") && !strings.HasPrefix(icon.Src, "data:image/") {
			return nil, r.fail(append(path, fmt.Sprint(i), "src"), "", "bad icon %q: want an https URL or a data:image/ URI", words.Clip(icon.Src))
		}
		if icon.Theme != "" {
			if err := r.oneOf(append(path, fmt.Sprint(i), "theme"), icon.Theme, themes); err != nil {
				return nil, err
			}
		}
		icons = append(icons, sdk.Icon(icon))
	}
	return icons, nil
}

// offers checks that the skill has something to offer.
func (r *reader) offers() error {
	n := len(r.out.Tools) + len(r.out.Resources) + len(r.out.Prompts)
	if n > 0 || r.out.Runtime == "instructions" || r.out.Runtime == "mcp" {
		return nil
	}
	return r.fail(at("runtime"), "add a table such as [tools.greet]", "the skill offers nothing: it has no tools, resources or prompts")
}
