package shell

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

const backgroundAbout = `Execute a bash command in the background: returns with a task_id after a second at most, or with the result of a command that has ended by then. ` +
	`The command goes on, confined as with Bash, until it ends, is killed, or its time is over. ReadBgOutput reads what it writes, KillBgTask ends it.`

type backgroundArgs struct {
	Command     string `json:"command" doc:"The bash command to execute" minlen:"1"`
	Cwd         string `json:"cwd,omitempty" doc:"Directory to run in, absolute or relative to the workspace (default: the workspace)" maxlen:"4096"`
	Description string `json:"description,omitempty" doc:"What the command does, in a few words, for people" maxlen:"1024"`
	Timeout     *int64 `json:"timeout_ms,omitempty" doc:"Milliseconds after which the command is ended (default 1800000, at most 7200000)" min:"1"`
}

// An end is what the result of a job says of how its command ended. It is in
// the results of Bash and of BackgroundBash alike.
type end struct {
	ExitCode *int   `json:"exit_code,omitempty" doc:"Exit code of the shell, once it has ended"`
	Signal   string `json:"signal,omitempty" doc:"The signal that ended the shell, such as SIGTERM"`
	TimedOut bool   `json:"timed_out,omitempty" doc:"The command was ended because its time was over"`
}

type backgroundOutput struct {
	TaskID      int64     `json:"task_id" doc:"For ReadBgOutput and KillBgTask"`
	Status      string    `json:"status" doc:"running, exited, killed, timed_out or lost"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	LogURI      string    `json:"log_uri,omitempty" doc:"Where the output is kept"`
	LogPath     string    `json:"log_path,omitempty" doc:"The file in which it is kept, on the host"`
	EarlyOutput string    `json:"early_output,omitempty" doc:"What it wrote in the first second"`
	end
	Notes []string `json:"notes,omitempty"`
}

// background is the tool BackgroundBash.
func (s *shell) background(c *guest.Call, in backgroundArgs) (guest.Reply[backgroundOutput], error) {
	var none guest.Reply[backgroundOutput]
	timeout, note, err := span("timeout_ms", in.Timeout, defaultJobTime, maxJobTime)
	if err != nil {
		return none, err
	}
	args := bashArgs{Command: in.Command, Cwd: in.Cwd, Description: in.Description}
	if c.Job() != 0 {
		return s.job(c, args, timeout)
	}
	r, err := s.prepare(c, args) // what is wrong with the arguments is to be said now
	if err != nil {
		return none, err
	}
	r.note(note)
	started, err := launch(c, in, title(args), timeout)
	if err != nil {
		return none, err
	}
	j := started.job
	out := backgroundOutput{TaskID: j.ID, Status: j.Status, StartedAt: j.StartedAt, LogURI: j.URI, LogPath: j.Path, EarlyOutput: started.output, end: endOf(j), Notes: r.notes}
	return guest.Reply[backgroundOutput]{Text: started.text(out.Notes), Structured: out, Failed: started.failed(), Whole: true, Content: link(j.URI, j.Bytes)}, nil
}

// job is the second run of BackgroundBash: the command itself.
func (s *shell) job(c *guest.Call, in bashArgs, timeout time.Duration) (guest.Reply[backgroundOutput], error) {
	var none guest.Reply[backgroundOutput]
	r, err := s.prepare(c, in)
	if err != nil {
		return none, err
	}
	if r.outcome, err = s.run(c.Context(), r.command); err != nil {
		return none, err
	}
	whole, err := r.reply(c, timeout)
	o := whole.Structured
	return guest.Reply[backgroundOutput]{Text: whole.Text, Failed: whole.Failed, Whole: true,
		Structured: backgroundOutput{TaskID: c.Job(), Status: "exited", end: end{o.ExitCode, o.Signal, o.TimedOut}, Notes: o.Notes}}, err
}

// title is what people see of a command in a list of jobs.
func title(in bashArgs) string {
	t := in.Description
	if t == "" {
		t, _, _ = strings.Cut(strings.TrimSpace(in.Command), "\n")
	}
	return string(first([]byte(strings.ToValidUTF8(t, "\ufffd")), 200, 1))
}

// A launched job with its first moments.
type launched struct {
	job    guest.Job
	output string
}

// fastFail is how long the start of a job is watched, so that a command that
// fails at once is seen to fail.
const fastFail = time.Second

// launch runs the tool that c calls again, as a job.
func launch(c *guest.Call, args any, title string, timeout time.Duration) (launched, error) {
	j, err := c.StartJob(args, guest.JobOptions{Description: title, Timeout: timeout})
	if err != nil {
		return launched{}, err
	}
	var early rendered
	early.begin()
	var cursor int64
	for until := time.Now().Add(fastFail); ; {
		out, err := c.ReadJob(j.ID, guest.JobRead{Cursor: &cursor, Max: maxRead, Wait: max(time.Until(until), 0)})
		if err != nil { // it runs all the same, and its id is what counts
			break
		}
		j, cursor = out.Job, out.Next
		early.write(out.Data)
		if out.EOF || time.Now().After(until) {
			break
		}
	}
	return launched{j, early.end()}, nil
}

// failed reports whether the job has failed already.
func (l launched) failed() bool {
	e := endOf(l.job)
	return l.job.Status != "running" && (e.ExitCode == nil || *e.ExitCode != 0)
}

func (l launched) text(notes []string) string {
	var b strings.Builder
	b.WriteString(l.output)
	if l.output != "" && !strings.HasSuffix(l.output, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "[background task %d: %s", l.job.ID, state(l.job))
	if l.job.Status == "running" {
		fmt.Fprintf(&b, "; read it with ReadBgOutput, end it with KillBgTask")
	}
	b.WriteString("]\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "[%s]\n", n)
	}
	return b.String()
}

// endOf reads how the command of a job ended from the job's result.
func endOf(j guest.Job) (e end) {
	if json.Unmarshal(j.Result, &e) != nil {
		return end{} // a text
	}
	return e
}

// state says of a job what there is to say.
func state(j guest.Job) string {
	s := j.Status
	switch e := endOf(j); {
	case e.ExitCode != nil:
		s += " with code " + strconv.Itoa(*e.ExitCode)
	case e.Signal != "":
		s += " by " + e.Signal
	case j.Error != "": // it did not come to run
		line, _, _ := strings.Cut(strings.TrimSpace(j.Error), "\n")
		s += ": " + line
	}
	return s
}

// rendered makes text of the output of a job, or says that it is none.
type rendered struct {
	plain  plain
	text   clip
	bytes  int64
	binary bool
}

func (r *rendered) begin() { r.plain.emit = r.text.write }

func (r *rendered) write(raw []byte) {
	r.binary = r.binary || r.bytes == 0 && isBinary(raw)
	r.bytes += int64(len(raw))
	r.plain.write(raw)
}

func (r *rendered) end() string {
	if r.binary {
		return fmt.Sprintf("[binary output, %d bytes]\n", r.bytes)
	}
	r.plain.flush()
	s, _ := r.text.show(maxRunes, maxLines)
	return s
}

// noTask says so where the host does not know the task. It is the argument
// that is wrong, and not the name of a tool.
func noTask(id taskID, err error) error {
	if sdk.KindOf(err) == sdk.NotFound {
		return invalid(fmt.Sprintf("there is no background task %d", id), "ListBgTasks lists them")
	}
	return err
}

// A taskID is a number. Clients that hold it as text may say "7".
type taskID int64

// UnmarshalJSON reads 7 or "7".
func (t *taskID) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(b) > 1 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || s[0] == '+' {
		return fmt.Errorf("task_id: %s is not the number of a task", b)
	}
	*t = taskID(n)
	return nil
}

// MarshalJSON writes 7. It is here so that the schema asks for no one type.
func (t taskID) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(t), 10), nil }
