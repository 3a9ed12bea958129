package host

import (
	"context"
	"os"
	"path/filepath"

	"github.com/skillhost/skill/host/catalog"
	"github.com/skillhost/skill/host/executor/wasm"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// What an author's build needs. None of it runs a tool: the module is asked
// for its description only, without any permission.

// Module returns the name of the module that the skill.toml in dir asks for,
// and the ABI it is to have.
func Module(dir string) (source, abi string, err error) {
	file := filepath.Join(dir, manifest.FileName)
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", &sdk.Error{Kind: sdk.Invalid, Op: "skill build", What: "no manifest", Err: err, Hint: "write a skill.toml with name, version, description, runtime and source first"}
	}
	s, err := manifest.Read(file, data)
	if err != nil {
		return "", "", err
	}
	if s.Runtime != "wasm" {
		return "", "", &sdk.Error{Kind: sdk.Invalid, Op: file, What: "runtime " + s.Runtime + " is not built", Hint: "only WASM modules are"}
	}
	return s.Source, s.ABI, nil
}

// WriteTools asks the module in dir for its tools and writes them into its
// skill.toml. It returns how many there are.
func WriteTools(ctx context.Context, dir string) (int, error) {
	s, err := catalog.Open(dir)
	if err != nil {
		return 0, err
	}
	x := wasm.New(wasm.Options{})
	defer x.Close()
	tools, err := x.Describe(ctx, s)
	if err != nil || tools == nil { // a module that gives no account leaves the manifest to its author
		return len(s.Tools), err
	}
	file := filepath.Join(dir, manifest.FileName)
	old, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	data, err := manifest.WriteTools(old, tools)
	if err != nil || string(data) == string(old) {
		return len(tools), err
	}
	return len(tools), os.WriteFile(file, data, 0o644)
}
