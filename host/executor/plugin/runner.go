package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	transport "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// maxHandshake bounds the line by which a plugin says where it listens, bytes.
const maxHandshake = 4 << 10

// A started runner.Runner is how go-plugin starts a process and reads where it
// listens. The process gets none of what that library would give it: no stdin,
// no variable of the host's, and stdout only until its first line.
type started struct {
	ctx context.Context // of the start
	p   *process
	cmd *exec.Cmd // go-plugin's: only its environment is looked at
}

var _ runner.Runner = (*started)(nil)

// SkillDirKey is the variable that names the folder of the plugin's skill. To
// read it, a plugin has to be granted that.
const SkillDirKey = "SKILL_DIR"

// handed names the variables of go-plugin that a plugin gets.
var handed = []string{wire.CookieKey, "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT"}

func (r *started) Start(context.Context) error {
	program := sandbox.Program{File: r.p.program.file, Args: r.p.program.args}
	for _, v := range r.cmd.Env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(handed, name) {
			program.Env = append(program.Env, v)
		}
	}
	if dir := r.p.program.skill.Home.Dir; dir != "" {
		program.Env = append(program.Env, SkillDirKey+"="+dir)
	}
	return r.p.launch(r.ctx, program)
}

// Stdout is where the library reads the first line.
func (r *started) Stdout() io.ReadCloser { return &firstLine{p: r.p} }

// Stderr is empty: the process's own is read by its process.
func (r *started) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (r *started) Name() string { return r.p.program.skill.Name }

// ID is never empty: the library would not tidy up after a start that failed.
func (r *started) ID() string { return "plugin" }

func (r *started) Wait(context.Context) error {
	<-r.p.guest.Done()
	return nil
}

// Kill is called when the library gives up. A plugin that said nothing has
// perhaps just ended: that is the better reason.
func (r *started) Kill(context.Context) error {
	if g := r.p.guest; g != nil && r.p.stdout.silent() {
		select {
		case <-g.Done():
		case <-time.After(lastWords):
		}
	}
	r.p.stop()
	return nil
}

func (r *started) Diagnose(context.Context) string { return "" }

// PluginToHost accepts nothing but a socket in the directory that was made for
// this process. What is there is looked at when it is dialled.
func (r *started) PluginToHost(network, address string) (string, string, error) {
	outside, inside := r.p.guest.Serves()
	name := path.Base(address)
	if network != "unix" || path.Join(inside, name) != address || name == "." || name == "/" || name == ".." {
		return "", "", fmt.Errorf("it says that it listens at %q, %q, which is not a socket in its own directory", network, address)
	}
	r.p.address = name
	return network, filepath.Join(outside, name), nil
}

func (r *started) HostToPlugin(string, string) (string, string, error) {
	return "", "", errors.New("the host does not listen for plugins")
}

// firstLine is the first line that a process writes to stdout. It never blocks
// for longer than the process lives.
type firstLine struct {
	p    *process
	rest io.Reader
}

func (f *firstLine) Read(b []byte) (int, error) {
	if f.rest == nil {
		line := f.p.stdout.first()
		f.rest = strings.NewReader(line)
	}
	return f.rest.Read(b)
}

func (f *firstLine) Close() error { return nil }

// quiet is the logger of the library, which says nothing: what goes wrong is
// told by errors.
func quiet() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
}

// handshake is what both sides know. The cookie is not a secret.
var handshake = transport.HandshakeConfig{ProtocolVersion: wire.Version, MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue}
