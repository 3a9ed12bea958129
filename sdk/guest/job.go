package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Job is a run of a tool that goes on after the call that started it has
// ended: the same tool is called again with other arguments, and Call.Job says
// which job it is. Jobs belong to the skill, the caller and the workspace.
type Job struct {
	ID          int64           `json:"id"`     // counted per caller and workspace
	Status      string          `json:"status"` // "running", "exited", "killed", "timed_out" or "lost"
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	StartedAt   time.Time       `json:"started_at,omitzero"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	Bytes       int64           `json:"bytes"`            // of output, in all
	Unread      int64           `json:"unread"`           // of these, what this session has not read
	URI         string          `json:"uri,omitempty"`    // of the output, "skill-output://17"
	Path        string          `json:"path,omitempty"`   // the file with the end of the output
	Result      json.RawMessage `json:"result,omitempty"` // its structured content, or its text as a JSON string
	Error       string          `json:"failure,omitempty"`
}

// JobOptions say more about a job that is started.
type JobOptions struct {
	Description string        // for people, up to 1 KiB
	Timeout     time.Duration // 0: the tool's max_timeout, which bounds it anyway
}

// JobRead says what to read of a job's output.
type JobRead struct {
	Cursor *int64        // where to begin; nil: where this session's last read ended
	Max    int           // bytes; 0: the host chooses
	Wait   time.Duration // for output, if there is none yet
}

// JobOutput is a piece of a job's output. It ends with a whole line unless the
// line is longer than Max or the output ends there.
type JobOutput struct {
	Job
	Data    []byte `json:"-"`
	Cursor  int64  `json:"cursor"`  // where Data begins, bytes from the start of the output
	Next    int64  `json:"next"`    // the Cursor of what follows
	Dropped int64  `json:"dropped"` // bytes before Data that were asked for and are no longer kept
	EOF     bool   `json:"eof"`     // the job has ended, and nothing follows
}

// Output is where the output of a call is kept.
type Output struct {
	ID    int64  `json:"id"` // for ReadJob
	URI   string `json:"uri"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Job returns the id of the job that this run is, or 0: then it is a call that
// somebody waits for.
func (c *Call) Job() int64 { return c.in.Job }

// Proxy returns the URL of the proxy that programs which a native tool runs
// reach the network by, or "" if the call has no network.
func (c *Call) Proxy() string { return c.in.Proxy }

// StartJob runs this call's tool again, with args, which encode as a JSON
// object, and returns at once. Its Context ends with cause *sdk.Stop when
// somebody asks it to stop. A job may start no jobs.
func (c *Call) StartJob(args any, o JobOptions) (Job, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return Job{}, fmt.Errorf("job.start: %w", err)
	}
	if args == nil {
		raw = nil
	}
	var j Job
	_, err = c.do("job.start", struct {
		Args        json.RawMessage `json:"args,omitempty"`
		Description string          `json:"description,omitempty"`
		Timeout     int64           `json:"timeout_ms,omitempty"`
	}{raw, o.Description, atLeastOne(o.Timeout)}, &j)
	return j, err
}

// atLeastOne is d in milliseconds; what is more than nothing stays so.
func atLeastOne(d time.Duration) int64 {
	if d > 0 && d < time.Millisecond {
		return 1
	}
	return d.Milliseconds()
}

// Jobs lists the skill's jobs: those that run, and those that ended lately, by
// id.
func (c *Call) Jobs() ([]Job, error) {
	var reply struct {
		Jobs []Job `json:"jobs"`
	}
	_, err := c.do("job.list", nil, &reply)
	return reply.Jobs, err
}

// ReadJob reads the output of a job, or of a call that has kept its own
// (OutputLink).
func (c *Call) ReadJob(id int64, r JobRead) (JobOutput, error) {
	var out JobOutput
	blobs, err := c.do("job.read", struct {
		ID     int64  `json:"id"`
		Cursor *int64 `json:"cursor,omitempty"`
		Max    int    `json:"max_bytes,omitempty"`
		Wait   int64  `json:"wait_ms,omitempty"`
	}{id, r.Cursor, r.Max, atLeastOne(r.Wait)}, &out)
	if err == nil && len(blobs) > 0 {
		out.Data = blobs[0]
	}
	return out, err
}

// KillJob asks a job to stop with signal "TERM" (what "" means), "INT" or
// "HUP", ends it by force after grace, and returns it as it is then. "KILL"
// ends it at once.
func (c *Call) KillJob(id int64, signal string, grace time.Duration) (Job, error) {
	var j Job
	_, err := c.do("job.kill", struct {
		ID     int64  `json:"id"`
		Signal string `json:"signal,omitempty"`
		Grace  int64  `json:"grace_ms"`
	}{id, signal, grace.Milliseconds()}, &j)
	return j, err
}

// maxWrite is how much of its output a call hands over at once, bytes.
const maxWrite = 256 << 10

// Output is the log of this call or job, which ReadJob reads while the call
// runs and after it has ended. The log of a call that is no job is kept only if
// it is linked to (OutputLink). Writing works while the call is being stopped.
func (c *Call) Output() io.Writer { return output{c} }

type output struct{ c *Call }

func (o output) Write(p []byte) (n int, err error) {
	for n < len(p) {
		chunk := p[n:min(n+maxWrite, len(p))]
		b, err := request("output.write", nil, [][]byte{chunk})
		if err != nil {
			return n, err
		}
		reply, err := o.c.port.finally(b)
		if err != nil {
			return n, err
		}
		if err := o.c.replied("output.write", reply, &struct{}{}); err != nil {
			return n, err
		}
		n += len(chunk)
	}
	return n, nil
}

// OutputLink keeps the output of this call after it has ended, and says where.
func (c *Call) OutputLink() (Output, error) {
	var out Output
	b, err := request("output.link", nil, nil)
	if err != nil {
		return out, err
	}
	reply, err := c.port.finally(b)
	if err != nil {
		return out, err
	}
	return out, c.replied("output.link", reply, &out)
}

// replied reads the header of a reply into into.
func (c *Call) replied(op string, reply []byte, into any) error {
	f, err := sdk.ParseFrame(reply)
	if err != nil {
		return fmt.Errorf("%s: reply: %w", op, err)
	}
	var h struct {
		Error *sdk.Error `json:"error"`
	}
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return fmt.Errorf("%s: reply: %w", op, err)
	}
	if h.Error != nil {
		return h.Error
	}
	return json.Unmarshal(f.Header, into)
}
