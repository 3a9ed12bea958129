package dispatch

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/sdk"
)

// serve makes of a tool's result what the call asked for: the contents of a
// resource, the messages of a prompt, or suggestions. A protocol has no place
// for the failure of any of these but an error.
func (r *run) serve(res sdk.Result) (sdk.Result, error) {
	kind := r.plan.Call.Kind
	if kind == sdk.CallTool {
		return res, nil
	}
	if res.Failed {
		return res, &sdk.Error{Kind: sdk.Guest, What: said(res.Content)}
	}
	if len(res.Questions) > 0 {
		if kind == sdk.CallCompletion {
			return res, &sdk.Error{Kind: sdk.Guest, What: "a completion cannot ask the user anything"}
		}
		return res, nil
	}
	if kind == sdk.CallCompletion {
		list, err := catalog.ReadSuggestions(res.Structured)
		return sdk.Result{Structured: list}, err
	}
	if len(res.Content) == 0 && len(res.Structured) > 0 {
		res.Content = []sdk.Content{{Type: sdk.TypeText, Text: string(res.Structured), MIME: "application/json"}}
	}
	res.Structured = nil
	content := make([]sdk.Content, len(res.Content)) // the program may keep its own
	for i, c := range res.Content {
		var err error
		if kind == sdk.CallResource {
			c, err = r.contents(c)
		} else {
			c, err = message(c)
		}
		if err != nil {
			return res, err
		}
		content[i] = c
	}
	res.Content = content
	if o := r.plan.Entry.Offer; kind == sdk.CallPrompt && o != nil && o.About != "" && res.Meta == nil {
		res.Meta, _ = json.Marshal(map[string]string{"description": o.About}) // texts: it cannot fail
	}
	return res, nil
}

// contents makes c a part of the resource that was asked for. What the tool
// does not say of it, the call and the manifest do.
func (r *run) contents(c sdk.Content) (sdk.Content, error) {
	switch c.Type {
	case "", sdk.TypeText, sdk.TypeImage, sdk.TypeAudio, sdk.TypeResource:
	default:
		return c, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("content of type %.20q is no part of a resource", c.Type)}
	}
	if c.URI == "" {
		c.URI = r.plan.Call.Tool
	}
	if c.MIME == "" {
		c.MIME = r.plan.mime
	}
	c.Type = sdk.TypeResource
	return c, nil
}

// message makes c a message of a prompt.
func message(c sdk.Content) (sdk.Content, error) {
	switch c.Role {
	case "":
		c.Role = "user"
	case "user", "assistant":
	default:
		return c, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("a message of the role %.20q", c.Role), Hint: "want user or assistant"}
	}
	return c, nil
}

// said is the text of a failed result.
func said(content []sdk.Content) string {
	var texts []string
	for _, c := range content {
		if c.Type == sdk.TypeText && c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	if texts == nil {
		return "the tool reports a failure"
	}
	return strings.Join(texts, "\n")
}

// maxRoots bounds how many of a client's roots count; fewer never widen.
const maxRoots = 64

// rootsLayer is what a client confines its server to by roots: files may be
// written beneath them, and in the private /tmp, and nowhere else. What is no
// file that exists counts for nothing, so that no root at all takes all writing
// away. It is silent about everything else.
func rootsLayer(roots []string, realpath func(string) (string, error)) capability.Layer {
	write := func(dir string) capability.Capability { // not parsed: "/tmp" would be the private one
		return capability.Capability{Kind: capability.Filesystem, Verb: capability.Write, Pattern: dir}
	}
	l := capability.Layer{Name: "client roots", Speaks: []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Write}},
		Allow: capability.Set{write(capability.VarTmp)}}
	for _, root := range roots[:min(len(roots), maxRoots)] {
		dir, ok := rootPath(root)
		if !ok {
			continue
		}
		real, err := realpath(dir)
		if err != nil || !filepath.IsAbs(filepath.FromSlash(real)) {
			continue
		}
		l.Allow = append(l.Allow, write(filepath.ToSlash(real)))
	}
	return l
}

// rootPath is the path of a file: URI on this machine, with slashes.
func rootPath(root string) (string, bool) {
	u, err := url.Parse(root)
	if err != nil || !strings.EqualFold(u.Scheme, "file") || u.Host != "" && u.Host != "localhost" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	dir := u.Path
	if runtime.GOOS == "windows" { // file:///C:/x
		dir = strings.TrimPrefix(dir, "/")
	}
	if strings.ContainsRune(dir, 0) || !filepath.IsAbs(filepath.FromSlash(dir)) {
		return "", false
	}
	return dir, true
}

// How often the tools of one skill may announce something.
const (
	newsRate  = 10 // a second
	newsBurst = 50
)

// A Change is what a skill announces: that a list may be another one, or that
// one of its resources has other contents.
type Change struct {
	Kind catalog.Kind // Tools, Resources or Prompts
	URI  string       // of the resource, or ""
}

// announce passes on what a tool says has changed. It speaks for its own skill
// only.
func (r *run) announce(kind, address string) error {
	s := r.plan.Entry.Skill
	c := Change{catalog.Kind(kind), address}
	switch {
	case r.d.Changed == nil:
		return &sdk.Error{Kind: sdk.Unavailable, What: "nobody listens to announcements"}
	case address == "":
	case !r.d.Catalog.Serves(s.Name, address):
		return &sdk.Error{Kind: sdk.Denied, What: fmt.Sprintf("announce %.80q", address), Denial: &sdk.Denial{Capability: "announce", Resource: address, Layer: "host"}}
	default:
		c.Kind = catalog.Resources
	}
	if !r.d.gate(s).news.Allow() {
		return &sdk.Error{Kind: sdk.Limit, What: "the skill announces too much", Hint: fmt.Sprintf("at most %d a second", newsRate)}
	}
	r.d.Changed(s, c)
	return nil
}
