package shell

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

const bashAbout = `Execute a bash command in the workspace and return its output and exit code. Each call is a new shell: the directory and variables of an earlier call are gone. ` +
	`It runs confined: the machine can be read but for places where secrets are, the workspace, $HOME and /tmp can be written (/tmp is new in each call), and there is no network unless the operator has opened it. ` +
	`Nothing that the command starts outlives it; use BackgroundBash or run_in_background for servers and long work. Long output is cut in the middle and kept in full.`

type bashArgs struct {
	Command     string            `json:"command" doc:"The bash command to execute" minlen:"1"`
	Timeout     *int64            `json:"timeout,omitempty" doc:"Timeout in milliseconds (default 30000, at most 600000; in the background default 1800000, at most 7200000)" min:"1"`
	Cwd         string            `json:"cwd,omitempty" doc:"Directory to run in, absolute or relative to the workspace (default: the workspace)" maxlen:"4096"`
	Description string            `json:"description,omitempty" doc:"What the command does, in a few words, for people" maxlen:"1024"`
	Env         map[string]string `json:"env,omitempty" doc:"Environment variables to set"`
	Stdin       string            `json:"stdin,omitempty" doc:"Text for the command's standard input (default: none)"`
	Background  bool              `json:"run_in_background,omitempty" doc:"Return at once with background_task_id; ReadBgOutput then reads the output"`
}

type truncation struct {
	Omitted int64 `json:"bytes_omitted" doc:"Bytes of the text that are left out"`
}

type bashOutput struct {
	ExitCode   *int        `json:"exit_code,omitempty" doc:"Exit code of the shell; absent if a signal ended it or it runs in the background"`
	Signal     string      `json:"signal,omitempty" doc:"The signal that ended the shell, such as SIGKILL"`
	TimedOut   bool        `json:"timed_out" doc:"The command was ended because its time was over"`
	DurationMS int64       `json:"duration_ms"`
	Stdout     string      `json:"stdout" doc:"Text of standard output"`
	Stderr     string      `json:"stderr" doc:"Text of standard error"`
	Truncated  *truncation `json:"truncated,omitempty" doc:"Present if not all of the output is shown"`
	OutputURI  string      `json:"output_uri,omitempty" doc:"Where all of the output is kept"`
	OutputPath string      `json:"output_path,omitempty" doc:"The file in which it is kept, on the host"`
	OutputID   int64       `json:"output_id,omitempty" doc:"The task_id with which ReadBgOutput reads it"`
	Cwd        string      `json:"cwd" doc:"The directory that the command started in"`
	Shell      string      `json:"shell,omitempty" doc:"The shell that ran the command, if it was not bash"`
	TaskID     int64       `json:"background_task_id,omitempty" doc:"The task that runs the command in the background"`
	ExitNote   string      `json:"exit_note,omitempty" doc:"What the exit code means"`
	Notes      []string    `json:"notes,omitempty" doc:"What else is worth knowing of the run"`
}

// bash is the tool Bash.
func (s *shell) bash(c *guest.Call, in bashArgs) (guest.Reply[bashOutput], error) {
	var none guest.Reply[bashOutput]
	standard, most := defaultTimeout, maxTimeout
	if in.Background {
		standard, most = defaultJobTime, maxJobTime
	}
	timeout, note, err := span("timeout", in.Timeout, standard, most)
	if err != nil {
		return none, err
	}
	if in.Background && c.Job() == 0 {
		return s.bashLater(c, in, timeout, note)
	}
	r, err := s.prepare(c, in)
	if err != nil {
		return none, err
	}
	r.note(note)
	if c.Job() == 0 {
		r.command.timeout = timeout // that of a job is the host's
		defer beat(c, timeout, func() string { return fmt.Sprintf("%d bytes of output", r.sink.written()) })()
		defer showing(c, r.sink)()
	}
	if r.outcome, err = s.run(c.Context(), r.command); err != nil {
		return none, err
	}
	return r.reply(c, timeout)
}

// bashLater starts the command as a job.
func (s *shell) bashLater(c *guest.Call, in bashArgs, timeout time.Duration, note string) (guest.Reply[bashOutput], error) {
	r, err := s.prepare(c, in) // what is wrong with the arguments is to be said now
	if err != nil {
		return guest.Reply[bashOutput]{}, err
	}
	r.note(note)
	started, err := launch(c, in, title(in), timeout)
	if err != nil {
		return guest.Reply[bashOutput]{}, err
	}
	j, e := started.job, endOf(started.job)
	out := bashOutput{Stdout: started.output, TaskID: j.ID, OutputURI: j.URI, OutputPath: j.Path, OutputID: j.ID, Cwd: r.command.dir,
		ExitCode: e.ExitCode, Signal: e.Signal, TimedOut: e.TimedOut, Notes: r.notes}
	return guest.Reply[bashOutput]{Text: started.text(out.Notes), Structured: out, Failed: started.failed(), Whole: true, Content: link(j.URI, j.Bytes)}, nil
}

// span reads a number of milliseconds. The note says that it was too much.
func span(name string, ms *int64, standard, most time.Duration) (d time.Duration, note string, err error) {
	if ms == nil {
		return standard, "", nil
	}
	if *ms < 1 {
		return 0, "", invalid(fmt.Sprintf("%s: %d is not a time", name, *ms), "milliseconds, at least 1")
	}
	if *ms > most.Milliseconds() {
		return most, fmt.Sprintf("%s %d ms is more than allowed: it is %d ms", name, *ms, most.Milliseconds()), nil
	}
	return time.Duration(*ms) * time.Millisecond, "", nil
}

// A run is one command from its arguments to its result.
type run struct {
	args    bashArgs
	shell   interpreter
	sink    *sink
	command command
	outcome outcome
	notes   []string
}

func (r *run) note(s string) {
	if s != "" {
		r.notes = append(r.notes, s)
	}
}

// prepare turns the arguments into a command.
func (s *shell) prepare(c *guest.Call, in bashArgs) (*run, error) {
	if strings.TrimSpace(in.Command) == "" || strings.ContainsRune(in.Command, 0) {
		return nil, invalid("command: there is nothing to run", "a command line for bash, without NUL characters")
	}
	r := &run{args: in}
	var err error
	if r.shell, err = findShell(); err != nil {
		return nil, err
	}
	r.sink = newSink(c.Output(), s.limit, c.Job() != 0)
	r.command = command{path: r.shell.path, argv: append(r.shell.argv, "-c", in.Command), stdin: in.Stdin, out: r.sink}
	if r.command.env, err = environ(c, in.Env); err != nil {
		return nil, err
	}
	var note string
	r.command.dir, note, err = workDir(c.Scope().Workspace, in.Cwd)
	r.note(note)
	return r, err
}

// reply is the result of a command that has ended.
func (r *run) reply(c *guest.Call, timeout time.Duration) (guest.Reply[bashOutput], error) {
	seen, logErr := r.sink.finish()
	o := &r.outcome
	out := bashOutput{TimedOut: o.timeout, DurationMS: o.took.Milliseconds(), Stdout: seen.stdout, Stderr: seen.stderr, Cwd: r.command.dir}
	if r.shell.name != "bash" {
		out.Shell = r.shell.name
	}
	if seen.omitted > 0 {
		out.Truncated = &truncation{seen.omitted}
	}
	reply := guest.Reply[bashOutput]{Whole: true}
	switch {
	case logErr != nil:
		r.note("the output could not be kept: " + logErr.Error())
	case seen.kept && c.Job() == 0:
		o, err := c.OutputLink()
		if err != nil {
			r.note("the output could not be kept: " + err.Error())
			break
		}
		out.OutputURI, out.OutputPath, out.OutputID = o.URI, o.Path, o.ID
		reply.Content = link(o.URI, o.Bytes)
		r.note(fmt.Sprintf("all of the output: ReadBgOutput with task_id %d and cursor 0", o.ID))
	}
	benign := r.ended(&out, seen, timeout)
	out.Notes = r.notes
	reply.Failed = !benign
	reply.Text, reply.Structured = r.text(out, seen), out
	return reply, nil
}

// ended says how the command ended, and reports whether all is well.
func (r *run) ended(out *bashOutput, seen shown, timeout time.Duration) bool {
	o := &r.outcome
	benign := true
	if o.signal != 0 {
		out.Signal, benign = signalName(o.signal), false
		if o.signal == syscall.SIGKILL && !o.timeout && o.stopped == nil && !o.flooded {
			r.note("nothing here has sent SIGKILL: it may have used more memory than it may")
		}
	} else {
		out.ExitCode = &o.code
		out.ExitNote, benign = exitNote(r.args.Command, o.code, seen.stderr == "")
	}
	switch {
	case o.timeout:
		benign = false
		r.note(fmt.Sprintf("it was ended after %d ms: its time was over (timeout %d ms); what it had written is above", o.took.Milliseconds(), timeout.Milliseconds()))
	case o.stopped != nil:
		benign = false
		r.note("it was asked to stop by SIG" + o.stopped.Signal)
	case o.flooded:
		benign = false
		r.note(fmt.Sprintf("it was ended because it had written %d bytes", r.sink.limit))
	case o.strays:
		r.note("processes that it left running were ended: use BackgroundBash for what is to go on")
	}
	return benign
}

// text renders a result for a model.
func (r *run) text(out bashOutput, seen shown) string {
	var b strings.Builder
	b.WriteString(seen.text)
	if r.sink.job {
		fmt.Fprintf(&b, "%d bytes of output\n", r.sink.total)
	} else if seen.text == "" {
		b.WriteString("(no output)\n")
	} else if !strings.HasSuffix(seen.text, "\n") {
		b.WriteByte('\n')
	}
	switch {
	case out.ExitNote != "":
		fmt.Fprintf(&b, "[%s]\n", out.ExitNote)
	case out.Signal != "":
		fmt.Fprintf(&b, "[ended by %s]\n", out.Signal)
	case *out.ExitCode != 0:
		fmt.Fprintf(&b, "[exit code %d]\n", *out.ExitCode)
	}
	if out.Shell != "" {
		fmt.Fprintf(&b, "[there is no bash here: %s ran it]\n", out.Shell)
	}
	for _, n := range out.Notes {
		fmt.Fprintf(&b, "[%s]\n", n)
	}
	return b.String()
}

// link points to a log.
func link(uri string, size int64) []sdk.Content {
	if uri == "" {
		return nil
	}
	return []sdk.Content{{Type: sdk.TypeResourceLink, URI: uri, Name: uri[strings.LastIndexByte(uri, '/')+1:], Title: "Output of the command", MIME: "text/plain", Size: size}}
}

// pulse is how often a call says that it goes on.
const pulse = 8 * time.Second

// glance is how often a call passes on what its command has written since.
const glance = time.Second

// showing passes on what a command writes while it runs, until the function
// that it returns is called.
func showing(c *guest.Call, s *sink) (stop func()) {
	return every(glance, func() {
		if text := s.unseen(); text != "" {
			_ = c.Partial(guest.Text(text)) // the result has it all
		}
	})
}

// beat reports progress until the function that it returns is called.
func beat(c *guest.Call, total time.Duration, what func() string) (stop func()) {
	began := time.Now()
	return every(pulse, func() {
		ran := time.Since(began).Round(time.Second)
		c.Progress(ran.Seconds(), total.Seconds(), fmt.Sprintf("running for %v: %s", ran, what()))
	})
}

// every calls do at that pace, until the function that it returns is called.
func every(pace time.Duration, do func()) (stop func()) {
	done := make(chan struct{})
	var goes sync.WaitGroup
	goes.Go(func() {
		t := time.NewTicker(pace)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				do()
			}
		}
	})
	return func() { close(done); goes.Wait() }
}
