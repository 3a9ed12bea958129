package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// fixtures are the skills that the suite calls. It wants their tools by their
// bare names.
var fixtures = []string{"conformance", "conformance-plain"}

// A house is the binary with a home of its own.
type house struct {
	skill, dir, work string
}

// newHouse installs the fixtures in a new home under dir and allows them.
func newHouse(ctx context.Context, skill, dir string) (*house, error) {
	h := &house{skill: skill, dir: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	if err := os.Mkdir(h.work, 0o700); err != nil {
		return nil, err
	}
	for _, name := range fixtures {
		if err := ship(filepath.Join("examples", name), filepath.Join(h.dir, "skills", name)); err != nil {
			return nil, fmt.Errorf("%w (run make guests first, in the directory of go.mod)", err)
		}
		if out, err := h.run(ctx, "allow", "--yes", name); err != nil {
			return nil, fmt.Errorf("skill allow %s: %w\n%s", name, err, out)
		}
	}
	return h, nil
}

// ship copies a skill without its sources and tests.
func ship(from, to string) error {
	module := filepath.Join(from, filepath.Base(from)+".wasm")
	if _, err := os.Stat(module); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel == "suite":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case filepath.Ext(rel) == ".go":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}

// env are the variables that make the binary this house's.
func (h *house) env() []string {
	return []string{"SKILL_HOME=" + h.dir, "SKILL_NAMES_BARE=" + strings.Join(fixtures, " ")}
}

// run runs a command of the binary.
func (h *house) run(ctx context.Context, args ...string) (string, error) {
	return command(ctx, h.work, h.env(), h.skill, args...)
}

// pollAfter is when clients of sessions are sent away: sooner than the slow
// fixture answers, so that streams are closed and resumed.
const pollAfter = "300ms"

// A server is a running "skill serve".
type server struct {
	url  string
	end  func() error
	text *tail
}

var announced = regexp.MustCompile(`serving MCP at (http://\S+)`)

// serve starts the binary on a free port and waits until it says where it is.
func (h *house) serve(ctx context.Context) (*server, error) {
	cmd := exec.CommandContext(ctx, h.skill, "serve", "--http", "127.0.0.1:0", "--poll-after", pollAfter)
	cmd.Dir, cmd.Env = h.work, environ(h.env()...)
	cmd.WaitDelay = 20 * time.Second
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	s := &server{text: &tail{}}
	cmd.Stderr = s.text
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	s.end = func() error {
		_ = cmd.Cancel() // it may be gone, which Wait tells
		select {
		case err := <-done:
			return err
		case <-time.After(cmd.WaitDelay):
			return errors.Join(errors.New("it did not end when it was told to"), cmd.Process.Kill())
		}
	}
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		if m := announced.FindStringSubmatch(s.log()); m != nil {
			s.url = m[1]
			return s, nil
		}
		select {
		case err := <-done:
			return nil, fmt.Errorf("skill serve: %w\n%s", errors.Join(errors.New("it ended"), err), s.log())
		default:
		}
	}
	return nil, errors.Join(fmt.Errorf("skill serve did not say where it is\n%s", s.log()), s.end())
}

// stop ends the server and says whether it went in order.
func (s *server) stop() error { return s.end() }

func (s *server) log() string { return s.text.String() }

// tail keeps the last of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 1 << 16

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailSize; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
