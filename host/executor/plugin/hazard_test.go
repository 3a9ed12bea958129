//go:build unix

package plugin

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/skillhost/skill/sdk"
)

// What go-plugin does by itself and must not do here: hazards a to i of
// docs/plugin.md. Those that are the kernel's to close are tested in cages.

// a victim is a socket that no plugin has anything to do with.
type victim struct {
	address string
	met     atomic.Int64 // connections
	heard   atomic.Int64 // bytes
}

func newVictim(t *testing.T, network, address string) *victim {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	v := &victim{address: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.met.Add(1)
			go func() {
				defer c.Close()
				b := make([]byte, 1024)
				for {
					n, err := c.Read(b)
					if v.heard.Add(int64(n)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return v
}

// hazard_c_only_its_own_socket_is_dialled
func TestHazardCOnlyItsOwnSocketIsDialled(t *testing.T) {
	dir, err := os.MkdirTemp("", "v")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tcp, unix := newVictim(t, "tcp", "127.0.0.1:0"), newVictim(t, "unix", filepath.Join(dir, "s"))
	w := newWorld(t, Options{})
	for how, says := range map[string]string{
		"address_tcp":       "not a socket in its own directory",
		"address_elsewhere": "not a socket in its own directory",
		"address_abstract":  "not a socket in its own directory",
		"address_up":        "not a socket in its own directory",
		"address_dot":       "not a socket in its own directory",
		"address_relative":  "not a socket in its own directory",
		"address_absent":    "no such file",
		"address_file":      "is not a socket",
		"address_link":      "is not a socket",
		"address_hard_link": "answers there, not the plugin",
		"address_swap":      "", // one or the other, or gone at that moment
	} {
		for range map[bool]int{true: 20, false: 1}[how == "address_swap"] {
			address := unix.address
			if how == "address_tcp" {
				address = tcp.address
			}
			begun := time.Now()
			_, err := w.Load(t.Context(), skillOf(how+" "+address))
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%s: got %v, want %q", how, err, says)
			}
			if since := time.Since(begun); since > 8*time.Second {
				t.Errorf("%s: after %v", how, since)
			}
		}
	}
	if tcp.met.Load() != 0 || unix.heard.Load() != 0 {
		t.Errorf("the host met %d and %d sockets that are not the plugin's, and sent %d bytes", tcp.met.Load(), unix.met.Load(), unix.heard.Load())
	}
	if unix.met.Load() > 1 { // the hard link, which is found out by who answers
		t.Errorf("the host connected to somebody else's socket %d times", unix.met.Load())
	}
}

// hazard_c_the_broker_is_not_used: nothing but Run is asked of a plugin.
func TestHazardCTheBrokerIsNotUsed(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("stream_methods"))
	if got, _, err := do(t, p, "say", ""); got != "/skill.plugin.v1.Plugin/Run /skill.plugin.v1.Plugin/Run" && got != "/skill.plugin.v1.Plugin/Run" || err != nil {
		t.Errorf("asked for %q, %v", got, err)
	}
}

// hazard_d_the_digest_is_pinned: what was read at Load runs, whatever becomes
// of the file, and the copy cannot be changed.
func TestHazardDTheDigestIsPinned(t *testing.T) {
	dir := t.TempDir()
	me, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		if me, err = os.ReadFile(os.Args[0]); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, asPlugin)
	if err := os.WriteFile(file, me, 0o600); err != nil {
		t.Fatal(err)
	}
	s := skillOf(asPlugin)
	s.Home.Builtin, s.Home.Files, s.Home.Digest = false, os.DirFS(dir), "sha256:file"
	w := newWorld(t, Options{MaxIdle: -1})
	opened, err := w.open(s)
	if err != nil {
		t.Fatal(err)
	}
	opened.args = []string{asPlugin, "good"}
	defer opened.Close()
	if err := os.WriteFile(file, []byte("#!/bin/false\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, _, err := do(t, opened, "say", "hello"); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if runtime.GOOS != "linux" {
		return // elsewhere nobody else can open the copy
	}
	if _, err := opened.file.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the sealed program was written to")
	}
	if err := opened.file.Truncate(0); err == nil {
		t.Error("the sealed program was cut")
	}
}

// hazard_e_messages_are_bounded
func TestHazardEMessagesAreBounded(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("stream_giant"))
	if _, _, err := do(t, p, "say", "", output(1<<20)); sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

// hazard_g_no_certificates_are_made: who answers is told by the kernel.
func TestHazardGNoCertificatesAreMade(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	if env, _, err := do(t, p, "env", ""); err != nil || strings.Contains(env, "CERT") {
		t.Errorf("%v\n%s", err, env)
	}
	if _, err := newWorld(t, Options{}).Load(t.Context(), skillOf("start_tls")); err == nil {
		t.Error("a certificate of the plugin's was believed")
	}
}

// TestStart: a plugin that does not start is a clear error, soon, and the next
// start is no worse off.
func TestStart(t *testing.T) {
	w := newWorld(t, Options{})
	w.patience = 3 * time.Second
	for how, says := range map[string]string{
		"start_exit":     "exited with status 3 before it could be called: no such luck",
		"start_exit_0":   "exited with status 0 before it could be called",
		"start_signal":   "killed before it could be called",
		"start_hang":     "did not answer there, in time",
		"start_flood":    "did not answer there, in time",
		"start_garbage":  `hello, world`,
		"start_silent":   "Failed to read any lines",
		"start_long":     "which is not a socket",
		"start_core":     "core",
		"start_version":  "version",
		"start_netrpc":   "netrpc",
		"start_tls":      "cert",
		"listen_hang":    "did not answer there, in time",
		"listen_garbage": "does not speak gRPC",
		"listen_close":   "does not speak gRPC",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			_, err := w.Load(t.Context(), skillOf(how))
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(fmt.Sprint(err), says) || len(err.Error()) > 4000 {
				t.Errorf("got %.5000v, want %q", err, says)
			}
			if since := time.Since(begun); since > 8*time.Second {
				t.Errorf("after %v", since)
			}
		})
	}
}

// The library is told to say nothing and to dial once.
func TestDialledOnce(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	if _, _, err := do(t, p, "say", ""); err != nil {
		t.Fatal(err)
	}
	w.pool.mu.Lock()
	proc := w.pool.all[0]
	w.pool.mu.Unlock()
	if _, err := proc.dial(t.Context(), ""); err == nil {
		t.Error("dialled twice")
	}
	if s := proc.conn.GetState(); s != connectivity.Ready {
		t.Errorf("the connection is %v", s)
	}
}
