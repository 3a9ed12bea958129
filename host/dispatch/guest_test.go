package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// port is what a runtime is between a guest and its operations.
type port struct{ executor.Job }

func (p port) Do(ctx context.Context, f sdk.Frame) ([]byte, error) { return p.Ops.Do(ctx, f) }

func (p port) Emit(e sdk.Event) { p.Job.Emit(e) }

type order struct {
	A string `json:"a,omitempty"`
}

var steps func(c *guest.Call, in order) (string, error)

var _ = guest.Tool("one-t", "", func(c *guest.Call, in order) (string, error) { return steps(c, in) })

// What package guest sends is what the operations read, and the other way round.
func TestGuestJobs(t *testing.T) {
	h := houseOf(t, slow)
	h.guest.run = func(_ context.Context, j executor.Job) (sdk.Result, error) {
		return guest.Run(j.Soft, port{j}, j.Input)
	}
	var id int64
	steps = func(c *guest.Call, in order) (string, error) {
		switch {
		case c.Job() != 0:
			fmt.Fprintf(c.Output(), "job %d %s\nhalf", c.Job(), in.A)
			<-c.Context().Done()
			var stop *sdk.Stop
			if !errors.As(context.Cause(c.Context()), &stop) {
				return "", context.Cause(c.Context())
			}
			_, err := fmt.Fprintf(c.Output(), " and %s %v\n", stop.Signal, stop.Grace)
			return "bye", err
		case in.A == "start":
			j, err := c.StartJob(order{"work"}, guest.JobOptions{Description: "d", Timeout: time.Minute})
			if id = j.ID; err != nil || j.Status != "running" || j.StartedAt.IsZero() || j.Description != "d" || string(j.Args) != `{"a":"work"}` || j.URI == "" || j.Path == "" {
				t.Errorf("%+v, %v", j, err)
			}
		case in.A == "look":
			out, err := c.ReadJob(id, guest.JobRead{Max: 100, Wait: 5 * time.Second})
			if err != nil || string(out.Data) != fmt.Sprintf("job %d work\n", id) || out.EOF || out.ID != id || out.Next != int64(len(out.Data)) {
				t.Errorf("%q, %+v, %v", out.Data, out, err)
			}
			j, err := c.KillJob(id, "HUP", 10*time.Second)
			if err != nil || j.Status != "killed" || string(j.Result) != `"bye"` || j.EndedAt.IsZero() {
				t.Errorf("%+v, %v", j, err)
			}
			from := out.Next
			out, err = c.ReadJob(id, guest.JobRead{Cursor: &from})
			if err != nil || string(out.Data) != "half and HUP 10s\n" || !out.EOF || out.Cursor != from {
				t.Errorf("%q, %+v, %v", out.Data, out, err)
			}
			jobs, err := c.Jobs()
			if err != nil || len(jobs) != 1 || jobs[0].ID != id || jobs[0].Unread != int64(len(out.Data)) {
				t.Errorf("%+v, %v", jobs, err)
			}
			fmt.Fprintln(c.Output(), "hello")
			link, err := c.OutputLink()
			if err != nil || link.ID == id || link.Bytes != 6 || link.URI != fmt.Sprintf("skill-output://%d", link.ID) || link.Path == "" {
				t.Errorf("%+v, %v", link, err)
			}
		}
		return "ok", nil
	}
	for _, a := range []string{"start", "look"} {
		if _, err := h.do(t, "one-t", fmt.Sprintf(`{"a":%q}`, a)); err != nil {
			t.Fatal(err)
		}
	}
}
