package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// mount is the workspace in the cage.
const mount = "/workspace"

// folder is where plans are, in the workspace.
const folder = ".skill/plans"

// A planFile is where a plan is.
type planFile struct {
	workspace string // as the host has it
	rel       string // in the workspace, clean, with slashes; "" is none
}

// shown is the path as people and other tools know it.
func (f planFile) shown() string {
	if f.rel == "" {
		return ""
	}
	return strings.TrimRight(strings.ReplaceAll(cmp.Or(f.workspace, mount), `\`, "/"), "/") + "/" + f.rel
}

// at is where a path in the workspace is opened.
func (f planFile) at(rel string) string {
	if runtime.GOOS == "wasip1" {
		return path.Join(mount, rel)
	}
	return filepath.Join(f.workspace, filepath.FromSlash(rel))
}

// named finds the file that a caller names.
func named(workspace, p string) (planFile, error) {
	f := planFile{workspace: workspace}
	asked := p
	p = strings.ReplaceAll(p, `\`, "/")
	for _, root := range []string{strings.ReplaceAll(workspace, `\`, "/"), mount} {
		if rest, ok := strings.CutPrefix(p, strings.TrimRight(root, "/")+"/"); ok && root != "" {
			p = rest
			break
		}
	}
	if path.IsAbs(p) || len(p) > 1 && p[1] == ':' || strings.HasPrefix(p, "~") || !fs.ValidPath(path.Clean(p)) {
		return f, invalid("plan_file: "+quoted(asked)+" is not in the workspace", "a path such as "+folder+"/login.md")
	}
	f.rel = path.Clean(p)
	// Files that other programs take for theirs, and obey, are not for plans.
	parts := strings.Split(f.rel, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ".") && !(i == 0 && part == ".skill") {
			return f, invalid("plan_file: "+quoted(asked)+" is in a hidden folder, or is hidden", "a path such as "+folder+"/login.md")
		}
	}
	switch ext := strings.ToLower(path.Ext(f.rel)); {
	case ext != ".md" && ext != ".markdown":
		return f, invalid("plan_file: "+quoted(asked)+" is not a Markdown file", "its name ends in .md")
	case oneLine(f.rel, len(f.rel)) != f.rel || strings.ContainsAny(f.rel, `*?[]$:"<>|`) || len(f.rel) > 1024:
		return f, invalid("plan_file: "+quoted(asked)+" has characters that a plan file may not have", `no control characters, and none of * ? [ ] $ : " < > |`)
	}
	return f, nil
}

// check looks at what is on the way to f, and at f. A link is refused wherever
// it is: what it leads to could be another thing a moment later. The error is
// fs.ErrNotExist if there is no file, and a misfit if there is something else.
func (f planFile) check() error {
	parts := strings.Split(f.rel, "/")
	for i := range parts {
		rel := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(f.at(rel))
		switch last := i == len(parts)-1; {
		case errors.Is(err, fs.ErrNotExist):
			return fs.ErrNotExist
		case err != nil:
			return f.trouble(err)
		case info.Mode()&fs.ModeSymlink != 0 && last:
			return misfit("a link")
		case last && !info.Mode().IsRegular():
			return misfit("not a file")
		case last && info.Size() > maxPlan:
			return misfit(fmt.Sprintf("%d bytes long, and a plan has at most %d", info.Size(), maxPlan))
		case last && links(info) > 1:
			return misfit("a file that has another name as well")
		case !last && info.Mode()&fs.ModeSymlink != 0:
			return &sdk.Error{Kind: sdk.Guest, What: "the folder " + quoted(rel) + " of the plan is a link", Hint: "make it a folder, or give another plan_file"}
		case !last && !info.IsDir():
			return &sdk.Error{Kind: sdk.Guest, What: quoted(rel) + " is not a folder", Hint: "give another plan_file"}
		}
	}
	return nil
}

// A misfit says why what is at the place of a plan is none.
type misfit string

func (m misfit) Error() string { return "what is there is " + string(m) }

// read reads the plan. That it cannot is an error for people.
func (f planFile) read() (plan, error) {
	err := f.check()
	var m misfit
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return plan{}, &sdk.Error{Kind: sdk.Guest, What: "the plan file " + quoted(f.rel) + " is gone"}
	case errors.As(err, &m):
		return plan{}, &sdk.Error{Kind: sdk.Guest, What: "the plan file " + quoted(f.rel) + ": " + m.Error()}
	case err != nil:
		return plan{}, err
	}
	file, err := os.Open(f.at(f.rel))
	if err != nil {
		return plan{}, f.trouble(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPlan+1))
	if err != nil {
		return plan{}, f.trouble(err)
	}
	if len(data) > maxPlan {
		return plan{}, &sdk.Error{Kind: sdk.Limit, What: "the plan file " + quoted(f.rel) + " is too long", Hint: fmt.Sprintf("a plan has at most %d bytes", maxPlan)}
	}
	return parse(data), nil
}

// write writes the plan over the one that is there: the file stays the same
// one, because programs that run may have it open.
func (f planFile) write(p *plan) error {
	if err := f.check(); err != nil {
		return f.trouble(err)
	}
	text := p.text()
	if len(text) > maxPlan {
		return &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the plan would have %d bytes", len(text)), Hint: fmt.Sprintf("at most %d", maxPlan)}
	}
	file, err := os.OpenFile(f.at(f.rel), os.O_WRONLY, 0)
	if err != nil {
		return f.trouble(err)
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Truncate(int64(len(text)))
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return f.trouble(err)
}

// create makes the file, which must not be there.
func (f planFile) create(p *plan) error {
	for _, made := range []bool{false, true} { // the folders are looked at before and after they are made
		if err := f.check(); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, error(fs.ErrExist))
		}
		if made {
			break
		}
		if err := os.MkdirAll(filepath.Dir(f.at(f.rel)), 0o755); err != nil {
			return f.trouble(err)
		}
	}
	return f.put(f.rel, p.text())
}

// put makes a file with that text, which must not be there: then the error is
// fs.ErrExist.
func (f planFile) put(rel, text string) error {
	file, err := os.OpenFile(f.at(rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fs.ErrExist
	}
	if err != nil {
		return f.trouble(err)
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return f.trouble(err)
}

// aside gives what is at the place of f another name, and returns that.
func (f planFile) aside(now time.Time) (string, error) {
	ext := path.Ext(f.rel)
	to := strings.TrimSuffix(f.rel, ext) + ".aside-" + now.UTC().Format("20060102-150405.000") + ext
	return to, f.trouble(os.Rename(f.at(f.rel), f.at(to)))
}

// keep writes a copy of text beside f, and returns its name.
func (f planFile) keep(text string, now time.Time) (string, error) {
	ext := path.Ext(f.rel)
	to := strings.TrimSuffix(f.rel, ext) + ".before-" + now.UTC().Format("20060102-150405.000") + ext
	return to, f.trouble(f.put(to, text))
}

// trouble is err in the words of people, without places of the cage.
func (f planFile) trouble(err error) error {
	var pe *fs.PathError
	var se *sdk.Error
	var m misfit
	switch {
	case err == nil || errors.As(err, &se):
		return err
	case errors.As(err, &m):
		return &sdk.Error{Kind: sdk.Guest, What: "the plan file " + quoted(f.rel) + ": " + m.Error()}
	case errors.As(err, &pe):
		err = pe.Err
	}
	hint := ""
	if errors.Is(err, fs.ErrPermission) {
		hint = "PlanMode may write in the workspace, as far as [skills.plan-mode] of the policy lets it"
	}
	return &sdk.Error{Kind: sdk.Guest, What: "the plan file " + quoted(f.rel), Err: err, Hint: hint}
}

func quoted(s string) string { return fmt.Sprintf("%.200q", s) }
