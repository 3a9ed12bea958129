package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/executor/native"
	"github.com/skillhost/skill/host/executor/plugin"
	"github.com/skillhost/skill/host/executor/wasm"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// What an author's build needs. None of it runs a tool: the module is asked
// for its description only, without any permission.

// draft reads the skill.toml in dir, which may lack its tools. It returns the
// text that was read.
func draft(dir string) (manifest.Skill, []byte, error) {
	file := filepath.Join(dir, manifest.FileName)
	if st, err := os.Lstat(file); err == nil && !st.Mode().IsRegular() { // what is written must not land elsewhere
		return manifest.Skill{}, nil, &sdk.Error{Kind: sdk.Invalid, Op: "skill build", What: file + " is not a regular file"}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return manifest.Skill{}, nil, &sdk.Error{Kind: sdk.Invalid, Op: "skill build", What: "no manifest", Err: err, Hint: "write a skill.toml with name, version, description, runtime and source first"}
	}
	s, err := manifest.Read(file, data)
	if err == nil {
		return s, data, nil
	}
	// A module that has not been asked yet has told no tools, and what names
	// them cannot be read.
	if with, bad := manifest.Draft(file, data); bad == nil {
		if s, tried := manifest.Read(file, with); tried == nil {
			return s, with, nil
		}
	}
	return manifest.Skill{}, nil, err
}

// A Module is what a build is to make.
type Module struct {
	Source  string // its file in the skill's directory
	Runtime string // "wasm" or "plugin"
	ABI     string // of runtime "wasm"
}

// ModuleOf returns what the skill.toml in dir asks for.
func ModuleOf(dir string) (Module, error) {
	s, _, err := draft(dir)
	if err == nil && s.Runtime != "wasm" && s.Runtime != "plugin" {
		err = &sdk.Error{Kind: sdk.Invalid, Op: filepath.Join(dir, manifest.FileName), What: "runtime " + s.Runtime + " is not built", Hint: "only modules and plugins are"}
	}
	return Module{s.Source, s.Runtime, s.ABI}, err
}

// WriteTools asks the module in dir for its tools and writes them into its
// skill.toml. It returns how many there are.
func WriteTools(ctx context.Context, dir string) (int, error) {
	tools, err := describe(ctx, dir)
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, manifest.FileName)
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	if tools == nil { // it gives no account: the manifest is its author's to write
		s, err := manifest.Read(file, data)
		return len(s.Tools), err
	}
	text, err := manifest.WriteTools(data, tools)
	if err != nil || string(text) == string(data) {
		return len(tools), err
	}
	return len(tools), os.WriteFile(file, text, 0o644)
}

// describe asks the module in dir for its tools. It looks at a copy of the
// folder, because what is there may not be a valid skill yet.
func describe(ctx context.Context, dir string) (tools []sdk.Tool, err error) {
	s, text, err := draft(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, s.Source)); err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "skill build", What: "no module", Err: err}
	}
	tmp, err := os.MkdirTemp("", "skill-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(tmp, os.DirFS(dir)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, manifest.FileName), text, 0o600); err != nil {
		return nil, err
	}
	copied, err := catalog.Open(tmp)
	if err != nil {
		return nil, err
	}
	if copied.Runtime == "plugin" {
		return describePlugin(ctx, copied)
	}
	x := wasm.New(wasm.Options{})
	defer x.Close()
	return x.Describe(ctx, copied)
}

// describePlugin asks a plugin for its tools, in a cage that grants nothing.
func describePlugin(ctx context.Context, s *manifest.Skill) (tools []sdk.Tool, err error) {
	launcher := sandbox.New()
	cages := native.New(native.Options{Starter: launcher, Report: sandbox.Probe})
	x := plugin.New(plugin.Options{Cages: cages})
	defer func() {
		for _, room := range []io.Closer{x, cages, launcher} {
			err = errors.Join(err, room.Close())
		}
	}()
	return x.Describe(ctx, s)
}
