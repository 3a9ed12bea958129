// Package session makes scopes, and the layer that a session lays over what
// manifests and the operator allow: tools write to the workspace and to their
// private temporary directory, and nowhere else. It knows no tools.
package session

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// A Session is one workspace, checked.
type Session struct {
	workspace string // real, clean, with slashes
	layer     capability.Layer
	caller    string
}

// Options of New.
type Options struct {
	Workspace string   // the directory, which must exist
	Explicit  bool     // named by the user: then it may be / or the home directory
	Home      string   // the user's home directory, or ""
	Private   []string // the host's own files and directories: no tool reads them, and no workspace is inside of them
	ReadOnly  []string // files and directories that decide what tools may do: no tool writes them
	Replaced  []string // files that the host replaces by way of others beside them: no tool writes to their folders
}

// New checks a workspace and makes its session. Everything beneath the
// workspace can be written by tools that ask for it, so the roots of too much
// are refused unless the user names them, and the host's own files are denied
// even beneath it, whatever the manifest and the operator allow.
func New(o Options) (*Session, error) {
	refuse := func(why, hint string) error {
		return &sdk.Error{Kind: sdk.Denied, Op: "session", What: fmt.Sprintf("workspace %q %s", o.Workspace, why), Hint: hint}
	}
	real, err := realDir(o.Workspace)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "session", What: fmt.Sprintf("workspace %q", o.Workspace), Err: err, Hint: "give --workspace an existing directory"}
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "session", What: fmt.Sprintf("workspace %q is not a directory", o.Workspace), Err: err, Hint: "give --workspace an existing directory"}
	}
	if !o.Explicit {
		home, err := realDir(o.Home)
		switch native := filepath.FromSlash(real); {
		case native == filepath.Dir(native):
			return nil, refuse("is the whole file system", "name a project with --workspace, or this one to insist")
		case err == nil && capability.Beneath(home, real):
			return nil, refuse("is or holds your home directory", "name a project with --workspace, or this one to insist")
		}
	}
	s := &Session{workspace: real}
	pos := capability.Pos{File: "--workspace " + real}
	s.layer = capability.Layer{Name: "session", Pos: pos, Speaks: []capability.Topic{{Kind: capability.Filesystem, Verb: capability.Write}}}
	for _, pattern := range []string{capability.VarWorkspace, capability.VarTmp} {
		s.layer.Allow = append(s.layer.Allow, capability.Capability{Kind: capability.Filesystem, Verb: capability.Write, Pattern: pattern, Pos: pos})
	}
	if err := s.keepOut(o, refuse); err != nil {
		return nil, err
	}
	s.caller = Local()
	return s, nil
}

// keepOut denies tools the host's own files, and refuses a workspace in which
// they could not be told apart from its own.
func (s *Session) keepOut(o Options, refuse func(why, hint string) error) error {
	real := s.workspace
	for _, dir := range o.Private {
		p, links, err := places(dir)
		if err != nil {
			return err
		}
		for _, p := range p {
			if capability.Beneath(real, p) {
				return refuse("is inside of the host's own directory "+p, "name a project with --workspace")
			}
		}
		s.own(capability.Read, p, links)
	}
	for _, dir := range o.ReadOnly {
		p, links, err := places(dir)
		if err != nil {
			return err
		}
		if slices.Contains(p, real) {
			return refuse("is the host's own directory", inTheWay)
		}
		s.own(capability.Write, p, links)
	}
	for _, file := range o.Replaced {
		p, _, err := places(file)
		if err != nil {
			return err
		}
		for _, p := range p {
			switch folder := path.Dir(p); {
			case folder == real:
				return refuse("holds the host's own file "+p, inTheWay)
			case capability.Beneath(folder, real):
				s.own(capability.Write, []string{folder}, nil)
			}
		}
	}
	return nil
}

// inTheWay is the hint where denying the host's own files would deny everything.
const inTheWay = "keep the host's files out of the workspace, or in a folder of their own: SKILL_HOME, --policy"

// own denies v on the places of a file, and writing to the links on the way to
// it: who replaces one of them decides what the host reads. Entries are not
// parsed: one cannot name a directory below the host's /tmp, or one with a "*"
// in its name.
func (s *Session) own(v capability.Verb, places, links []string) {
	entry := func(v capability.Verb, p string) capability.Capability {
		return capability.Capability{Kind: capability.Filesystem, Verb: v, Pattern: p, Pos: capability.Pos{File: "the host's own files"}}
	}
	deny := func(c capability.Capability) {
		if !slices.Contains(s.layer.Deny, c) {
			s.layer.Deny = append(s.layer.Deny, c)
		}
	}
	for _, p := range places {
		deny(entry(v, p))
	}
	for _, p := range links {
		deny(entry(capability.Write, p).AsIs())
	}
}

// places returns the paths that the host's own file has: its real one, the one
// that the host is told, and where a link leads that leads to nothing yet. It
// also returns the links on the way.
func places(path string) (out, links []string, err error) {
	real, err := deepest(path)
	if err != nil {
		return nil, nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	links, end := trail(abs)
	out = []string{real}
	for _, p := range []string{filepath.ToSlash(abs), end} {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, links, nil
}

// maxLinks is how many links a path may lead through, as Linux has it.
const maxLinks = 40

// trail follows path name by name, whether or not what it names exists. It
// returns the links that it passes, each by the real path of its own name, and
// where it ends; "" if it does not, as in a loop.
func trail(path string) (links []string, end string) {
	at, rest := split(path)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
		}
		if name == "" || name == "." || name == ".." {
			continue
		}
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if err != nil { // no link, or not there
			at = next
			continue
		}
		if len(links) == maxLinks {
			return links, ""
		}
		links = append(links, filepath.ToSlash(next))
		root, more := split(to)
		switch {
		case root != "":
			at = root
		case to != "" && os.IsPathSeparator(to[0]): // of the same drive
			at = filepath.VolumeName(at) + string(filepath.Separator)
		}
		rest = append(more, rest...)
	}
	return links, filepath.ToSlash(at)
}

// split returns the root of path, "" if it is not absolute, and its names.
func split(path string) (root string, names []string) {
	volume := filepath.VolumeName(path)
	if filepath.IsAbs(path) {
		root = volume + string(filepath.Separator)
	}
	return root, strings.FieldsFunc(path[len(volume):], func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(byte(r)) })
}

// realDir returns the real path of what exists, with slashes.
func realDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("no directory")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	return filepath.ToSlash(real), err
}

// deepest is realDir for what may not exist yet: the part that does is
// resolved, so that it is denied under the name that it will have.
func deepest(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if path == "" || err != nil {
		return "", &sdk.Error{Kind: sdk.Internal, Op: "session", What: fmt.Sprintf("the host's own file %q", path), Err: err}
	}
	for dir, rest := abs, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest)), nil
		}
		if dir == filepath.Dir(dir) {
			return filepath.ToSlash(abs), nil
		}
	}
}

// Local is the caller that runs the host on this machine. A user without a
// name is called by number, never by what the environment says.
func Local() string {
	if id := os.Getuid(); id >= 0 {
		if u, err := user.LookupId(strconv.Itoa(id)); err == nil && u.Username != "" {
			return "local:" + u.Username
		}
		return "local:" + strconv.Itoa(id)
	}
	u, err := user.Current() // Windows: "DOMAIN\name"
	if err != nil || u.Username == "" {
		return "local:unknown"
	}
	return "local:" + u.Username[strings.LastIndexByte(u.Username, '\\')+1:]
}

// AccountHome returns the home directory of the account that runs the host,
// whatever the environment says; "" if there is none.
func AccountHome() string {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// Scope returns the scope of a call by the local user.
func (s *Session) Scope(session string) sdk.Scope {
	return sdk.Scope{Caller: s.caller, Workspace: s.workspace, Session: session}
}

// Layer returns the layer for a scope. There is one workspace for each host; a
// scope with another one is a bug that must not widen anything.
func (s *Session) Layer(scope sdk.Scope) (capability.Layer, error) {
	if scope.Workspace != s.workspace {
		return capability.Layer{}, &sdk.Error{Kind: sdk.Internal, Op: "session", What: fmt.Sprintf("scope of another workspace %q", scope.Workspace)}
	}
	return s.layer, nil
}
