// Package instructions "runs" skills that are texts for a model: SKILL.md
// folders in the Agent Skills format. Nothing of such a skill is executed; its
// scripts run only through other tools, under those tools' grants.
package instructions

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// maxFiles is how many of a skill's files its text lists.
const maxFiles = 50

// An Executor loads instruction skills.
type Executor struct{}

// Enforces names only the files that are read: nothing else is ever touched.
func (Executor) Enforces() []capability.Kind { return []capability.Kind{capability.Filesystem} }

// Load checks that s has instructions.
func (Executor) Load(_ context.Context, s *manifest.Skill) (executor.Program, error) {
	_, body, err := manifest.Instructions(s)
	if err != nil {
		return nil, err
	}
	files, err := list(s)
	if err != nil {
		return nil, err
	}
	return &program{s, body, files}, nil
}

type program struct {
	skill *manifest.Skill
	body  string
	files []string
}

func (p *program) Close() error { return nil }

// structured is the result's structured content.
type structured struct {
	Kind         string   `json:"kind"`
	Skill        string   `json:"skill"`
	Digest       string   `json:"digest"`
	Directory    string   `json:"directory,omitempty"`
	Instructions string   `json:"instructions"`
	Files        []string `json:"files,omitempty"`
	Tools        []string `json:"tools,omitempty"`
}

// Run returns the skill's text with the call's arguments put in.
func (p *program) Run(_ context.Context, j executor.Job) (sdk.Result, error) {
	home := p.skill.Home
	if home.Dir != "" {
		read := capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: path.Join(filepath.ToSlash(j.Dirs.Skill), manifest.InstructionsName)}
		if err := j.Grant.Check(read); err != nil {
			return sdk.Result{}, err
		}
	}
	var in struct {
		Arguments string `json:"arguments"`
	}
	if err := json.Unmarshal(j.Input.Args, &in); err != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	out := structured{Kind: "instructions", Skill: p.skill.Name, Digest: home.Digest, Directory: j.Dirs.Skill,
		Instructions: substitute(p.body, in.Arguments), Files: p.files}
	for _, t := range p.skill.Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return sdk.Result{}, err
	}
	r := sdk.Text(p.render(&out))
	r.Structured = raw
	return r, nil
}

func (p *program) render(out *structured) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<skill_content name=%q digest=%q>\n%s\n</skill_content>\n", out.Skill, out.Digest,
		strings.ReplaceAll(strings.TrimSpace(out.Instructions), "</skill_content", "<\\/skill_content"))
	if out.Directory != "" {
		fmt.Fprintf(&b, "\nThe skill's directory is %s; relative paths in the text are relative to it.\n", out.Directory)
	}
	if len(out.Files) > 0 {
		b.WriteString("Its files:\n")
		for _, f := range out.Files {
			b.WriteString("- " + f + "\n")
		}
	}
	if len(p.skill.Tools) > 0 {
		b.WriteString("Its tools, to be called with \"tool\" and \"parameters\":\n")
		for _, t := range p.skill.Tools {
			b.WriteString("- " + t.Name + ": " + t.Description + "\n")
		}
	}
	return b.String()
}

// list returns the skill's files apart from the manifest and the text itself.
func list(s *manifest.Skill) (files []string, err error) {
	err = fs.WalkDir(s.Home.Files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || name == manifest.FileName || name == manifest.InstructionsName:
			return nil
		case len(files) == maxFiles:
			return fs.SkipAll
		}
		files = append(files, name)
		return nil
	})
	return files, err
}

// substitute puts args in the place of $ARGUMENTS, and its words in the places
// of $1 to $9. It passes over the text once, so that an argument which looks
// like a variable stays what it is. A text without variables gets the
// arguments at its end.
func substitute(body, args string) string {
	words := strings.Fields(args)
	var b strings.Builder
	used := false
	for {
		i := strings.IndexByte(body, '$')
		if i < 0 || i+1 == len(body) {
			break
		}
		b.WriteString(body[:i])
		body = body[i:]
		switch rest, all := strings.CutPrefix(body, "$ARGUMENTS"); {
		case all:
			b.WriteString(args)
			body, used = rest, true
		case body[1] >= '1' && body[1] <= '9' && (len(body) == 2 || body[2] < '0' || body[2] > '9'):
			n := int(body[1] - '1')
			if n >= len(words) { // a price, perhaps
				b.WriteString(body[:2])
				body = body[2:]
				continue
			}
			b.WriteString(words[n])
			body, used = body[2:], true
		default:
			b.WriteByte('$')
			body = body[1:]
		}
	}
	b.WriteString(body)
	if !used && args != "" {
		b.WriteString("\n\nArguments: " + args)
	}
	return b.String()
}
