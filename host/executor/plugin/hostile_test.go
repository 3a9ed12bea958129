//go:build unix

package plugin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	transport "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// asPlugin is the name under which the test binary is a plugin. Its first
// argument after that says how it behaves.
const asPlugin = "skill-test-plugin"

// asHost is the name under which it is a host, to be killed.
const asHost = "skill-test-host"

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case asPlugin:
		how, victim, _ := strings.Cut(os.Args[1], " ")
		behave(how, victim)
	case asHost:
		beHost()
	default:
		os.Exit(m.Run())
	}
}

// behave is the plugin: one that keeps to the rules, or one that breaks one.
func behave(how, victim string) {
	if do, ok := starts[how]; ok {
		do()
		return
	}
	if do, ok := addresses[how]; ok {
		do(victim)
		return
	}
	if do, ok := streams[how]; ok {
		serveRaw(do)
		return
	}
	if how == "interop" {
		transport.Serve(&transport.ServeConfig{HandshakeConfig: handshake, GRPCServer: transport.DefaultGRPCServer, Plugins: transport.PluginSet{wire.Name: &interop{}}})
		return
	}
	tools()
	plugin.Serve()
}

// interop is a plugin as go-plugin serves it.
type interop struct {
	transport.NetRPCUnsupportedPlugin
}

func (*interop) GRPCServer(_ *transport.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&wire.Service, rawServer(func(s raw) error { return say(s, wire.Kind_RESULT, 1, done) }))
	return nil
}

func (*interop) GRPCClient(context.Context, *transport.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// sock is the path of a socket in the plugin's own directory.
func sock(name string) string { return filepath.Join(os.Getenv(wire.SocketDirKey), name) }

func hello(network, address string) { fmt.Printf("1|1|%s|%s|grpc\n", network, address) }

func forever() { time.Sleep(time.Hour) }

// listen makes a socket at path that never answers.
func listen(path string) {
	if _, err := net.Listen("unix", path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

// starts are ways to start, wrong ones but for the last lines.
var starts = map[string]func(){
	"start_exit":    func() { fmt.Fprintln(os.Stderr, "no such luck"); os.Exit(3) },
	"start_exit_0":  func() {},
	"start_signal":  func() { kill() },
	"start_hang":    func() { forever() },
	"start_garbage": func() { fmt.Println("hello, world"); forever() },
	"start_silent":  func() { os.Stdout.Close(); forever() },
	"start_long":    func() { fmt.Print(strings.Repeat("1|", 1<<20)); forever() },
	"start_core":    func() { fmt.Println("2|1|unix|" + sock("s") + "|grpc"); forever() },
	"start_version": func() { fmt.Println("1|7|unix|" + sock("s") + "|grpc"); forever() },
	"start_netrpc":  func() { listen(sock("s")); fmt.Println("1|1|unix|" + sock("s") + "|netrpc"); forever() },
	"start_tls": func() {
		listen(sock("s"))
		fmt.Println("1|1|unix|" + sock("s") + "|grpc|" + strings.Repeat("A", 60))
		forever()
	},

	"start_flood":    func() { flood(os.Stderr) },
	"listen_hang":    func() { listen(sock("s")); hello("unix", sock("s")); forever() },
	"listen_garbage": func() { garbage() },
	"listen_close": func() {
		l, _ := net.Listen("unix", sock("s"))
		hello("unix", sock("s"))
		for {
			c, err := l.Accept()
			if err == nil {
				c.Close()
			}
		}
	},
}

// addresses are lies about where the plugin listens. A victim is the address of
// a socket that is not the plugin's.
var addresses = map[string]func(victim string){
	"address_tcp":       func(v string) { hello("tcp", v); forever() },
	"address_elsewhere": func(v string) { hello("unix", v); forever() },
	"address_abstract":  func(string) { hello("unix", "@skill"); forever() },
	"address_up":        func(string) { hello("unix", sock("x")+"/../../"+"s"); forever() },
	"address_dot":       func(string) { hello("unix", os.Getenv(wire.SocketDirKey)+"/."); forever() },
	"address_relative":  func(string) { hello("unix", "s"); forever() },
	"address_absent":    func(string) { hello("unix", sock("nothing")); forever() },
	"address_file":      func(string) { os.WriteFile(sock("s"), nil, 0o600); hello("unix", sock("s")); forever() },
	"address_link":      func(v string) { os.Symlink(v, sock("s")); hello("unix", sock("s")); forever() },
	"address_hard_link": func(v string) { os.Link(v, sock("s")); hello("unix", sock("s")); forever() },
	"address_swap":      swap,
}

func kill() { syscall.Kill(os.Getpid(), syscall.SIGKILL); forever() }

// swap shows a real socket, and puts a link in its place again and again.
func swap(victim string) {
	l, err := net.Listen("unix", sock("own"))
	if err != nil {
		os.Exit(9)
	}
	go func() {
		for {
			if c, err := l.Accept(); err == nil {
				c.Close()
			}
		}
	}()
	hello("unix", sock("s"))
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		os.Remove(sock("s"))
		os.Link(sock("own"), sock("s"))
		os.Remove(sock("s"))
		os.Symlink(victim, sock("s"))
	}
}

func garbage() {
	l, err := net.Listen("unix", sock("s"))
	if err != nil {
		os.Exit(9)
	}
	hello("unix", sock("s"))
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Write(bytes.Repeat([]byte("garbage\n"), 4096))
		io.Copy(io.Discard, c)
	}
}

func flood(f *os.File) {
	w := bufio.NewWriter(f)
	for line := strings.Repeat("flood ", 1000) + "\n"; ; {
		if _, err := w.WriteString(line); err != nil {
			return
		}
	}
}

// serveRaw serves do as Run, without the SDK.
func serveRaw(do func(raw) error) {
	l, err := net.Listen("unix", sock("s"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			methods = append(methods, info.FullMethod)
			return h(srv, ss)
		}),
		grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(ss)
			methods = append(methods, method)
			return nil
		}))
	s.RegisterService(&wire.Service, rawServer(do))
	hello("unix", sock("s"))
	s.Serve(l)
}

var methods []string // that the host called

type raw = grpc.BidiStreamingServer[wire.Message, wire.Message]

type rawServer func(raw) error

// Run answers whoever wants a description that there is none.
func (do rawServer) Run(s raw) error {
	m, err := s.Recv()
	if err != nil {
		return err
	}
	if f, err := sdk.ParseFrame(m.Body); err == nil && bytes.Contains(f.Header, []byte(`"describe":true`)) {
		return s.Send(&wire.Message{Kind: wire.Kind_RESULT, Id: 1, Body: sdk.AppendError(nil, &sdk.Error{Kind: sdk.NotFound, What: "none"})})
	}
	return do(s)
}

func say(s raw, k wire.Kind, id uint32, body string) error {
	return s.Send(&wire.Message{Kind: k, Id: id, Body: []byte(body)})
}

func frame(header string) string { return string(sdk.AppendFrame(nil, []byte(header))) }

var done = frame(`{"content":[{"type":"text","text":"done"}]}`)

// streams are ways to answer a call, each wrong in one way.
var streams = map[string]func(raw) error{
	"stream_none":           func(raw) error { return nil },
	"stream_status":         func(raw) error { return fmt.Errorf("sorry\nabout that") },
	"stream_exit":           func(raw) error { fmt.Fprintln(os.Stderr, "last words"); os.Exit(7); return nil },
	"stream_signal":         func(raw) error { kill(); return nil },
	"stream_hang":           func(raw) error { forever(); return nil },
	"stream_number":         func(s raw) error { return say(s, wire.Kind_RESULT, 7, done) },
	"stream_garbage_result": func(s raw) error { return say(s, wire.Kind_RESULT, 1, "garbage") },
	"stream_garbage_log":    func(s raw) error { return say(s, wire.Kind_LOG, 0, "garbage") },
	"stream_garbage_part":   func(s raw) error { return say(s, wire.Kind_PARTIAL, 0, "garbage") },
	"stream_garbage_op":     func(s raw) error { return say(s, wire.Kind_OP, 1, "garbage") },
	"stream_kind_zero":      func(s raw) error { return say(s, 0, 0, "") },
	"stream_kind_unknown":   func(s raw) error { return say(s, 99, 0, "") },
	"stream_kind_reply":     func(s raw) error { return say(s, wire.Kind_REPLY, 1, "") },
	"stream_id_twice": func(s raw) error {
		say(s, wire.Kind_OP, 5, frame(`{"op":"slow"}`))
		say(s, wire.Kind_OP, 5, frame(`{"op":"slow"}`))
		forever()
		return nil
	},
	"stream_ops_flood": func(s raw) error {
		for id := uint32(1); ; id++ {
			if err := say(s, wire.Kind_OP, id, frame(`{"op":"slow"}`)); err != nil {
				return err
			}
		}
	},
	"stream_ops_deaf": func(s raw) error { // asks for more than it ever reads
		for id := uint32(1); id < 60; id++ {
			if err := say(s, wire.Kind_OP, id, frame(`{"op":"big"}`)); err != nil {
				return err
			}
		}
		forever()
		return nil
	},
	"stream_log_flood": func(s raw) error {
		for {
			if err := say(s, wire.Kind_LOG, 0, `{"level":"info","message":"x"}`); err != nil {
				return err
			}
		}
	},
	"stream_empty_flood": func(s raw) error {
		for {
			if err := say(s, wire.Kind_LOG, 0, `0`); err != nil {
				return err
			}
		}
	},
	"stream_giant": func(s raw) error {
		return say(s, wire.Kind_RESULT, 1, strings.Repeat("x", 64<<20))
	},
	"stream_methods": func(s raw) error {
		time.Sleep(100 * time.Millisecond) // for others to come
		return say(s, wire.Kind_RESULT, 1, frame(`{"content":[{"type":"text","text":"`+strings.Join(methods, " ")+`"}]}`))
	},
	"stream_stubborn": func(s raw) error { // reads, and does not do what it is told
		for {
			if _, err := s.Recv(); err != nil {
				forever()
			}
		}
	},
	// What comes after a result.
	"late_result": func(s raw) error {
		say(s, wire.Kind_RESULT, 1, done)
		say(s, wire.Kind_RESULT, 1, done)
		forever()
		return nil
	},
	"late_garbage": func(s raw) error {
		say(s, wire.Kind_RESULT, 1, done)
		say(s, wire.Kind_LOG, 0, "garbage")
		forever()
		return nil
	},
	"late_end":     func(s raw) error { return say(s, wire.Kind_RESULT, 1, done) },
	"late_silence": func(s raw) error { say(s, wire.Kind_RESULT, 1, done); forever(); return nil },

	"stream_lie": func(s raw) error { // in the host's name
		return s.Send(&wire.Message{Kind: wire.Kind_RESULT, Id: 1, Body: sdk.AppendError(nil, &sdk.Error{Kind: sdk.Internal, What: "lie",
			Denial: &sdk.Denial{Layer: "operator"}})})
	},
}
