package executortest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// A vector is one promise. Its file has one directive to a line; $T stands for
// the directory in which it happens, whose work, skill and tmp are behind the
// guest's aliases. The first line is a comment that says the promise.
//
//	form FORM …           only for these forms of the probe
//	dir|file|link|hard    lay out: a directory; a file and its text; a link or hard link and its target
//	layer NAME            the lines that follow are of this layer; it starts with the closed layer "manifest"
//	allow|deny KIND ENTRY a line of the layer
//	env NAME VALUE        what the calls that follow are given
//	settings JSON         what the operator set for the skill in them
//	limit NAME VALUE      memory, output (bytes), timeout, soft (durations) of the calls that follow
//	canceled              the call that follows is not out of time but canceled then
//	call VERB ARG … ; …   one call of the probe
//	text|has|lacks TEXT   its text, whole or in part ("\n" between the verbs' results)
//	oneof TEXT | TEXT …   its text is one of these
//	fails KIND …          it fails with one of these kinds
//	says TEXT             its error or its logs have this
//	silent TEXT           neither its error nor its logs have this
//	seen|unseen TEXT      an access was recorded, was not
//	same|differs          its text compared with the call before
//	holds PATH TEXT       afterwards: the file has this text
//	gone PATH             afterwards: there is nothing
type vector struct {
	promise string
	dir     string
	forms   []Form
	files   []func() error
	layers  []capability.Layer
	calls   []call
	after   []func() string
	next    call // limits, env, settings and cancel of the call that follows
}

// A call is one run of the probe and what is expected of it.
type call struct {
	args   json.RawMessage
	env    map[string]string
	set    json.RawMessage // settings
	limits manifest.Limits
	soft   time.Duration
	cancel bool
	want   []func(got outcome, before string) string
}

// parse reads a vector that happens in dir.
func parse(text, dir string) (*vector, error) {
	v := &vector{dir: dir, layers: []capability.Layer{{Name: "manifest", Closed: true}}}
	v.next = call{limits: limits, soft: limits.Timeout, env: map[string]string{}}
	for n, line := range strings.Split(strings.ReplaceAll(text, "$T", dir), "\n") {
		if comment, ok := strings.CutPrefix(line, "#"); ok || line == "" {
			if v.promise == "" {
				v.promise = strings.TrimSpace(comment)
			}
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if err := v.directive(word, rest); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n+1, line, err)
		}
	}
	if v.promise == "" || len(v.calls) == 0 {
		return nil, fmt.Errorf("a vector has a promise and a call")
	}
	return v, nil
}

func (v *vector) directive(word, rest string) error {
	first, second, _ := strings.Cut(rest, " ")
	switch word {
	case "form":
		for f := range strings.FieldsSeq(rest) {
			v.forms = append(v.forms, Form(f))
		}
	case "dir", "file", "link", "hard":
		v.files = append(v.files, func() error { return layOut(word, filepath.Join(v.dir, first), second) })
	case "layer":
		v.layers = append(v.layers, capability.Layer{Name: rest})
	case "allow", "deny":
		return v.entry(word, capability.Kind(first), second)
	case "env":
		v.next.env = maps.Clone(v.next.env)
		v.next.env[first] = second
	case "settings":
		v.next.set = json.RawMessage(rest)
	case "limit":
		return v.limit(first, second)
	case "canceled":
		v.next.cancel = true
	case "call":
		return v.addCall(rest)
	case "holds", "gone":
		v.after = append(v.after, func() string { return left(word, filepath.Join(v.dir, first), second) })
	default:
		if len(v.calls) == 0 {
			return fmt.Errorf("unknown, or before the call")
		}
		return v.expect(word, rest)
	}
	return nil
}

func layOut(what, path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch what {
	case "dir":
		return os.MkdirAll(path, 0o755)
	case "link":
		return os.Symlink(text, path)
	case "hard":
		return os.Link(text, path)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// left says what is wrong with path after the calls.
func left(what, path, text string) string {
	b, err := os.ReadFile(path)
	if what == "gone" {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			return fmt.Sprintf("%s exists (%v)", path, err)
		}
		return ""
	}
	if err != nil || string(b) != text {
		return fmt.Sprintf("%s holds %q (%v), want %q", path, b, err, text)
	}
	return ""
}

func (v *vector) entry(word string, kind capability.Kind, text string) error {
	c, err := capability.Parse(kind, text, capability.Pos{File: "vector"})
	if err != nil {
		return err
	}
	l := &v.layers[len(v.layers)-1]
	if word == "deny" {
		l.Deny = append(l.Deny, c)
		return nil
	}
	l.Allow = append(l.Allow, c)
	for _, verb := range capability.Verbs(kind) {
		l.Speaks = append(l.Speaks, capability.Topic{Kind: kind, Verb: verb})
	}
	return nil
}

// grant binds the layers to the vector's directory.
func (v *vector) grant() ([]capability.Layer, error) {
	vars := capability.Vars{Workspace: v.dir + "/work", SkillDir: v.dir + "/skill"}
	var bound []capability.Layer
	for _, l := range v.layers {
		b, err := l.Bind(vars, func(p string) (string, error) {
			real, err := filepath.EvalSymlinks(filepath.FromSlash(p))
			return filepath.ToSlash(real), err
		})
		if err != nil {
			return nil, err
		}
		bound = append(bound, b)
	}
	return bound, nil
}

func (v *vector) limit(name, value string) error {
	if name == "memory" || name == "output" {
		n, err := strconv.ParseInt(value, 0, 64)
		if name == "memory" {
			v.next.limits.Memory = n
		} else {
			v.next.limits.Output = n
		}
		return err
	}
	d, err := time.ParseDuration(value)
	switch name {
	case "timeout":
		v.next.limits.Timeout = d
	case "soft":
		v.next.soft = d
	default:
		return fmt.Errorf("unknown limit")
	}
	return err
}

func (v *vector) addCall(line string) error {
	var do [][]string
	for step := range strings.SplitSeq(line, ";") {
		do = append(do, strings.Fields(step))
		if len(do[len(do)-1]) == 0 {
			return fmt.Errorf("a step without a verb")
		}
	}
	c := v.next
	var err error
	c.args, err = json.Marshal(map[string]any{"do": do})
	v.calls = append(v.calls, c)
	v.next.cancel = false
	return err
}

// expect adds an expectation to the last call. Those about its text say that
// it does not fail.
func (v *vector) expect(word, text string) error {
	text = strings.ReplaceAll(text, `\n`, "\n")
	var ok func(got outcome, before string) bool
	switch word {
	case "text":
		ok = func(got outcome, _ string) bool {
			return got.err == nil && (got.text == text || got.kernel && got.text == plainly(text))
		}
	case "has":
		ok = func(got outcome, _ string) bool { return got.err == nil && strings.Contains(got.text, text) }
	case "lacks":
		ok = func(got outcome, _ string) bool { return got.err == nil && !strings.Contains(got.text, text) }
	case "oneof":
		ok = func(got outcome, _ string) bool {
			return got.err == nil && strings.Contains(" | "+text+" | ", " | "+got.text+" | ")
		}
	case "fails":
		ok = func(got outcome, _ string) bool {
			return got.err != nil && strings.Contains(" "+text+" ", " "+string(sdk.KindOf(got.err))+" ")
		}
	case "says":
		ok = func(got outcome, _ string) bool { return strings.Contains(fmt.Sprint(got.err)+got.logs, text) }
	case "silent":
		ok = func(got outcome, _ string) bool { return !strings.Contains(fmt.Sprint(got.err)+got.logs, text) }
	case "seen":
		ok = func(got outcome, _ string) bool {
			if got.kernel {
				return strings.HasPrefix(text, "!") || slices.ContainsFunc(got.seen, func(root string) bool { return strings.HasPrefix(text, root+"/") })
			}
			return strings.Contains("\n"+strings.Join(got.seen, "\n"), "\n"+text)
		}
	case "unseen":
		ok = func(got outcome, _ string) bool { return !strings.Contains(strings.Join(got.seen, "\n"), text) }
	case "same":
		ok = func(got outcome, before string) bool { return got.err == nil && got.text == before }
	case "differs":
		ok = func(got outcome, before string) bool { return got.err == nil && got.text != before }
	default:
		return fmt.Errorf("unknown directive")
	}
	last := &v.calls[len(v.calls)-1]
	last.want = append(last.want, func(got outcome, before string) string {
		if ok(got, before) {
			return ""
		}
		return "want " + word + " " + text
	})
	return nil
}
