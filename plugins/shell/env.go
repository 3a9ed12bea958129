package shell

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// defaultPath is where programs are if the environment does not say.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environ returns the environment of a command: nothing of the host's but what
// was granted. Nothing in it invites a program to ask, to page or to paint.
func environ(c *guest.Call, extra map[string]string) ([]string, error) {
	env := map[string]string{
		"PATH": defaultPath, "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1", "NO_COLOR": "1",
		"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "DEBIAN_FRONTEND": "noninteractive",
	}
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR"} { // as the cage has them
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	maps.Copy(env, c.Environ())
	if url := c.Proxy(); url != "" {
		maps.Copy(env, sdk.ProxyEnv(url))
	}
	for name, value := range extra {
		if !variable(name) || strings.ContainsRune(value, 0) {
			return nil, invalid(fmt.Sprintf("env: %q is not a variable that can be set", name), "names have letters, digits and underscores, values no NUL")
		}
		env[name] = value
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// variable reports whether name can be that of an environment variable.
func variable(name string) bool {
	for i, r := range name {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9') {
			return false
		}
	}
	return name != ""
}

// An interpreter runs commands.
type interpreter struct {
	name string // "bash" or "sh"
	path string
	argv []string
}

// findShell returns bash, or sh where there is none.
func findShell() (interpreter, error) {
	for _, name := range []string{"bash", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		i := interpreter{name, path, []string{name}}
		if name == "bash" {
			i.argv = append(i.argv, "--noprofile", "--norc")
		}
		return i, nil
	}
	return interpreter{}, &sdk.Error{Kind: sdk.Unavailable, What: "neither bash nor sh can be run here",
		Hint: "the operator's list for [skills.shell.capabilities] exec and filesystem has to let it"}
}

// workDir returns the directory that a command starts in, and a note if it is
// not the one that was asked for.
func workDir(workspace, asked string) (dir, note string, err error) {
	if strings.ContainsRune(asked, 0) {
		return "", "", invalid("cwd: a NUL in a path", "")
	}
	root := workspace
	if root == "" {
		root = os.TempDir()
	}
	if asked == "" {
		asked = root
	}
	if !filepath.IsAbs(asked) {
		asked = filepath.Join(root, asked)
	}
	asked = filepath.Clean(asked)
	info, err := os.Stat(asked)
	switch {
	case err == nil && info.IsDir():
		return asked, "", nil
	case err == nil:
		return "", "", invalid(fmt.Sprintf("cwd: %q is not a directory", asked), "")
	case asked == filepath.Clean(root):
		return "", "", &sdk.Error{Kind: sdk.Unavailable, What: fmt.Sprintf("the workspace %q cannot be entered", root), Err: reason(err)}
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "", "", &sdk.Error{Kind: sdk.Unavailable, What: fmt.Sprintf("neither %q nor the workspace %q can be entered", asked, root), Err: reason(err)}
	}
	return root, fmt.Sprintf("the directory %q cannot be entered (%v): the command ran in the workspace", asked, reason(err)), nil
}

// reason is err without the path and the operation that the message has already.
func reason(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

func invalid(what, hint string) error { return &sdk.Error{Kind: sdk.Invalid, What: what, Hint: hint} }
