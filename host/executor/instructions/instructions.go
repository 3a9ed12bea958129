// Package instructions "runs" what is only text: SKILL.md folders in the Agent
// Skills format, and the files that a skill serves as resources and prompts.
// Nothing of them is executed; scripts run only through other tools, under those
// tools' grants.
package instructions

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
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

// Load checks that s has instructions, or files to serve.
func (Executor) Load(_ context.Context, s *manifest.Skill) (executor.Program, error) {
	p := &program{skill: s}
	if !s.HasInstructions() && servesFiles(s) {
		return p, nil
	}
	var err error
	if _, p.body, err = manifest.Instructions(s); err != nil {
		return nil, err
	}
	p.files, err = list(s)
	return p, err
}

func servesFiles(s *manifest.Skill) bool {
	return slices.ContainsFunc(s.Resources, func(r manifest.Resource) bool { return r.File != "" }) ||
		slices.ContainsFunc(s.Prompts, func(p manifest.Prompt) bool { return p.File != "" })
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

// Run gives out a file of the skill: that of the resource or the prompt which
// the job is called by, "resources.NAME" or "prompts.NAME", else its text.
func (p *program) Run(_ context.Context, j executor.Job) (sdk.Result, error) {
	kind, name, _ := strings.Cut(j.Input.Tool, ".")
	switch kind {
	case "resources":
		for i := range p.skill.Resources {
			if r := &p.skill.Resources[i]; r.Name == name && r.File != "" {
				return p.resource(j, r)
			}
		}
	case "prompts":
		for i := range p.skill.Prompts {
			if t := &p.skill.Prompts[i]; t.Name == name && t.File != "" {
				return p.prompt(j, t)
			}
		}
	}
	return p.text(j)
}

// mayRead asks the job's grant about a file of the skill. What is part of the
// binary nobody has to be asked about.
func (p *program) mayRead(j executor.Job, file string) error {
	if p.skill.Home.Dir == "" {
		return nil
	}
	return j.Grant.Check(capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: path.Join(filepath.ToSlash(j.Dirs.Skill), file)})
}

// text returns the skill's text with the call's arguments put in, or the file
// that the arguments name.
func (p *program) text(j executor.Job) (sdk.Result, error) {
	if err := p.mayRead(j, manifest.InstructionsName); err != nil {
		return sdk.Result{}, err
	}
	var in struct {
		Arguments string `json:"arguments"`
		File      string `json:"file"`
	}
	if err := json.Unmarshal(j.Input.Args, &in); err != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	if in.File != "" {
		return p.resource(j, &manifest.Resource{File: in.File})
	}
	home := p.skill.Home
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
