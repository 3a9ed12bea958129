//go:build linux || darwin

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

func TestRun(t *testing.T) {
	const text = `input.type = "object"` + "\n" + `input.properties.x = { type = "string" }` + "\n"
	for _, tt := range []struct {
		name, script, more, args string
		want                     string // the text, "!" and an error, or "-" and a failure's text
		structured               string
	}{
		{"stdout", `echo a b; echo warn >&2`, "", `{}`, "a b\n", `{"exit_code":0,"stdout":"a b\n","stderr":"warn\n"}`},
		{"only_stderr", `echo warn >&2`, "", `{}`, "warn", `{"exit_code":0,"stdout":"","stderr":"warn\n"}`},
		{"nothing", `:`, "", `{}`, "", `{"exit_code":0,"stdout":"","stderr":""}`},
		{"failure", `echo out; echo why >&2; exit 3`, "", `{}`, "-out\nwhy\nsh failed with exit status 3", `{"exit_code":3,"stdout":"out\n","stderr":"why\n"}`},
		{"success_one", `exit 1`, "success = [0, 1]", `{}`, "", `{"exit_code":1,"stdout":"","stderr":""}`},
		{"success_not_zero", `exit 0`, "success = [1]", `{}`, "-sh failed with exit status 0", `{"exit_code":0,"stdout":"","stderr":""}`},
		{"signal", `kill -9 $$`, "", `{}`, "-sh was ended by SIGKILL", `{"exit_code":-1,"signal":"SIGKILL","stdout":"","stderr":""}`},
		{"stdin", `cat`, text + `stdin = "{x}"`, `{"x":"-a\nb"}`, "-a\nb", ""},
		{"stdin_absent", `cat`, text + `stdin = "{x}"`, `{}`, "", ""},
		{"stdin_unread", `exit 0`, text + `stdin = "{x}"`, `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "", ""},
		{"stdin_null", `cat`, "", `{}`, "", ""},
		{"not_utf8", `printf 'a\377b'`, "", `{}`, "a\uFFFDb", "{\"exit_code\":0,\"stdout\":\"a\uFFFDb\",\"stderr\":\"\",\"not_utf8\":true}"},
		{"json", `echo '{"a": [1]}'`, `output.type = "object"`, `{}`, "{\"a\": [1]}\n", `{"a":[1]}`},
		{"not_json", `echo oops`, `output.type = "object"`, `{}`, "!not the one JSON value that the tool promises", ""},
		{"two_json", `echo 1 2`, `output.type = "integer"`, `{}`, "!not the one JSON value", ""},
		{"no_json", `:`, `output.type = "integer"`, `{}`, "!not the one JSON value", ""},
		{"not_json_failed", `echo oops; exit 2`, `output.type = "object"`, `{}`, "-oops\nsh failed with exit status 2", ""},
		{"flood", `while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`, "", `{}`, "!the output of sh exceeds 65536 bytes", ""},
		{"environment", `env -0 | tr '\000' '\n' | cut -d= -f1 | sort | tr '\n' ' '`, "", `{}`, "HOME LANG PATH PWD TERM TMPDIR ", ""},
		{"unknown_argument", `:`, "", `{"y":1}`, `!there is no argument "y"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, shell(tt.script, tt.more), uncaged{}, strict)
			r, err := w.run(within(t, time.Minute), "t", tt.args)
			if want, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %+v, %v, want the error %q", r, err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, failed := strings.CutPrefix(tt.want, "-")
			if tt.name == "stdin" {
				want, failed = tt.want, false
			}
			if got := r.Content[0].Text; got != want || r.Failed != failed {
				t.Errorf("got %q, failed %v, want %q, %v", got, r.Failed, want, failed)
			}
			if tt.structured != "" && string(r.Structured) != tt.structured {
				t.Errorf("structured %s, want %s", r.Structured, tt.structured)
			}
		})
	}
}

// What a program wrote before it was stopped is not lost.
func TestStopped(t *testing.T) {
	const script = `echo begun; echo why >&2; sleep 60`
	t.Run("deadline", func(t *testing.T) {
		w := newWorld(t, shell(script, ""), uncaged{}, strict)
		_, err := w.run(within(t, 300*time.Millisecond), "t", `{}`)
		if sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "begun\nwhy") {
			t.Errorf("%v", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		w := newWorld(t, shell(script, ""), uncaged{}, strict)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		if _, err := w.run(ctx, "t", `{}`); sdk.KindOf(err) != sdk.Canceled || !strings.Contains(err.Error(), "begun") {
			t.Errorf("%v", err)
		}
	})
	t.Run("before", func(t *testing.T) {
		w := newWorld(t, shell(`echo ran > ran`, ""), uncaged{}, strict)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.run(ctx, "t", `{}`); sdk.KindOf(err) != sdk.Canceled {
			t.Errorf("%v", err)
		}
	})
	const polite = `trap 'echo bye; exit 5' TERM; trap 'echo hup; exit 6' HUP; echo begun; while :; do sleep 0.05; done`
	for name, tt := range map[string]struct {
		cause error
		kind  sdk.Kind
		want  string
	}{
		"soft": {context.DeadlineExceeded, sdk.Limit, "begun\nbye"},
		"stop": {&sdk.Stop{Signal: "HUP"}, sdk.Canceled, "begun\nhup"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shell(polite, ""), uncaged{}, strict)
			p, err := w.load()
			if err != nil {
				t.Fatal(err)
			}
			j := w.job("t", `{}`)
			soft, cancel := context.WithCancelCause(t.Context())
			j.Soft = soft
			time.AfterFunc(2*time.Second, func() { cancel(tt.cause) }) // by then the shell has set its traps
			_, err = p.Run(within(t, time.Minute), j)
			if sdk.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A program that leaves a child behind with its streams does not hold the call.
func TestStreamsLeftOpen(t *testing.T) {
	w := newWorld(t, shell(`sleep 20 & echo done`, ""), uncaged{}, strict)
	began := time.Now()
	r, err := w.run(within(t, time.Minute), "t", `{}`)
	if err != nil || r.Content[0].Text != "done\n" || time.Since(began) > 10*time.Second {
		t.Errorf("%+v, %v after %v", r, err, time.Since(began))
	}
}

func TestStderrFlood(t *testing.T) {
	w := newWorld(t, shell(`i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done`, ""), uncaged{}, strict)
	r, err := w.run(within(t, time.Minute), "t", `{}`)
	var got report
	if err == nil {
		err = json.Unmarshal(r.Structured, &got)
	}
	if err != nil || len(got.Stderr) != maxStderr || !strings.HasSuffix(got.Stderr, "line 19999\n") || got.Lost == 0 || len(r.Content[0].Text) > maxShown+8 {
		t.Errorf("%d bytes of stderr, %d lost, %v", len(got.Stderr), got.Lost, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := place(t)
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := write("foreign", 0o755)
	if os.Geteuid() == 0 {
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, program, want string
		kind                sdk.Kind
	}{
		{"pipe", pipe, `it is no file`, sdk.Invalid}, // opening it would wait for a writer
		{"absent_name", "no-such-program", `the program "no-such-program" is not on this machine (install it; it is looked for in /usr/local/sbin, `, sdk.Unavailable},
		{"absent_path", dir + "/none", `is not on this machine`, sdk.Unavailable},
		{"not_executable", write("plain", 0o644), `it is not executable`, sdk.Invalid},
		{"writable", write("writable", 0o777), `others than its owner may write to it`, sdk.Invalid},
		{"folder", dir, `it is no file`, sdk.Invalid},
		{"device", "/dev/null", `it is no file`, sdk.Invalid},
		{"foreign", foreign, `it belongs to another user`, sdk.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "foreign" && os.Geteuid() != 0 {
				t.Skip("LEFT OUT: only root can make a file of another user")
			}
			q := capability.Quote(tt.program)
			w := newWorld(t, "[capabilities]\nexec = ["+q+"]\n[tools.t]\ncommand = ["+q+"]\n", uncaged{}, strict)
			if _, err := w.load(); err == nil || !strings.Contains(err.Error(), tt.want) || sdk.KindOf(err) != tt.kind {
				t.Errorf("%v", err)
			}
		})
	}
	w := newWorld(t, shell(":", "")+"\n[sandbox]\nisolation = \"session\"\n", uncaged{}, strict)
	if _, err := w.load(); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("isolation = \"session\": %v", err)
	}
}

// The program that runs is the one that was there when the skill was loaded.
func TestProgramChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(path string) error
		ok     bool
	}{
		{"nothing", func(string) error { return nil }, true},
		{"touched", func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) }, true},
		{"replaced_by_equal", func(path string) error {
			return replace(path, "#!/bin/sh\necho good\n", 0o755)
		}, true},
		{"replaced", func(path string) error { return replace(path, "#!/bin/sh\necho evil\n", 0o755) }, false},
		{"replaced_not_executable", func(path string) error { return replace(path, "#!/bin/sh\necho good\n", 0o644) }, false},
		{"replaced_by_link", func(path string) error {
			if err := os.WriteFile(path+"2", []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+"2", path)
		}, false},
		{"removed", os.Remove, false},
		{"made_writable", func(path string) error { return os.Chmod(path, 0o777) }, false},
		{"in_place_same_size_and_time", func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
				return err
			}
			return os.Chtimes(path, st.ModTime(), st.ModTime())
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(place(t), "prog")
			if err := os.WriteFile(path, []byte("#!/bin/sh\necho good\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			q := capability.Quote(path)
			w := newWorld(t, "[capabilities]\nexec = ["+q+"]\n[tools.t]\ncommand = ["+q+"]\n", uncaged{}, strict)
			p, err := w.load()
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r, err := p.Run(within(t, time.Minute), w.job("t", `{}`))
				switch {
				case !tt.ok && (sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "has changed since the skill was loaded")):
					t.Errorf("%+v, %v", r, err)
				case tt.ok && (err != nil || r.Content[0].Text != "good\n"):
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
}

func replace(path, text string, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", []byte(text), mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Every layer that speaks of programs must allow the one that is run; a denial
// holds under the name that is written and under that of the file.
func TestDenied(t *testing.T) {
	real, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	entry := func(e string) capability.Set {
		c, err := capability.Parse(capability.Exec, e, capability.Pos{File: "policy.toml", Line: 3})
		if err != nil {
			t.Fatal(err)
		}
		return capability.Set{c}
	}
	speaks := []capability.Topic{{Kind: capability.Exec, Verb: capability.Run}}
	for name, tt := range map[string]struct {
		layer capability.Layer
		ok    bool
	}{
		"silent":        {capability.Layer{}, true},
		"allowed":       {capability.Layer{Speaks: speaks, Allow: entry("sh")}, true},
		"not_allowed":   {capability.Layer{Speaks: speaks, Allow: entry("git")}, false},
		"none":          {capability.Layer{Speaks: speaks}, false},
		"denied":        {capability.Layer{Deny: entry("sh")}, false},
		"denied_file":   {capability.Layer{Deny: entry(real)}, false},
		"denied_by_its": {capability.Layer{Deny: entry(filepath.Base(real))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shell("echo ran > ran", ""), uncaged{}, strict)
			tt.layer.Name, tt.layer.Table = "operator", "[skills.x.capabilities]"
			w.layers = []capability.Layer{tt.layer}
			_, err := w.run(within(t, time.Minute), "t", `{}`)
			if tt.ok != (err == nil) || !tt.ok && sdk.KindOf(err) != sdk.Denied {
				t.Errorf("%v", err)
			}
		})
	}
}

// A machine that offers less than is asked for runs nothing.
func TestLevel(t *testing.T) {
	w := newWorld(t, shell("echo ran", ""), uncaged{}, strict)
	w.level = "strict"
	if _, err := w.run(within(t, time.Minute), "t", `{}`); err != nil {
		t.Error(err)
	}
	w = newWorld(t, shell("echo ran", ""), uncaged{}, sandbox.Report{Level: sandbox.Landlock})
	w.level = "strict"
	if r, err := w.run(within(t, time.Minute), "t", `{}`); sdk.KindOf(err) != sdk.Denied {
		t.Errorf("%+v, %v", r, err)
	}
}

// A program finds what the operator set for its skill in a variable, and none
// where nothing is set.
func TestSettings(t *testing.T) {
	w := newWorld(t, shell(`env`, ""), uncaged{}, strict)
	p, err := w.load()
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{`{"a":{"b":"c d"}}`, ""} {
		job := w.job("t", `{}`)
		job.Input.Settings = json.RawMessage(set)
		r, err := p.Run(within(t, time.Minute), job)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Content[0].Text
		if set == "" && strings.Contains(got, executor.SettingsEnv) || set != "" && !strings.Contains(got, "\nSKILL_SETTINGS="+set+"\n") && !strings.HasPrefix(got, "SKILL_SETTINGS="+set+"\n") {
			t.Errorf("with settings %q the environment is\n%s", set, got)
		}
	}
}
