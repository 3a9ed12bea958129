package shell

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A command is what is to be run.
type command struct {
	path    string
	argv    []string
	dir     string
	env     []string
	stdin   string        // "" is /dev/null
	timeout time.Duration // 0: none but the context's
	out     *sink
}

// An outcome is how a command ended.
type outcome struct {
	code    int            // exit code; -1 if a signal ended the shell
	signal  syscall.Signal // that ended the shell, or 0
	timeout bool           // its time was over
	stopped *sdk.Stop      // somebody asked it to stop
	flooded bool           // it wrote more than it may
	strays  bool           // it left processes behind, which were ended
	took    time.Duration
}

// run runs a command, and returns when nothing of it is left. The end of ctx
// ends the command; that is no error.
func (s *shell) run(ctx context.Context, c command) (outcome, error) {
	began := time.Now()
	s.begin()
	defer s.end()
	pipes, err := open(c.stdin)
	if err != nil {
		return outcome{}, err
	}
	p := &process{shell: s, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel tells a child that its parent has died when the thread
		// that started it ends.
		lockThread()
		defer unlockThread()
		p.cmd = &exec.Cmd{Path: c.path, Args: c.argv, Dir: c.dir, Env: c.env,
			Stdin: pipes.stdin, Stdout: pipes.theirs[0], Stderr: pipes.theirs[1], SysProcAttr: ownSession()}
		err := s.start(p)
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the state says how it ended
			s.waited(p)
			close(p.ended)
		}
	}()
	err = <-started
	pipes.handedOver()
	if err != nil {
		pipes.close()
		return outcome{}, startError(err)
	}
	read := pipes.pump(c.stdin, c.out)
	o := p.supervise(ctx, c, read)
	select { // nobody can write any more: what is in the pipes is all there will be
	case <-read:
	case <-time.After(time.Second):
	}
	pipes.close()
	<-read
	o.code, o.signal = ending(p.cmd.ProcessState)
	o.took = time.Since(began)
	return o, nil
}

// startError says why a shell could not be started.
func startError(err error) error {
	e := &sdk.Error{Kind: sdk.Guest, What: "the command cannot be started", Err: err}
	switch {
	case errors.Is(err, syscall.E2BIG):
		e.Kind, e.Hint = sdk.Invalid, "the command or its environment is too long: write it to a file and run that"
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		e.Kind, e.Hint = sdk.Limit, "limits.processes or limits.memory of the skill is reached"
	case errors.Is(err, errors.ErrUnsupported):
		e.Kind = sdk.Unavailable
	}
	return e
}

// A process is the shell that runs a command.
type process struct {
	shell *shell
	cmd   *exec.Cmd
	ended chan struct{}
}

// supervise waits until the command ends or has to, ends whatever it left
// behind, and says what happened. read is closed when its output has ended.
func (p *process) supervise(ctx context.Context, c command, read <-chan struct{}) (o outcome) {
	var over <-chan time.Time
	if c.timeout > 0 {
		t := time.NewTimer(c.timeout)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-p.ended:
	case <-over:
		o.timeout = true
		p.stop(syscall.SIGTERM, lastMoments)
	case <-ctx.Done():
		if errors.As(context.Cause(ctx), &o.stopped) {
			// The host ends us after the same time, and wants to hear how it ended.
			p.stop(signalOf(o.stopped.Signal), max(o.stopped.Grace-lastMoments, o.stopped.Grace/2))
		} else {
			o.timeout = true
			p.stop(syscall.SIGTERM, lastMoments)
		}
	case <-c.out.full:
		o.flooded = true
		p.stop(syscall.SIGTERM, lastMoments)
	}
	<-p.ended
	// What the shell started may be about to end too, as the tee of ">(tee)" is.
	patience := time.Now().Add(lastMoments)
	for !closed(read) || !p.alone() {
		if time.Now().After(patience) {
			o.strays = true
			break
		}
		pause(read)
	}
	p.killAll()
	return o
}

// stop asks everything that the command started to end, and makes it when
// grace is over.
func (p *process) stop(sig syscall.Signal, grace time.Duration) {
	p.signalAll(sig)
	for end := time.Now().Add(grace); time.Now().Before(end); pause(p.ended) {
		if closed(p.ended) && p.alone() {
			return
		}
	}
	p.killAll()
}

// pause waits a moment, or until c is closed.
func pause(c <-chan struct{}) {
	if closed(c) {
		time.Sleep(5 * time.Millisecond)
		return
	}
	select {
	case <-c:
	case <-time.After(5 * time.Millisecond):
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pipes are the ends of a command's standard streams.
type pipes struct {
	stdin  *os.File    // the command's
	input  *os.File    // ours, or nil
	ours   [2]*os.File // of stdout and stderr
	theirs [2]*os.File
	writer sync.WaitGroup // of input
}

func open(stdin string) (*pipes, error) {
	p := new(pipes)
	var err error
	if stdin == "" {
		p.stdin, err = os.Open(os.DevNull)
	} else {
		p.stdin, p.input, err = os.Pipe()
	}
	for i := range p.ours {
		if err == nil {
			p.ours[i], p.theirs[i], err = os.Pipe()
		}
	}
	if err != nil {
		p.handedOver()
		p.close()
		return nil, &sdk.Error{Kind: sdk.Limit, What: "no pipes for the command", Err: err}
	}
	return p, nil
}

// handedOver closes the ends that the command has.
func (p *pipes) handedOver() {
	for _, f := range []*os.File{p.stdin, p.theirs[0], p.theirs[1]} {
		f.Close() // nil is an error that does not count
	}
}

// close closes our ends: nothing is read or written any more.
func (p *pipes) close() {
	for _, f := range []*os.File{p.input, p.ours[0], p.ours[1]} {
		f.Close()
	}
	p.writer.Wait()
}

// pump feeds the command and reads its output. The channel is closed when both
// streams have ended.
func (p *pipes) pump(stdin string, out *sink) <-chan struct{} {
	if p.input != nil {
		p.writer.Go(func() {
			_, _ = p.input.WriteString(stdin) // the command may not care for all of it
			p.input.Close()
		})
	}
	var readers sync.WaitGroup
	for i, f := range p.ours {
		readers.Go(func() {
			b := make([]byte, 64<<10)
			for {
				n, err := f.Read(b)
				if n > 0 {
					out.write(i, b[:n])
				}
				if err != nil {
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { readers.Wait(); close(done) }()
	return done
}
