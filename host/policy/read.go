package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/sdk"
)

// The types below are policy.toml as it is written. A nil list or pointer is a
// key that is absent.

type fileDoc struct {
	Defaults  *defaultsDoc         `toml:"defaults"`
	Skills    map[string]skillDoc  `toml:"skills"`
	Callers   map[string]callerDoc `toml:"callers"`
	Secrets   map[string]secretDoc `toml:"secrets"`
	Dangerous struct {
		Allow []string `toml:"allow"`
	} `toml:"dangerous"`
}

type defaultsDoc struct {
	Sandbox      *string   `toml:"sandbox"`
	Capabilities *grantDoc `toml:"capabilities"`
	Deny         *grantDoc `toml:"deny"`
	Tools        struct {
		Deny []string `toml:"deny"`
	} `toml:"tools"`
}

// grantDoc is a list for each kind, in the manifest's vocabulary.
type grantDoc struct {
	Network    []string `toml:"network"`
	Filesystem []string `toml:"filesystem"`
	Exec       []string `toml:"exec"`
	Env        []string `toml:"env"`
	Secrets    []string `toml:"secrets"`
	Invoke     []string `toml:"invoke"`
	Client     []string `toml:"client"`
}

type skillDoc struct {
	Allow        *bool              `toml:"allow"`
	Digest       string             `toml:"digest"`
	Dangerous    []string           `toml:"dangerous"`
	Sandbox      *string            `toml:"sandbox"`
	Capabilities *grantDoc          `toml:"capabilities"`
	Deny         *grantDoc          `toml:"deny"`
	Tools        map[string]toolDoc `toml:"tools"`
}

type toolDoc struct {
	Allow        *bool     `toml:"allow"`
	Capabilities *grantDoc `toml:"capabilities"`
	Deny         *grantDoc `toml:"deny"`
}

type callerDoc struct {
	Allow        *bool     `toml:"allow"`
	Skills       namesDoc  `toml:"skills"`
	Tools        namesDoc  `toml:"tools"`
	Capabilities *grantDoc `toml:"capabilities"`
	Deny         *grantDoc `toml:"deny"`
}

type namesDoc struct {
	Allow []string `toml:"allow"`
	Deny  []string `toml:"deny"`
}

type secretDoc struct {
	Source string   `toml:"source"`
	Hosts  []string `toml:"hosts"`
	Header string   `toml:"header"`
	Query  string   `toml:"query"`
	Format string   `toml:"format"`
}

// Read reads the text of a policy.toml. file is used in messages only. Errors
// have kind Invalid and name the line and what is allowed there.
func Read(file string, data []byte) (*Policy, error) {
	r := reader{p: &Policy{file: file, text: data, skills: map[string]*skillRules{}, callers: map[string]*callerRules{}, rights: map[string]*callerRules{}, secrets: map[string]SecretBinding{}}}
	var err error
	if r.doc, err = tomlfile.Decode(file, data, &r.in); err != nil {
		return nil, err
	}
	for _, step := range []func() error{r.dangerous, r.defaults, r.skills, r.callers, r.secrets} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	r.p.stack()
	return r.p, nil
}

// A reader turns a decoded file into rules, in an order that does not depend
// on that of maps, so that the same file gives the same error.
type reader struct {
	doc *tomlfile.Doc
	in  fileDoc
	p   *Policy
}

func (r *reader) invalid(path []string, what, hint string) *sdk.Error {
	return &sdk.Error{Kind: sdk.Invalid, Op: r.doc.Pos(path...).String(), What: strings.Join(path, ".") + ": " + what, Hint: hint}
}

// entry is invalid about entry i of the list at path.
func (r *reader) entry(path []string, i int, what, hint string) error {
	err := r.invalid(path, what, hint)
	err.Op = r.doc.Pos(at(path, fmt.Sprint(i))...).String()
	return err
}

// at returns path with more keys, never sharing memory with another result.
func at(path []string, more ...string) []string { return append(path[:len(path):len(path)], more...) }

func (r *reader) dangerous() (err error) {
	r.p.dangerous, err = r.words([]string{"dangerous", "allow"}, r.in.Dangerous.Allow)
	return err
}

// words checks that each entry is a word that some capability needs: one that
// nothing needs is a mistyped one.
func (r *reader) words(path, entries []string) (words, error) {
	for i, e := range entries {
		kind, rest, _ := strings.Cut(e, ":")
		entry := rest
		switch kind {
		case "read", "write":
			kind, entry = string(capability.Filesystem), e
		case "exec":
			if rest == "*" {
				continue
			}
		case "network", "invoke":
		default:
			return nil, r.entry(path, i, fmt.Sprintf("unknown word %q", e), `write for example "network:*", "write:/", "read:/", "exec:sh", "exec:*" or "invoke:*"`)
		}
		c, err := capability.Parse(capability.Kind(kind), entry, capability.Pos{})
		if err != nil || c.Danger() != e {
			return nil, r.entry(path, i, fmt.Sprintf("nothing needs the word %q", e), "only entries that are as good as everything need one; the refusal of such an entry names it")
		}
	}
	return entries, nil
}

func (r *reader) defaults() (err error) {
	d := r.in.Defaults
	if d == nil {
		return nil
	}
	path := []string{"defaults"}
	if r.p.sandbox, err = r.sandbox(path, d.Sandbox); err != nil {
		return err
	}
	if r.p.defaults, err = r.layer(path, d.Capabilities, d.Deny, nil); err != nil {
		return err
	}
	r.p.deny, err = r.list(at(path, "tools"), "deny", d.Tools.Deny, true)
	return err
}

// sandbox reads the operator's word on confinement in the table at path.
func (r *reader) sandbox(path []string, name *string) (level, error) {
	here := at(path, "sandbox")
	switch {
	case name == nil:
		return level{}, nil
	case *name != "strict" && *name != "landlock" && *name != "none":
		return level{}, r.invalid(here, fmt.Sprintf("unknown level %q", *name), `want "strict", "landlock" or, which confines nothing, "none"`)
	}
	return level{*name, r.doc.Pos(here...)}, nil
}

// A name is as manifests spell one; digests are as the host computes them.
var (
	skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
	digest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// isTool reports whether s can be the name of a tool.
func isTool(s string) bool { return len(s) <= 128 && toolName.MatchString(s) }

const nameHint = "a skill's name has lower-case letters, digits and single hyphens"

func (r *reader) skills() error {
	for _, name := range sortedKeys(r.in.Skills) {
		in, path := r.in.Skills[name], []string{"skills", name}
		if !skillName.MatchString(name) {
			return r.invalid(path, fmt.Sprintf("bad skill name %q", name), nameHint)
		}
		if in.Digest != "" && in.Digest != AnyDigest && !digest.MatchString(in.Digest) {
			return r.invalid(at(path, "digest"), fmt.Sprintf("bad digest %q", in.Digest), `want "sha256:" and 64 hex digits, as "skill allow" writes it`)
		}
		s := &skillRules{said: in.Allow != nil, allow: in.Allow != nil && *in.Allow, digest: in.Digest, tools: map[string]*toolRules{},
			pos: r.doc.Pos(path...), allowPos: r.doc.Pos(at(path, "allow")...), digestPos: r.doc.Pos(at(path, "digest")...)}
		var err error
		if s.dangerous, err = r.words(at(path, "dangerous"), in.Dangerous); err != nil {
			return err
		}
		if s.sandbox, err = r.sandbox(path, in.Sandbox); err != nil {
			return err
		}
		if s.layers, err = r.layer(path, in.Capabilities, in.Deny, s.dangerous); err != nil {
			return err
		}
		for _, tool := range sortedKeys(in.Tools) {
			if err := r.tool(s, at(path, "tools", tool), tool, in.Tools[tool]); err != nil {
				return err
			}
		}
		r.p.skills[name] = s
	}
	return nil
}

func (r *reader) tool(s *skillRules, path []string, name string, in toolDoc) error {
	if !isTool(name) {
		return r.invalid(path, fmt.Sprintf("bad tool name %q", name), "write the tool's name inside its skill")
	}
	layers, err := r.layer(path, in.Capabilities, in.Deny, s.dangerous)
	if err != nil {
		return err
	}
	s.tools[name] = &toolRules{refused: in.Allow != nil && !*in.Allow, pos: r.doc.Pos(at(path, "allow")...), layers: layers}
	return nil
}

// list reads a list of skills, or of tools. A nil one is not written.
func (r *reader) list(path []string, key string, entries []string, tools bool) (list, error) {
	if entries == nil {
		return list{}, nil
	}
	here := at(path, key)
	l := list{table: table(path...), key: key, pos: r.doc.Pos(here...), entries: entries, index: map[target]int{}}
	for i, e := range entries {
		t, ok := parseTarget(e, tools)
		if !ok {
			hint := nameHint
			if tools {
				hint = `write "SKILL.TOOL", "SKILL.*", "*", or a tool's name alone`
			}
			return list{}, r.entry(here, i, fmt.Sprintf("bad entry %q", e), hint)
		}
		l.targets, l.at = append(l.targets, t), append(l.at, r.doc.Pos(at(here, fmt.Sprint(i))...))
		if _, twice := l.index[t]; !twice {
			l.index[t] = i
		}
	}
	return l, nil
}

func parseTarget(e string, tools bool) (target, bool) {
	if e == "*" {
		return target{"*", "*"}, true
	}
	if !tools {
		return target{e, "*"}, skillName.MatchString(e)
	}
	skill, tool, ok := strings.Cut(e, ".")
	if !ok {
		return target{"", e}, isTool(e)
	}
	return target{skill, tool}, skillName.MatchString(skill) && (tool == "*" || isTool(tool))
}

// layer reads the lists of [path.capabilities] and [path.deny]. It returns no
// layer if neither is written. ok are words that may be dangerous here beside
// those of [dangerous].
func (r *reader) layer(path []string, allow, deny *grantDoc, ok words) ([]capability.Layer, error) {
	if allow == nil && deny == nil {
		return nil, nil
	}
	capabilities := at(path, "capabilities")
	l := capability.Layer{Name: "operator", Pos: r.doc.Pos(capabilities...), Table: table(capabilities...)}
	if allow != nil {
		for _, k := range allow.lists() {
			if k.entries == nil {
				continue
			}
			for _, v := range capability.Verbs(k.kind) {
				l.Speaks = append(l.Speaks, capability.Topic{Kind: k.kind, Verb: v})
			}
			set, err := r.entries(capabilities, k)
			if err != nil {
				return nil, err
			}
			l.Allow = append(l.Allow, set...)
		}
		for _, c := range l.Allow {
			if w := c.Danger(); w != "" && !r.p.dangerous.has(w) && !ok.has(w) {
				return nil, &sdk.Error{Kind: sdk.Invalid, Op: c.Pos.String(), What: fmt.Sprintf("%s.%s: %q is dangerous", strings.Join(capabilities, "."), c.Kind, c.Entry()),
					Hint: fmt.Sprintf("if you mean it, add to [dangerous]: allow = [%s]", capability.Quote(w))}
			}
		}
	}
	if deny != nil {
		for _, k := range deny.lists() {
			set, err := r.entries(at(path, "deny"), k)
			if err != nil {
				return nil, err
			}
			l.Deny = append(l.Deny, set...)
		}
	}
	return []capability.Layer{l}, nil
}

type kindList struct {
	kind    capability.Kind
	entries []string
}

func (g *grantDoc) lists() []kindList {
	return []kindList{{capability.Network, g.Network}, {capability.Filesystem, g.Filesystem}, {capability.Exec, g.Exec},
		{capability.Env, g.Env}, {capability.Secrets, g.Secrets}, {capability.Invoke, g.Invoke}, {capability.Client, g.Client}}
}

func (r *reader) entries(path []string, k kindList) (capability.Set, error) {
	var set capability.Set
	for i, e := range k.entries {
		here := at(path, string(k.kind), fmt.Sprint(i))
		c, err := capability.Parse(k.kind, e, r.doc.Pos(here...))
		if err != nil {
			what, hint, _ := strings.Cut(strings.TrimPrefix(err.Error(), "capability.Parse: "), ": ")
			return nil, r.entry(at(path, string(k.kind)), i, what, hint)
		}
		set = append(set, c)
	}
	return set, nil
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
