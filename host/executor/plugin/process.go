package plugin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	transport "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/plugin/wire"
)

// A process is a plugin that runs, or is to run, in its cage.
type process struct {
	program *program
	plan    plan
	key     string
	client  *transport.Client
	conn    *grpc.ClientConn
	address string // the name of its socket
	dialled bool
	stdout  pipe
	stderr  pipe
	state   turn // the pool's

	mu      sync.Mutex
	guest   caged // nil until it was started
	stopped bool
	fell    bool      // it had ended before it was stopped
	refusal error     // why its socket was not connected to
	calls   []*call   // under way, the last one begun last
	streams []*stream // without a call, the last one used last
}

// spawn starts a process and connects to it. The error says what the plugin
// did, if it did something wrong.
func (x *Executor) spawn(ctx context.Context, prog *program, pl plan) (*process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, x.patience, errSlow)
	defer cancel()
	p := &process{program: prog, plan: pl, key: pl.key()}
	if err := errors.Join(p.stdout.open(p, "info"), p.stderr.open(p, "warning")); err != nil {
		p.close()
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "plugin.Start", What: "pipes for the plugin", Err: err}
	}
	p.client = transport.NewClient(&transport.ClientConfig{
		HandshakeConfig: handshake,
		Plugins:         transport.PluginSet{wire.Name: &service{}},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, dir string) (runner.Runner, error) {
			_ = os.Remove(dir) // which is for sockets; the cage has its own
			return &started{ctx: ctx, p: p, cmd: cmd}, nil
		},
		SkipHostEnv:      true,
		AllowedProtocols: []transport.Protocol{transport.ProtocolGRPC},
		Logger:           quiet(),
		StartTimeout:     2 * x.patience, // ctx ends first
		GRPCDialOptions:  p.dialOptions(),
	})
	defer context.AfterFunc(ctx, p.stop)()
	if err := p.connect(ctx); err != nil {
		err = p.startError(ctx, err)
		p.close()
		return nil, err
	}
	return p, nil
}

var errSlow = errors.New("it did not say where it listens, or did not answer there, in time")

// dialOptions keep the library from what it would do by itself: send to and
// accept from a plugin as much as that likes, dial what it names, open streams
// for its broker and for its output, and ask it to end.
func (p *process) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(p.dial),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(64 << 10),
		grpc.WithInitialWindowSize(1 << 20), // said once: pings to measure the connection cost more than they bring
		grpc.WithInitialConnWindowSize(4 << 20),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxLastWord), grpc.MaxCallSendMsgSize(math.MaxInt32)), // each call has its own,
		grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, s grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			if method != wire.RunMethod {
				return nil, errUnused
			}
			return s(ctx, d, conn, method, o...)
		}),
		grpc.WithUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			return errUnused
		}),
	}
}

var errUnused = status.Error(codes.Unimplemented, "this host does not use it")

// maxMessage bounds one message of a plugin: a result, or an operation with a
// body.
func maxMessage(l manifest.Limits) int {
	return int(min(max(l.Output, l.HTTPBody)+maxOpHeader+maxLastWord, math.MaxInt32))
}

// service is the plugin as the library wants to have it.
type service struct {
	transport.NetRPCUnsupportedPlugin
}

func (*service) GRPCServer(*transport.GRPCBroker, *grpc.Server) error {
	return errors.New("the host is not a plugin")
}

func (*service) GRPCClient(_ context.Context, _ *transport.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// connect starts the process, and returns when it has answered at its address.
func (p *process) connect(ctx context.Context) error {
	if _, err := p.client.Start(); err != nil {
		return err
	}
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	conn, err := protocol.Dispense(wire.Name)
	if err != nil {
		return err
	}
	p.conn = conn.(*grpc.ClientConn)
	p.conn.Connect()
	for {
		s := p.conn.GetState()
		switch s {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			return p.refused()
		}
		if !p.conn.WaitForStateChange(ctx, s) {
			return context.Cause(ctx)
		}
	}
}

// refused is why the connection could not be made.
func (p *process) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusal != nil {
		return p.refusal
	}
	return errors.New("it does not speak gRPC where it says that it listens")
}

// dial makes the one connection to the plugin.
func (p *process) dial(ctx context.Context, _ string) (net.Conn, error) {
	p.mu.Lock()
	again := p.dialled
	p.dialled = true
	p.mu.Unlock()
	if again {
		return nil, errors.New("a plugin is dialled once")
	}
	outside, _ := p.guest.Serves()
	conn, err := dial(ctx, outside, p.address, p.guest.Pid())
	if err != nil {
		err = fmt.Errorf("the socket that it named, %q: %w", filepath.Base(p.address), err)
		p.mu.Lock()
		p.refusal = err
		p.mu.Unlock()
	}
	return conn, err
}

// launch starts the program in its cage.
func (p *process) launch(ctx context.Context, prog sandbox.Program) error {
	prog.Out, prog.Err = p.stdout.write, p.stderr.write
	inside, err := p.plan.start(ctx, prog, p.program.interpreters)
	p.stdout.started()
	p.stderr.started()
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.guest = inside
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		inside.Kill()
	}
	go func() {
		<-inside.Done()
		p.stdout.end()
		p.stderr.end()
	}()
	return nil
}

// stop ends the cage. It may be called at any time.
func (p *process) stop() {
	p.mu.Lock()
	g := p.guest
	if g != nil && !p.stopped {
		select {
		case <-g.Done():
			p.fell = true
		default:
		}
	}
	p.stopped = true
	p.mu.Unlock()
	if g != nil {
		g.Kill()
	}
}

// lastWords is how long is waited for the end of a process that seems to have
// ended.
const lastWords = 100 * time.Millisecond

// fallen reports whether the process has ended by itself.
func (p *process) fallen() bool {
	p.mu.Lock()
	g, stopped, fell := p.guest, p.stopped, p.fell
	p.mu.Unlock()
	if g == nil || stopped {
		return fell
	}
	select {
	case <-g.Done():
		return true
	case <-time.After(lastWords):
		return false
	}
}

// close ends the process and waits until nothing of it is left.
func (p *process) close() {
	p.stop()
	if p.guest != nil {
		_ = p.guest.Close() // what could not be removed is swept at the next start
	}
	p.stdout.end()
	p.stderr.end()
	if p.client != nil {
		p.client.Kill()
	}
}

// alive reports whether a call can be made.
func (p *process) alive() bool {
	select {
	case <-p.guest.Done():
		return false
	default:
		return p.conn.GetState() == connectivity.Ready
	}
}

// startError is what is said of a plugin that did not start.
func (p *process) startError(ctx context.Context, err error) error {
	var own *sdk.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSlow):
		return &sdk.Error{Kind: sdk.Guest, Op: "plugin.Start", What: "the plugin did not start: " + errSlow.Error(), Err: p.last(), Hint: hintStart}
	case ctx.Err() != nil:
		return executor.Ended(ctx)
	case errors.As(err, &own): // of the cage
		return err
	}
	what := "the plugin did not start: " + clip(err.Error(), 512)
	if p.fallen() {
		how, _ := p.over(lastWords)
		what = "the plugin " + how + " before it could be called"
	}
	return &sdk.Error{Kind: sdk.Guest, Op: "plugin.Start", What: what, Err: p.last(), Hint: hintStart}
}

const hintStart = "docs/plugin.md says how a plugin starts"

// over waits a little for the end of the process and says how it ended.
func (p *process) over(wait time.Duration) (how string, over bool) {
	select {
	case <-p.guest.Done():
	case <-time.After(wait):
		return "", false
	}
	s, err := p.guest.Wait()
	switch {
	case err != nil:
		return "ended: " + err.Error(), true
	case s.Signal != "":
		return "was ended by " + s.Signal, true
	}
	return fmt.Sprintf("exited with status %d", s.Exit), true
}

// last is what the plugin wrote to stderr last, as the cause of an error.
func (p *process) last() error {
	p.stderr.drain()
	if tail := p.stderr.last(); tail != "" {
		return errors.New(tail)
	}
	return nil
}

// enter makes c a call of p. After leave it hears nothing more.
func (p *process) enter(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
}

func (p *process) leave(c *call) {
	p.mu.Lock()
	p.calls = slices.DeleteFunc(p.calls, func(other *call) bool { return other == c })
	p.mu.Unlock()
	p.stdout.settle()
	p.stderr.settle()
}

// current is the call that output belongs to: which one wrote it cannot be
// told, so it is the one that began last, or nil.
func (p *process) current() *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) == 0 {
		return nil
	}
	return p.calls[len(p.calls)-1]
}

// clip bounds what a plugin said, on one line.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " "), "\uFFFD")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
