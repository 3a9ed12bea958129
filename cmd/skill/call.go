package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/ask/tty"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

func callCommand(g *globals) *cobra.Command {
	var save, task string
	var allow bool
	c := &cobra.Command{
		Use:   "call TOOL [JSON|@FILE|-] | call DIR [TOOL] [JSON|@FILE|-]",
		Short: "Run a tool once, as an MCP client would",
		Long: `Run a tool through the same corridor as every MCP client: resolved, validated,
authorised, confined and recorded. With a folder in front, written with a slash
as in ./mine, the tool of the skill in that folder is run, or its only one, or
its instructions are read; --allow says that you have looked at it.`,
		Example: `  skill call TaskManager '{"action": "list"}'
  skill call ReadImage '{"file_path": "photo.jpg"}' --save .
  skill call --allow ./examples/hello-go greet '{"name": "world"}'
  skill call --allow ./examples/review '{"arguments": "the last change"}'`,
		Args:              cobra.RangeArgs(1, 3),
		ValidArgsFunction: g.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFolder(args[0]) {
				if st, err := os.Stat(args[0]); err != nil || !st.IsDir() {
					return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%q is not a folder", args[0])}
				}
				g.folder, g.allowFolder = args[0], allow
				args = args[1:]
			} else if len(args) == 3 {
				return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%q is not a folder", args[0])}
			}
			g.display = new(tty.Own)
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			defer g.prune(cmd)
			call, err := g.callOf(cmd, h, args, allow)
			if err != nil {
				return err
			}
			if call.Scope, err = scopeOf(h, task); err != nil {
				return err
			}
			r, err := answered(cmd, h, call)
			if err != nil {
				return err
			}
			return g.answer(cmd, r, save)
		},
	}
	c.Flags().StringVar(&save, "save", "", "write images, audio and embedded files to this folder")
	c.Flags().BoolVar(&allow, "allow", false, "allow the skill in the given folder for this one call")
	taskFlag(c, &task)
	return c
}

// taskFlag adds the flag for the session that a call is made in.
func taskFlag(c *cobra.Command, task *string) {
	c.Flags().StringVar(task, "task", "", "make it in the session of this task_id, which outlives the command (default: a session of its own)")
}

// scopeOf is the scope of a call in the session of a task; "" is none.
func scopeOf(h *host.Host, task string) (sdk.Scope, error) {
	if task == "" {
		return h.Scope(), nil
	}
	return h.TaskScope(task)
}

// answered makes a call and asks the user of this terminal what its tool wants
// to know, if this is a terminal.
func answered(cmd *cobra.Command, h *host.Host, call sdk.Call) (sdk.Result, error) {
	emit := func(e sdk.Event) { view.Event(cmd.ErrOrStderr(), e) }
	call.Client.Form = h.Questions().Attached(call.Scope)
	for round := 1; ; round++ {
		r, err := h.Call(cmd.Context(), call, emit)
		if err != nil || len(r.Questions) == 0 {
			return r, err
		}
		a := h.Questions().Put(cmd.Context(), &call, round, r.Questions)
		if a == nil || !a.Wait(cmd.Context(), true) {
			return r, context.Cause(cmd.Context())
		}
		call.Answers, call.State = a.Take(nil), r.State
		a.Leave(false, "")
	}
}

// isFolder reports whether an argument means a folder and not a tool: it is
// written as a path, or is the folder of a skill.
func isFolder(name string) bool {
	if name == "." || name == ".." || strings.ContainsAny(name, "/"+string(os.PathSeparator)) {
		return true
	}
	for _, file := range []string{manifest.FileName, manifest.InstructionsName} {
		if st, err := os.Stat(filepath.Join(name, file)); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// callOf makes the call that the arguments after the folder, if any, mean.
func (g *globals) callOf(cmd *cobra.Command, h *host.Host, args []string, allow bool) (sdk.Call, error) {
	call := sdk.Call{Args: json.RawMessage("{}"), Scope: h.Scope()}
	if g.folder == "" || len(args) > 0 && !isArgs(args[0]) {
		call.Tool, args = args[0], args[1:]
	}
	if len(args) > 1 {
		return call, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%q is one argument too many", args[1])}
	}
	if len(args) > 0 {
		var err error
		if call.Args, err = readArgs(args[0], cmd.InOrStdin()); err != nil {
			return call, err
		}
	}
	if g.folder == "" {
		return call, nil
	}
	s, err := h.Catalog.Skill(h.Folder)
	if err != nil {
		return call, err
	}
	if !allow && !h.Dispatcher.VisibleSkill(s, call.Scope) {
		return call, &sdk.Error{Kind: sdk.Denied, What: fmt.Sprintf("skill %q in %s has not been allowed", s.Name, g.folder), Hint: "look at its skill.toml, then give --allow"}
	}
	if call.Tool != "" && !(call.Tool == "instructions" && len(s.Tools) == 0) {
		call.Tool = h.Folder + "." + call.Tool
		return call, nil
	}
	return inSkill(call, s.Name, s.HasInstructions(), len(args) > 0)
}

// isArgs reports whether an argument is a tool's arguments and not its name.
func isArgs(arg string) bool {
	return arg == "-" || strings.HasPrefix(arg, "@") || strings.HasPrefix(arg, "{")
}

// inSkill makes call one of a skill that no tool is named of: its instructions,
// or its only tool. InvokeSkill finds out.
func inSkill(call sdk.Call, skill string, text, given bool) (sdk.Call, error) {
	to := map[string]any{"skill_name": skill}
	if given && text {
		var in map[string]string
		if err := json.Unmarshal(call.Args, &in); err != nil || len(in) != 1 || in["arguments"] == "" {
			return call, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("the instructions of %q take one text", skill), Hint: `want {"arguments": "TEXT"}; to run a tool of the skill, name it`}
		}
		to["arguments"] = in["arguments"]
	} else if given {
		to["parameters"] = call.Args
	}
	var err error
	call.Tool = "InvokeSkill"
	call.Args, err = json.Marshal(to)
	return call, err
}

// answer prints and keeps what a tool answered. A tool that failed, or that
// asks, has not done what it was called for.
func (g *globals) answer(cmd *cobra.Command, r sdk.Result, save string) error {
	if save != "" {
		if err := saveContent(cmd.ErrOrStderr(), save, r); err != nil {
			return err
		}
	}
	if g.json {
		if err := view.JSON(cmd.OutOrStdout(), view.ResultJSON(r)); err != nil {
			return err
		}
	} else {
		view.Result(cmd.OutOrStdout(), r)
	}
	switch {
	case len(r.Questions) > 0:
		return &sdk.Error{Kind: sdk.Unavailable, What: "the tool asks before it goes on, and nobody can answer here", Hint: `call it in a terminal, or from an MCP client that shows questions to its user ("elicitation"), or give what it asks for as an argument if it takes it`}
	case r.Failed:
		return errShown
	}
	return nil
}

// extensions are the names of files that --save writes. The guest's word for
// its content becomes a part of no name.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpeg", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp", "image/tiff": ".tiff",
	"image/avif": ".avif", "image/svg+xml": ".svg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/flac": ".flac",
	"application/json": ".json", "application/pdf": ".pdf", "text/plain": ".txt", "text/csv": ".csv",
}

// saveContent writes every content that has data to dir, as content-N.EXT, and
// nowhere else. It never writes over a file.
func saveContent(w io.Writer, dir string, r sdk.Result) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "--save", Err: err}
	}
	defer root.Close()
	for i, c := range r.Content {
		if c.Data == nil {
			continue
		}
		kind, _, _ := strings.Cut(c.MIME, ";")
		ext, ok := extensions[strings.ToLower(strings.TrimSpace(kind))]
		if !ok {
			ext = ".bin"
		}
		name := fmt.Sprintf("content-%d%s", i, ext)
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return &sdk.Error{Kind: sdk.Invalid, What: "--save", Err: err}
		}
		_, err = f.Write(c.Data)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return &sdk.Error{Kind: sdk.Unavailable, What: "--save", Err: err}
		}
		fmt.Fprintln(w, "wrote", name)
	}
	return nil
}

// readArgs returns a tool's arguments: the text itself, a file after "@", or
// standard input for "-".
func readArgs(arg string, stdin io.Reader) (json.RawMessage, error) {
	b := []byte(arg)
	var err error
	switch {
	case arg == "-":
		b, err = io.ReadAll(io.LimitReader(stdin, 64<<20))
	case strings.HasPrefix(arg, "@"):
		b, err = os.ReadFile(arg[1:])
	}
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	if !json.Valid(b) {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "the arguments are not JSON", Hint: `want for example '{"file_path": "photo.jpg"}', @FILE or -`}
	}
	return b, nil
}
