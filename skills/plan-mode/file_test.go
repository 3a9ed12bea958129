package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// TestPlanFile: where a plan may be.
func TestPlanFile(t *testing.T) {
	d := newDesk(t)
	d.write("notes.md", "# Notes\n")
	d.write("dir.md/x", "")
	d.write("half.md", "---\nid: a\n---\n")
	for arg, why := range map[string]string{
		"../x.md": "not in the workspace", "/etc/x.md": "not in the workspace", "a/../../x.md": "not in the workspace", "~/x.md": "not in the workspace", `C:\\x.md`: "not in the workspace",
		".git/hooks/x.md": "hidden", ".claude/commands/x.md": "hidden", "a/.x.md": "hidden", ".x.md": "hidden", ".skill/.x/y.md": "hidden", "a/.skill/x.md": "hidden", ".": "hidden",
		"Makefile": "not a Markdown file", "x.sh": "not a Markdown file", ".skill/plans/x": "not a Markdown file", "a?.md": "characters", "a*.md": "characters", "a[1].md": "characters", "$x.md": "characters",
		"notes.md": "is no plan of this tool's", "half.md": "is no plan of this tool's", "dir.md": "not a file", `a\n.md`: "characters", "notes.md/x.md": "is not a folder",
	} {
		d.fails(`{"action":"enter","plan_file":"`+arg+`"}`, map[bool]sdk.Kind{true: sdk.Guest, false: sdk.Invalid}[why == "not a file" || why == "is not a folder"], why)
		if len(d.Layers()) != 0 {
			t.Fatalf("%s: plan mode is on", arg)
		}
	}
	if d.file("notes.md") != "# Notes\n" {
		t.Error("a file that is no plan was changed")
	}
	for arg, id := range map[string]string{"docs/plan one.md": "plan-one", "a/b/c/Deep.Markdown": "deep", ".skill/x.md": "x", "WORKSPACE/abs.md": "abs", "/workspace/alias.md": "alias", "./x/../dot.md": "dot"} {
		d := newDesk(t)
		arg = strings.Replace(arg, "WORKSPACE", filepath.ToSlash(d.dir), 1)
		out, _ := d.do(`{"action":"enter","plan_file":"` + arg + `"}`)
		if out.PlanID != id || out.Mode != "plan" {
			t.Errorf("%s: %+v", arg, out)
		}
		if _, err := os.Stat(filepath.FromSlash(out.PlanFile)); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestFileAttacks: what is at the place of the plan is looked at before anything
// is read or written there.
func TestFileAttacks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("links are looked for in the cage, which is Linux's")
	}
	in := func(d *desk, name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }
	before := map[string]func(d *desk) error{
		"plan_link_to_file":        func(d *desk) error { return os.Symlink(in(d, "secret"), in(d, "x.md")) },
		"plan_link_out":            func(d *desk) error { return os.Symlink("/etc/hostname", in(d, "x.md")) },
		"plan_link_dangling":       func(d *desk) error { return os.Symlink("later", in(d, "x.md")) },
		"plan_hard_link":           func(d *desk) error { return os.Link(in(d, "secret"), in(d, "x.md")) },
		"plan_folder_link":         func(d *desk) error { return os.Symlink(".", in(d, "sub")) },
		"plan_folder_link_out":     func(d *desk) error { return os.Symlink(t.TempDir(), in(d, "sub")) },
		"plan_default_folder_link": func(d *desk) error { return os.Symlink(".", in(d, ".skill")) },
		"plan_fifo":                func(d *desk) error { return mkfifo(in(d, "x.md")) },
	}
	for name, prepare := range before {
		d := newDesk(t)
		d.write("secret", "---\nid: a\nstatus: open\n---\nsecret\n")
		if err := prepare(d); err != nil {
			t.Fatal(err)
		}
		args := `{"action":"enter","plan_file":"x.md"}`
		switch {
		case strings.Contains(name, "default"):
			args = login
		case strings.Contains(name, "folder"):
			args = `{"action":"enter","plan_file":"sub/x.md"}`
		}
		r, err := d.run(args, "", nil)
		if err == nil || len(d.Layers()) != 0 || d.file("secret") != "---\nid: a\nstatus: open\n---\nsecret\n" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	after := map[string]func(d *desk) error{
		"plan_replaced_by_link": func(d *desk) error {
			return errors.Join(os.Remove(in(d, loginFile)), os.Symlink(in(d, "secret"), in(d, loginFile)))
		},
		"plan_replaced_by_hard_link": func(d *desk) error {
			return errors.Join(os.Remove(in(d, loginFile)), os.Link(in(d, "secret"), in(d, loginFile)))
		},
		"plan_replaced_by_folder": func(d *desk) error {
			return errors.Join(os.Remove(in(d, loginFile)), os.Mkdir(in(d, loginFile), 0o755))
		},
		"plan_replaced_by_fifo": func(d *desk) error {
			return errors.Join(os.Remove(in(d, loginFile)), mkfifo(in(d, loginFile)))
		},
		"plan_too_long": func(d *desk) error { return os.Truncate(in(d, loginFile), maxPlan+1) },
		"plan_gone":     func(d *desk) error { return os.Remove(in(d, loginFile)) },
	}
	for name, replace := range after {
		d := newDesk(t)
		d.write("secret", "secret\n")
		d.do(login)
		if err := replace(d); err != nil {
			t.Fatal(err)
		}
		d.fails(`{"action":"exit"}`, sdk.Guest, "PlanMode enter makes the plan anew")
		out, text := d.do(`{"action":"status"}`)
		if out.Mode != "plan" || len(out.Notes) != 1 || strings.Contains(text, "secret\n") {
			t.Errorf("%s: %+v\n%s", name, out, text)
		}
		out, _ = d.do(`{"action":"enter"}`)
		if out.Mode != "plan" || len(out.Notes) == 0 || d.file("secret") != "secret\n" || !strings.Contains(d.file(loginFile), "status: open") {
			t.Errorf("%s: %+v, %q", name, out, d.file("secret"))
		}
		if kept := d.names(".skill/plans"); (name == "plan_gone") == strings.Contains(kept, ".aside-") {
			t.Errorf("%s: %s", name, kept)
		}
		if out, _ := d.exits("accept", `{"decision":"approve"}`, nil); !out.Approved {
			t.Errorf("%s: %+v", name, out)
		}
	}
	d := newDesk(t)
	d.do(login)
	if err := errors.Join(os.Rename(in(d, ".skill/plans"), in(d, "was")), os.Symlink("../was", in(d, ".skill/plans"))); err != nil {
		t.Fatal(err)
	}
	d.fails(`{"action":"exit"}`, sdk.Guest, "is a link")
	d.fails(`{"action":"enter"}`, sdk.Guest, "is a link")
	d.fails(`{"action":"reset"}`, sdk.Guest, "is a link")
}
