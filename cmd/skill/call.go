package main

import (
	"encoding/json"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/sdk"
)

func callCommand(g *globals) *cobra.Command {
	var save string
	var allow bool
	c := &cobra.Command{
		Use:   "call TOOL [JSON|@FILE|-] | call DIR TOOL [JSON]",
		Short: "Run a tool once, as an MCP client would",
		Long: `Run a tool through the same corridor as every MCP client: resolved, validated,
authorised, confined and recorded. With a folder in front the tool of the skill
in that folder is run; --allow says that you have looked at it.`,
		Example: `  skill call TaskManager '{"action": "list"}'
  skill call ReadImage '{"file_path": "photo.jpg"}' --save .
  skill call --allow ./examples/hello-go greet '{"name": "world"}'`,
		Args:              cobra.RangeArgs(1, 3),
		ValidArgsFunction: g.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			if isDir(args[0]) && len(args) > 1 {
				g.folder, g.allowFolder = args[0], allow
				args = args[1:]
			} else if len(args) == 3 {
				return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%q is not a folder", args[0])}
			}
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			if g.folder != "" && !allow {
				if s, err := h.Catalog.Skill(h.Folder); err == nil && !h.Dispatcher.VisibleSkill(s, h.Scope("")) {
					return &sdk.Error{Kind: sdk.Denied, What: fmt.Sprintf("skill %q in %s has not been allowed", s.Name, g.folder), Hint: "look at its skill.toml, then give --allow"}
				}
			}
			call := sdk.Call{Tool: args[0], Args: json.RawMessage("{}"), Scope: h.Scope("")}
			if g.folder != "" {
				call.Tool = h.Folder + "." + args[0]
			}
			if len(args) > 1 {
				if call.Args, err = readArgs(args[1], cmd.InOrStdin()); err != nil {
					return err
				}
			}
			r, err := h.Call(cmd.Context(), call, func(e sdk.Event) { printEvent(cmd, e) })
			if err != nil {
				return err
			}
			if save != "" {
				if err := saveContent(cmd, save, r); err != nil {
					return err
				}
			}
			if g.json {
				err = printJSON(cmd.OutOrStdout(), resultJSON(r))
			} else {
				printResult(cmd.OutOrStdout(), r)
			}
			if err == nil && r.Failed {
				return errShown
			}
			return err
		},
	}
	c.Flags().StringVar(&save, "save", "", "write images, audio and embedded files to this folder")
	c.Flags().BoolVar(&allow, "allow", false, "allow the skill in the given folder for this one call")
	return c
}

func isDir(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

func printEvent(cmd *cobra.Command, e sdk.Event) {
	w := cmd.ErrOrStderr()
	switch {
	case e.Kind == sdk.EventLog:
		fmt.Fprintf(w, "%s: %s\n", e.Level, e.Message)
	case e.Kind == sdk.EventProgress && e.Total > 0:
		fmt.Fprintf(w, "%.0f/%.0f %s\n", e.Progress, e.Total, e.Message)
	case e.Kind == sdk.EventProgress:
		fmt.Fprintf(w, "%.0f %s\n", e.Progress, e.Message)
	case e.Kind == sdk.EventPartial:
		fmt.Fprint(w, e.Content.Text)
	}
}

// saveContent writes every content that has data to dir, as content-N.EXT. It
// never writes over a file.
func saveContent(cmd *cobra.Command, dir string, r sdk.Result) error {
	for i, c := range r.Content {
		if c.Data == nil {
			continue
		}
		ext := ".bin"
		if all, err := mime.ExtensionsByType(c.MIME); err == nil && len(all) > 0 {
			ext = all[len(all)-1]
		}
		if _, sub, ok := strings.Cut(c.MIME, "image/"); ok {
			ext = "." + sub
		}
		name := filepath.Join(dir, fmt.Sprintf("content-%d%s", i, ext))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return &sdk.Error{Kind: sdk.Invalid, What: "--save", Err: err}
		}
		if _, err := f.Write(c.Data); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "wrote", name)
	}
	return nil
}
