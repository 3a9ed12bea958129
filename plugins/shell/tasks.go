package shell

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

const readAbout = `Read new output from a background task: what it wrote since the last read, or from "cursor" on, in whole lines, at most 30000 characters a call. ` +
	`With wait_ms the call waits for output instead of returning without any. It also reads the kept output of a Bash call (output_id).`

type readArgs struct {
	TaskID taskID `json:"task_id" doc:"The task ID returned by BackgroundBash: an integer"`
	Cursor *int64 `json:"cursor,omitempty" doc:"Where to begin, in bytes from the start of the output (default: where the last read ended)" min:"0"`
	WaitMS int64  `json:"wait_ms,omitempty" doc:"How long to wait for output if there is none yet" min:"0" max:"30000"`
	Filter string `json:"filter,omitempty" doc:"Only lines that this regular expression (RE2) matches" maxlen:"1000"`
	Tail   int    `json:"tail_lines,omitempty" doc:"Only the last so many lines of what is new; what is before them counts as read" min:"1" max:"2000"`
}

type readOutput struct {
	TaskID    int64  `json:"task_id"`
	Status    string `json:"status" doc:"running, exited, killed, timed_out or lost"`
	Output    string `json:"output"`
	Cursor    int64  `json:"cursor" doc:"Where this output begins, in bytes from the start"`
	Next      int64  `json:"next_cursor" doc:"The cursor of what follows"`
	Dropped   int64  `json:"dropped_bytes" doc:"Bytes that were asked for and are no longer kept"`
	EOF       bool   `json:"eof" doc:"The task has ended and everything was read"`
	RuntimeMS int64  `json:"runtime_ms"`
	end
}

const (
	minRead = 16 // what job.read returns at a time, bytes
	maxRead = 1 << 20
	maxWait = 30 * time.Second
	maxScan = 64 << 20 // bytes that one call looks through for a filter or a tail
)

// read is the tool ReadBgOutput.
func (s *shell) read(c *guest.Call, in readArgs) (guest.Reply[readOutput], error) {
	var none guest.Reply[readOutput]
	r := reading{lines: in.Tail}
	var err error
	if r.match, err = regexp.Compile(in.Filter); err != nil {
		return none, invalid("filter: "+err.Error(), "")
	}
	if in.WaitMS < 0 || in.Cursor != nil && *in.Cursor < 0 || in.Tail < 0 || in.Tail > maxLines {
		return none, invalid("wait_ms, cursor and tail_lines count from 0", "")
	}
	r.all = in.Filter == "" && in.Tail == 0
	wait := min(time.Duration(in.WaitMS)*time.Millisecond, maxWait)
	defer beat(c, wait, func() string { return "waiting for output" })()
	j, err := r.from(c, in, wait)
	if err == nil && in.Cursor != nil {
		err = r.catchUp(c, *in.Cursor, &j)
	}
	if err != nil {
		return none, noTask(in.TaskID, err)
	}
	r.plain.flush()
	out := readOutput{TaskID: int64(in.TaskID), Status: j.Status, Output: r.text(), Cursor: r.cursor, Next: j.Next, Dropped: r.dropped, EOF: j.EOF, RuntimeMS: ran(j.Job).Milliseconds(), end: endOf(j.Job)}
	text := out.Output
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += fmt.Sprintf("[task %d: %s; next cursor %d", in.TaskID, state(j.Job), out.Next)
	if more := j.Bytes - out.Next; more > 0 && out.Next == out.Cursor {
		text += fmt.Sprintf(", an unfinished line of %d bytes follows", more)
	} else if more > 0 {
		text += fmt.Sprintf(", %d bytes follow", more)
	}
	if out.Dropped > 0 {
		text += fmt.Sprintf(", %d bytes are no longer kept", out.Dropped)
	}
	return guest.Reply[readOutput]{Text: text + "]\n", Structured: out}, nil
}

// A reading collects what one call of ReadBgOutput returns.
type reading struct {
	match *regexp.Regexp
	lines int  // only the last so many; 0: all
	all   bool // neither is asked for

	kept    []string
	size    int // bytes of kept
	binary  int64
	scanned int64
	cursor  int64
	dropped int64
	plain   plain
}

// from reads until there is something to return, or nothing to wait for.
func (r *reading) from(c *guest.Call, in readArgs, wait time.Duration) (out guest.JobOutput, err error) {
	r.plain.emit = r.line
	until := time.Now().Add(wait)
	at := in.Cursor
	for begin := true; ; begin = false {
		q := guest.JobRead{Cursor: at, Max: maxRunes - r.size}
		if r.lines > 0 {
			q.Max = maxRead
		}
		if r.size == 0 {
			q.Wait = max(time.Until(until), 0)
		}
		if out, err = c.ReadJob(int64(in.TaskID), q); err != nil {
			return out, err
		}
		if begin {
			r.cursor = out.Cursor
		}
		r.dropped += out.Dropped
		r.take(out.Data)
		if at != nil {
			at = &out.Next
		}
		if out.EOF || r.enough(out) || len(out.Data) == 0 && !time.Now().Before(until) {
			return out, nil
		}
		if len(out.Data) == 0 {
			time.Sleep(20 * time.Millisecond) // the host did not wait as long as it was to
		}
	}
}

// catchUp makes what was read from cursor on count as read, if it goes on from
// where the last read ended: who pages with cursors and then does without is
// not told the same twice. To read again what was read changes nothing.
func (r *reading) catchUp(c *guest.Call, cursor int64, out *guest.JobOutput) error {
	at := out.Bytes - out.Unread // where this session's last read ended
	for at >= cursor && at < out.Next {
		left := out.Next - max(at, r.cursor) // nothing is kept of what is between them
		more, err := c.ReadJob(out.ID, guest.JobRead{Max: int(min(max(left, minRead), maxRead))})
		if err != nil || len(more.Data) == 0 {
			return err
		}
		if at = more.Next; at > out.Next { // it came meanwhile
			r.take(more.Data[max(int64(len(more.Data))-(at-out.Next), 0):])
			*out = more
		}
	}
	return nil
}

// enough reports whether to return what there is.
func (r *reading) enough(out guest.JobOutput) bool {
	if r.scanned += int64(len(out.Data)); r.scanned >= maxScan {
		return true
	}
	if r.all && len(out.Data) > 0 {
		return true
	}
	more := out.Next < out.Bytes && len(out.Data) > 0 // else an unfinished line
	return r.size > 0 && (!more || r.lines == 0 && maxRunes-r.size < 1<<10)
}

func (r *reading) take(data []byte) {
	if r.binary > 0 || isBinary(data) {
		r.binary += int64(len(data))
		return
	}
	r.plain.write(data)
}

// line takes a line, or a part of a long one.
func (r *reading) line(b []byte) {
	if !r.all && !r.match.Match(b[:len(b)-trailing(b)]) {
		return
	}
	r.kept = append(r.kept, string(b))
	r.size += len(b)
	for r.lines > 0 && (len(r.kept) > r.lines || r.size > maxRunes && len(r.kept) > 1) {
		r.size -= len(r.kept[0])
		r.kept = r.kept[1:]
	}
}

// trailing is the length of the newline that b ends with.
func trailing(b []byte) int {
	if len(b) > 0 && b[len(b)-1] == '\n' {
		return 1
	}
	return 0
}

func (r *reading) text() string {
	s := strings.Join(r.kept, "")
	if r.binary > 0 {
		s += fmt.Sprintf("[binary output, %d bytes]\n", r.binary)
	}
	return s
}

// ran is how long a job has run.
func ran(j guest.Job) time.Duration {
	if j.StartedAt.IsZero() {
		return 0
	}
	until := j.EndedAt
	if until.IsZero() {
		until = time.Now()
	}
	return max(until.Sub(j.StartedAt), 0)
}

const listAbout = `List all background tasks of this workspace with their status and runtime, newest last.`

type listArgs struct {
	Status string `json:"status,omitempty" doc:"Only tasks in this state" enum:"running,exited,killed,timed_out,lost"`
}

type listed struct {
	TaskID      int64     `json:"task_id"`
	Command     string    `json:"command"`
	Description string    `json:"description,omitempty"`
	Status      string    `json:"status" doc:"running, exited, killed, timed_out or lost"`
	StartedAt   time.Time `json:"started_at"`
	RuntimeMS   int64     `json:"runtime_ms"`
	Bytes       int64     `json:"bytes" doc:"Of output so far"`
	Unread      int64     `json:"unread_bytes" doc:"Of these, what ReadBgOutput has not returned yet"`
	end
}

type listOutput struct {
	Tasks []listed `json:"tasks"`
}

// list is the tool ListBgTasks.
func (s *shell) list(c *guest.Call, in listArgs) (guest.Reply[listOutput], error) {
	jobs, err := c.Jobs()
	if err != nil {
		return guest.Reply[listOutput]{}, err
	}
	var out listOutput
	var b strings.Builder
	for _, j := range jobs {
		if in.Status != "" && j.Status != in.Status {
			continue
		}
		var args struct {
			Command     string `json:"command"`
			Description string `json:"description"`
		}
		_ = json.Unmarshal(j.Args, &args) // they were checked when it started
		t := listed{TaskID: j.ID, Command: args.Command, Description: args.Description, Status: j.Status, StartedAt: j.StartedAt, RuntimeMS: ran(j).Milliseconds(), Bytes: j.Bytes, Unread: j.Unread, end: endOf(j)}
		out.Tasks = append(out.Tasks, t)
		fmt.Fprintf(&b, "%d  %s  %v  %d bytes, %d unread  %s\n", t.TaskID, state(j), ran(j).Round(time.Second), t.Bytes, t.Unread, title(bashArgs{Command: t.Command, Description: t.Description}))
	}
	if len(out.Tasks) == 0 {
		b.WriteString("no background tasks\n")
	}
	return guest.Reply[listOutput]{Text: b.String(), Structured: out}, nil
}

const killAbout = `Kill a running background task by ID, with everything that it has started: by a signal first, and by force when the grace is over.`

type killArgs struct {
	TaskID taskID `json:"task_id" doc:"The task ID to kill: an integer"`
	Signal string `json:"signal,omitempty" doc:"The signal to begin with" enum:"TERM,INT,HUP,KILL" default:"TERM"`
	Grace  int64  `json:"grace_ms,omitempty" doc:"Milliseconds until it is ended by force" min:"0" max:"60000" default:"2000"`
}

type killOutput struct {
	TaskID int64  `json:"task_id"`
	Was    string `json:"was" doc:"The status before"`
	Status string `json:"status" doc:"The status now: running, exited, killed, timed_out or lost"`
	end
}

// kill is the tool KillBgTask.
func (s *shell) kill(c *guest.Call, in killArgs) (guest.Reply[killOutput], error) {
	var none guest.Reply[killOutput]
	if in.Grace < 0 || in.Grace > time.Minute.Milliseconds() {
		return none, invalid("grace_ms: want 0 to 60000", "")
	}
	jobs, err := c.Jobs()
	if err != nil {
		return none, err
	}
	out := killOutput{TaskID: int64(in.TaskID)}
	for _, j := range jobs {
		if j.ID == out.TaskID {
			out.Was = j.Status
		}
	}
	j, err := c.KillJob(out.TaskID, in.Signal, time.Duration(in.Grace)*time.Millisecond)
	if err != nil {
		return none, noTask(in.TaskID, err)
	}
	out.Status, out.end = j.Status, endOf(j)
	if out.Was == "" { // it ended so long ago that it is not listed
		out.Was = j.Status
	}
	text := fmt.Sprintf("background task %d: %s", out.TaskID, state(j))
	if out.Was != "running" {
		text += ", before it was to be killed"
	}
	return guest.Reply[killOutput]{Text: text + "\n", Structured: out}, nil
}
