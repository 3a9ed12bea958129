package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/sdk"
)

func buildCommand(g *globals) *cobra.Command {
	var noCompile bool
	c := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a skill written in Go, and write its tools into its manifest",
		Long: `Compile the Go package in DIR to the module or plugin that its skill.toml names,
ask it for its tools, in a cage that grants nothing, and write them between the
generated marks of skill.toml. With --no-compile it is there already, made by
any other compiler.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			module, err := host.ModuleOf(dir)
			if err != nil {
				return err
			}
			if !noCompile {
				if err := compile(cmd, dir, module); err != nil {
					return err
				}
			}
			n, err := host.WriteTools(cmd.Context(), dir)
			if err != nil {
				return err
			}
			st, err := os.Stat(filepath.Join(dir, module.Source))
			if err != nil {
				return err
			}
			if g.json {
				return view.JSON(cmd.OutOrStdout(), map[string]any{"module": filepath.Join(dir, module.Source), "bytes": st.Size(), "tools": n})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes, %d tools\n", filepath.Join(dir, module.Source), st.Size(), n)
			return nil
		},
	}
	c.Flags().BoolVar(&noCompile, "no-compile", false, "only write the tools of the module that is there")
	return c
}

// compile runs the plain Go toolchain, so that the same source gives the same
// bytes.
func compile(cmd *cobra.Command, dir string, m host.Module) error {
	tmp, err := os.MkdirTemp("", "skill-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "module.wasm")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", out}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if m.Runtime == "wasm" {
		env = append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	if m.ABI == sdk.ABI {
		args = append(args, "-buildmode=c-shared")
	}
	build := exec.CommandContext(cmd.Context(), "go", append(args, ".")...)
	build.Dir = dir
	build.Env = env
	build.Stdout, build.Stderr = cmd.ErrOrStderr(), cmd.ErrOrStderr()
	if err := build.Run(); err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "go build", Err: err, Hint: "a skill in Go is a Go module: see docs/skills.md; if another compiler made the module, --no-compile"}
	}
	return place(out, dir, m)
}

// place copies the module to where the manifest says, which is in dir: a link on
// the way does not lead it elsewhere.
func place(module, dir string, m host.Module) error {
	content, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(m.Source); err != nil && !os.IsNotExist(err) {
		return &sdk.Error{Kind: sdk.Invalid, What: "the old module", Err: err}
	}
	mode := os.FileMode(0o644)
	if m.Runtime == "plugin" {
		mode = 0o755
	}
	if err := root.WriteFile(filepath.FromSlash(m.Source), content, mode); err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "the module", Err: err}
	}
	return nil
}
