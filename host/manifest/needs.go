package manifest

import (
	"errors"
	"fmt"
	"net/textproto"
	"path"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// maxEntries bounds one list of capabilities.
const maxEntries = 256

// [capabilities], and the same inside a tool, a resource or a prompt. There
// an absent list says nothing and an empty one takes everything away.
type (
	needsDoc struct {
		Network    []string    `toml:"network"`
		Filesystem []string    `toml:"filesystem"`
		Exec       []string    `toml:"exec"`
		Env        []string    `toml:"env"`
		Invoke     []string    `toml:"invoke"`
		Client     []string    `toml:"client"`
		Secrets    []secretDoc `toml:"secrets"`
	}
	narrowDoc struct {
		Network    *[]string `toml:"network"`
		Filesystem *[]string `toml:"filesystem"`
		Exec       *[]string `toml:"exec"`
		Env        *[]string `toml:"env"`
		Invoke     *[]string `toml:"invoke"`
		Client     *[]string `toml:"client"`
		Secrets    *[]string `toml:"secrets"`
	}
	secretDoc struct {
		Name   string   `toml:"name"`
		Hosts  []string `toml:"hosts"`
		Header string   `toml:"header"`
		Query  string   `toml:"query"`
		Format string   `toml:"format"`
	}
)

// needs reads [capabilities]: everything the skill asks for.
func (r *reader) needs() error {
	in := r.in.Capabilities
	layer := capability.Layer{Name: "manifest", Pos: r.doc.Pos("capabilities"), Table: "[capabilities]", Closed: true}
	for _, list := range []struct {
		kind    capability.Kind
		entries []string
	}{{capability.Network, in.Network}, {capability.Filesystem, in.Filesystem}, {capability.Exec, in.Exec}, {capability.Env, in.Env}, {capability.Invoke, in.Invoke}, {capability.Client, in.Client}} {
		set, err := r.entries(at("capabilities", string(list.kind)), list.kind, list.entries)
		if err != nil {
			return err
		}
		layer.Allow = append(layer.Allow, set...)
	}
	network := layer.Allow
	for i, s := range in.Secrets {
		secret, err := r.secret(at("capabilities", "secrets", fmt.Sprint(i)), s, network)
		if err != nil {
			return err
		}
		use, err := capability.Parse(capability.Secrets, s.Name, secret.Pos)
		if err != nil {
			return err
		}
		layer.Allow = append(layer.Allow, use)
		r.out.Secrets = append(r.out.Secrets, secret)
	}
	if r.in.Runtime == "instructions" {
		if len(layer.Allow) > 0 {
			return r.fail(at("capabilities"), "remove the table", "an instruction skill runs nothing, so it needs no capabilities: its own folder can be read as it is")
		}
		own, err := capability.Parse(capability.Filesystem, "read:"+capability.VarSkillDir, layer.Pos)
		if err != nil {
			return err
		}
		layer.Allow = capability.Set{own}
	}
	r.out.Needs = layer
	return nil
}

// entries parses one list of capabilities.
func (r *reader) entries(where []string, kind capability.Kind, list []string) (capability.Set, error) {
	if len(list) > maxEntries {
		return nil, r.fail(where, fmt.Sprintf("at most %d", maxEntries), "%s: %d entries are too many", strings.Join(where, "."), len(list))
	}
	var set capability.Set
	for i, entry := range list {
		here := append(where[:len(where):len(where)], fmt.Sprint(i))
		c, err := capability.Parse(kind, entry, r.doc.Pos(here...))
		if err != nil {
			return nil, r.badEntry(here, kind, entry, err)
		}
		set = append(set, c)
	}
	return set, nil
}

// badEntry says what is wrong with an entry, as precisely as it can.
func (r *reader) badEntry(here []string, kind capability.Kind, entry string, err error) error {
	if kind == capability.Filesystem {
		if why, hint := badPath(entry); why != "" {
			return r.fail(here, hint, "filesystem entry %q: %s", words.Clip(entry), why)
		}
	}
	var se *sdk.Error
	if !errors.As(err, &se) {
		return r.fail(here, "", "%s entry %q: %v", kind, words.Clip(entry), err)
	}
	return r.fail(here, se.Hint, "%s", se.What)
}

// badPath names the mistake in a filesystem entry that is known to be wrong.
func badPath(entry string) (why, hint string) {
	verb, p, ok := strings.Cut(entry, ":")
	p = strings.TrimSuffix(p, "?")
	const variables = "${workspace}, ${skill_dir}, ${home} or ${tmp}"
	switch {
	case !ok || verb != "read" && verb != "write":
		return `it does not start with "read:" or "write:"`, `for example "read:/data" or "write:${workspace}/out"; "write:" includes reading`
	case p == "":
		return "no path", `for example "read:/data"`
	case strings.ContainsRune(p, 0):
		return "a NUL character in a path", "remove it"
	case strings.Contains(p, `\`):
		return "a backslash in a path", `write "/"`
	case strings.ContainsAny(p, "*?[]"):
		return "a glob in a path", "name the directory: everything beneath it is included"
	case strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$HOME"):
		return "an unknown spelling of the home directory", "write ${home}"
	case slices.Contains(strings.Split(p, "/"), ".."):
		return `".." in a path`, "write the path it leads to"
	case strings.HasPrefix(p, "$"):
		return "an unknown variable", "known: " + variables
	case !strings.HasPrefix(p, "/"):
		return "a relative path", "write an absolute path, or one that starts with " + variables
	case path.Clean(p) != p:
		return "not a clean path", fmt.Sprintf("write \"%s:%s\"", verb, path.Clean(p))
	}
	return "", ""
}

func (r *reader) secret(where []string, in secretDoc, network capability.Set) (Secret, error) {
	key := func(k ...string) []string { return append(where[:len(where):len(where)], k...) }
	s := Secret{Name: in.Name, Hosts: in.Hosts, Header: textproto.CanonicalMIMEHeaderKey(in.Header), Query: in.Query, Format: in.Format, Pos: r.doc.Pos(where...)}
	if _, err := capability.Parse(capability.Secrets, in.Name, s.Pos); err != nil {
		return s, r.fail(key("name"), `for example name = "GITHUB_TOKEN"`, "bad secret name %q", words.Clip(in.Name))
	}
	if slices.ContainsFunc(r.out.Secrets, func(o Secret) bool { return o.Name == s.Name }) {
		return s, r.fail(key("name"), "list all of its hosts in one table", "duplicate secret %q", s.Name)
	}
	switch {
	case in.Query != "" && in.Header != "":
		return s, r.fail(key("query"), "remove one of the two", "secret %q: both header and query", s.Name)
	case in.Query != "":
		if !validParameter(in.Query) {
			return s, r.fail(key("query"), `for example query = "api_key"`, "secret %q: bad parameter %q: want letters, digits, \"_\", \"-\" and \".\"", s.Name, words.Clip(in.Query))
		}
	case !validToken(in.Header) || slices.Contains([]string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer"}, s.Header):
		return s, r.fail(key("header"), `for example header = "Authorization"`, "secret %q: bad header %q", s.Name, words.Clip(in.Header))
	}
	if in.Format == "" {
		s.Format = "{}"
	} else if strings.Count(in.Format, "{}") != 1 || strings.ContainsFunc(in.Format, func(c rune) bool { return c < ' ' || c > '~' }) {
		return s, r.fail(key("format"), `"{}" stands for the value, as in "Bearer {}"`, "secret %q: bad format %q: want printable ASCII with one \"{}\"", s.Name, words.Clip(in.Format))
	}
	if len(in.Hosts) == 0 {
		return s, r.fail(where, `for example hosts = ["api.example.com"]`, "secret %q: the list \"hosts\" is missing or empty", s.Name)
	}
	hosts, err := r.entries(key("hosts"), capability.Network, in.Hosts)
	if err != nil {
		return s, err
	}
	for i, h := range hosts {
		_, target, methods := strings.Cut(h.Pattern, " ")
		if !methods {
			target = h.Pattern
		}
		scheme, host, ok := strings.Cut(target, "://")
		if !ok {
			host = target
		}
		if ok && scheme != "https" || host == "*" && !r.builtin { // a built-in may leave the hosts to the operator, who always names them
			return s, r.fail(key("hosts", fmt.Sprint(i)), "", "secret %q: host %q: a secret goes to named hosts over https only", s.Name, words.Clip(in.Hosts[i]))
		}
		if len(capability.Set{h}.Outside(network)) > 0 {
			return s, r.fail(key("hosts", fmt.Sprint(i)), "add it to capabilities.network, or remove it here", "secret %q: host %q is not within the skill's network list", s.Name, words.Clip(in.Hosts[i]))
		}
	}
	return s, nil
}

// validToken reports whether s is an HTTP header name (RFC 9110, token).
func validToken(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// validParameter reports whether s is the name of a parameter that needs no
// escapes in a URL.
func validParameter(s string) bool {
	return len(s) <= 64 && strings.Trim(s, "_-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// narrow reads the capabilities of one tool, resource or prompt, every one of
// which the skill must have. It returns nil if there is no such table.
func (r *reader) narrow(where []string, in *narrowDoc) (*capability.Layer, error) {
	if in == nil {
		return nil, nil
	}
	layer := &capability.Layer{Name: "manifest", Pos: r.doc.Pos(where...), Table: "[" + strings.Join(where, ".") + "]"}
	for _, list := range []struct {
		kind    capability.Kind
		entries *[]string
	}{{capability.Network, in.Network}, {capability.Filesystem, in.Filesystem}, {capability.Exec, in.Exec}, {capability.Env, in.Env}, {capability.Invoke, in.Invoke}, {capability.Client, in.Client}, {capability.Secrets, in.Secrets}} {
		if list.entries == nil {
			continue
		}
		for _, v := range capability.Verbs(list.kind) {
			layer.Speaks = append(layer.Speaks, capability.Topic{Kind: list.kind, Verb: v})
		}
		key := append(where[:len(where):len(where)], string(list.kind))
		set, err := r.entries(key, list.kind, *list.entries)
		if err != nil {
			return nil, err
		}
		for i, c := range set {
			if len(capability.Set{c}.Outside(r.out.Needs.Allow)) > 0 {
				return nil, r.fail(append(key, fmt.Sprint(i)), fmt.Sprintf("a %s only narrows: add it to [capabilities] %s too, or remove it here", strings.TrimSuffix(where[0], "s"), list.kind),
					"%s entry %q is not within the skill's own list", list.kind, words.Clip((*list.entries)[i]))
			}
		}
		layer.Allow = append(layer.Allow, set...)
	}
	return layer, nil
}
