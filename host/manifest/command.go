package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/template"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// maxStatus is the largest exit status of a program.
const maxStatus = 255

// command reads how the tool t runs a program, which the skill's own list has
// to name.
func (r *reader) command(t *Tool, in toolDoc) (*template.Command, error) {
	key := func(k ...string) []string { return append(at("tools", t.Name), k...) }
	if r.out.Runtime != "exec" {
		return nil, r.noCommand(t, in)
	}
	c, word, err := template.Parse(in.Command)
	if err != nil {
		where := key("command", fmt.Sprint(word))
		if len(in.Command) == 0 {
			where = key("command")
		}
		return nil, r.because(where, key("command"), err)
	}
	if err := r.program(t, c.Program); err != nil {
		return nil, err
	}
	if in.Stdin != nil {
		if err := c.ParseStdin(*in.Stdin); err != nil {
			return nil, r.because(key("stdin"), key("stdin"), err)
		}
	}
	if in.Success != nil {
		c.Success = slices.Clone(in.Success)
	}
	for i, status := range in.Success {
		if status < 0 || status > maxStatus || slices.Contains(in.Success[:i], status) {
			return nil, r.fail(key("success", fmt.Sprint(i)), fmt.Sprintf("each exit status once, from 0 to %d", maxStatus), "tools.%s.success: bad exit status %d", t.Name, status)
		}
	}
	if len(c.Success) == 0 {
		return nil, r.fail(key("success"), "for example success = [0, 1]", "tools.%s.success: no exit status is a success", t.Name)
	}
	if t.Input == nil { // in a file: see bind
		return c, nil
	}
	if err := c.Bind(t.Input); err != nil {
		return nil, r.because(key("command"), key("command"), err)
	}
	return c, nil
}

// noCommand refuses the keys of a command in a skill that runs none.
func (r *reader) noCommand(t *Tool, in toolDoc) error {
	for _, k := range []struct {
		name string
		said bool
	}{{"command", in.Command != nil}, {"stdin", in.Stdin != nil}, {"success", in.Success != nil}} {
		if k.said {
			return r.fail(at("tools", t.Name, k.name), "remove it", "tools.%s.%s: only the runtime \"exec\" runs a command, and this is %q", t.Name, k.name, r.out.Runtime)
		}
	}
	return nil
}

// program checks that the skill, and the tool if it narrows, may run name.
func (r *reader) program(t *Tool, name string) error {
	where := at("tools", t.Name, "command", "0")
	if _, err := capability.Parse(capability.Exec, name, capability.Pos{}); err != nil || name == "*" {
		return r.fail(where, `for example "git" or "/usr/bin/jq"`, "tools.%s.command: bad program %q: want a name or a clean absolute path", t.Name, words.Clip(name))
	}
	run := capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: name}
	layers := []*capability.Layer{&r.out.Needs}
	if t.Narrow != nil && slices.Contains(t.Narrow.Speaks, capability.Topic{Kind: capability.Exec, Verb: capability.Run}) {
		layers = append(layers, t.Narrow)
	}
	for _, l := range layers {
		if l.Allow.Covers(run) {
			continue
		}
		var list []string
		for _, c := range l.Allow {
			if c.Kind == capability.Exec {
				list = append(list, capability.Quote(c.Pattern))
			}
		}
		list = append(list, capability.Quote(name))
		return r.fail(where, fmt.Sprintf("write in %s: exec = [%s]", l.Table, strings.Join(list, ", ")), "tools.%s.command: the program %q is not among those that the skill asks to run", t.Name, name)
	}
	return nil
}

// bind checks each command against the schema of its tool.
func (r *reader) bind() error {
	for i := range r.out.Tools {
		t := &r.out.Tools[i]
		if t.Command == nil {
			continue
		}
		if err := t.Command.Bind(t.Input); err != nil {
			key := at("tools", t.Name, "command")
			return r.because(key, key, err)
		}
	}
	return nil
}

// because is fail for an error of package template about the value at path.
func (r *reader) because(where, path []string, err error) error {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return r.fail(where, "", "%s: %v", strings.Join(path, "."), err)
	}
	return r.fail(where, e.Hint, "%s: %s", strings.Join(path, "."), e.What)
}
