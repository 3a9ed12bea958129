package guesttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

type script struct {
	Do string `json:"do"`
}

type said struct {
	Text string `json:"text"`
}

// run is what the tool does; each test sets it.
var run func(c *guest.Call, in script) (said, error)

var _ = guest.Tool("run", "Run", func(c *guest.Call, in script) (said, error) { return run(c, in) })

// call runs the tool with do.
func call(t *testing.T, h *guesttest.Host, do string) {
	t.Helper()
	if _, err := h.Call(t.Context(), "run", script{do}); err != nil {
		t.Fatal(err)
	}
}

// A background command as a tool would offer it: started, read while it runs,
// asked to stop, read to its end.
func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &guesttest.Host{}
		run = func(c *guest.Call, in script) (said, error) {
			switch {
			case c.Job() != 0:
				fmt.Fprintf(c.Output(), "running %s\nhalf", in.Do)
				<-c.Context().Done()
				var stop *sdk.Stop
				if !errors.As(context.Cause(c.Context()), &stop) {
					return said{}, context.Cause(c.Context())
				}
				_, err := fmt.Fprintf(c.Output(), " line, stopped by %s\n", stop.Signal)
				return said{stop.Signal}, err
			case in.Do == "start":
				j, err := c.StartJob(script{"make"}, guest.JobOptions{Description: "the build"})
				if err != nil || j.ID != 1 || j.Status != "running" || j.URI != "skill-output://1" || string(j.Args) != `{"do":"make"}` {
					t.Errorf("%+v, %v", j, err)
				}
				if _, err := c.StartJob(script{"other"}, guest.JobOptions{Timeout: time.Second}); err != nil {
					t.Error(err)
				}
			case in.Do == "read":
				out, err := c.ReadJob(1, guest.JobRead{Wait: time.Minute})
				if err != nil || string(out.Data) != "running make\n" || out.EOF || out.Next != 13 || out.Unread != 4 {
					t.Errorf("%q, %+v, %v", out.Data, out, err)
				}
				out, err = c.ReadJob(1, guest.JobRead{Wait: time.Second / 2})
				if err != nil || len(out.Data) > 0 {
					t.Errorf("%q, %v", out.Data, err)
				}
			case in.Do == "kill":
				j, err := c.KillJob(1, "INT", time.Second)
				if err != nil || j.Status != "killed" || string(j.Result) != `{"text":"INT"}` || j.EndedAt.IsZero() {
					t.Errorf("%+v, %v", j, err)
				}
				out, err := c.ReadJob(1, guest.JobRead{})
				if err != nil || string(out.Data) != "half line, stopped by INT\n" || !out.EOF {
					t.Errorf("%q, %+v, %v", out.Data, out, err)
				}
				from := int64(8)
				out, err = c.ReadJob(1, guest.JobRead{Cursor: &from, Max: 16})
				if err != nil || string(out.Data) != "make\n" {
					t.Errorf("%q, %+v, %v", out.Data, out, err)
				}
			case in.Do == "list":
				jobs, err := c.Jobs()
				if err != nil || len(jobs) != 2 || jobs[0].Status != "killed" || jobs[0].Description != "the build" || jobs[1].Status != "timed_out" || !strings.Contains(jobs[1].Error, "in time") {
					t.Errorf("%+v, %v", jobs, err)
				}
				if _, err := c.ReadJob(3, guest.JobRead{}); sdk.KindOf(err) != sdk.NotFound {
					t.Error(err)
				}
			}
			return said{}, nil
		}
		for _, do := range []string{"start", "read", "kill"} {
			call(t, h, do)
		}
		h.Wait()
		call(t, h, "list")
	})
}

func TestJobStartsNoJob(t *testing.T) {
	h := &guesttest.Host{}
	var got error
	run = func(c *guest.Call, _ script) (said, error) {
		_, err := c.StartJob(nil, guest.JobOptions{})
		if c.Job() != 0 {
			got = err
		}
		return said{}, nil
	}
	call(t, h, "")
	h.Wait()
	if sdk.KindOf(got) != sdk.Limit {
		t.Error(got)
	}
}

// A job that does not listen is given up after its grace.
func TestDeafJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &guesttest.Host{}
		let := make(chan struct{})
		run = func(c *guest.Call, in script) (said, error) {
			if c.Job() != 0 {
				<-let
				return said{"too late"}, nil
			}
			if _, err := c.StartJob(nil, guest.JobOptions{}); err != nil {
				return said{}, err
			}
			began := time.Now()
			j, err := c.KillJob(1, "", 3*time.Second)
			if err != nil || j.Status != "killed" || time.Since(began) != 3*time.Second {
				t.Errorf("%+v, %v after %v", j, err, time.Since(began))
			}
			close(let)
			h.Wait()
			if j, err := c.KillJob(1, "KILL", 0); err != nil || j.Result != nil {
				t.Errorf("%+v, %v", j, err)
			}
			return said{}, nil
		}
		call(t, h, "")
	})
}

func TestOutput(t *testing.T) {
	h := &guesttest.Host{}
	text := strings.Repeat("a line of output\n", 40_000) // several operations
	run = func(c *guest.Call, in script) (said, error) {
		switch in.Do {
		case "write":
			if n, err := c.Output().Write([]byte(text)); err != nil || n != len(text) {
				t.Error(n, err)
			}
			link, err := c.OutputLink()
			if err != nil || link.ID != 1 || link.Bytes != int64(len(text)) || link.URI == "" || link.Path == "" {
				t.Errorf("%+v, %v", link, err)
			}
		case "read":
			var got strings.Builder
			for {
				out, err := c.ReadJob(1, guest.JobRead{Max: 1000})
				if err != nil || len(out.Data) == 0 {
					t.Fatal(out, err)
				}
				got.Write(out.Data)
				if out.EOF {
					break
				}
			}
			if got.String() != text {
				t.Errorf("%d bytes read", got.Len())
			}
			if jobs, err := c.Jobs(); err != nil || len(jobs) != 0 {
				t.Errorf("%+v, %v", jobs, err)
			}
			if _, err := c.KillJob(1, "", 0); sdk.KindOf(err) != sdk.Invalid {
				t.Error(err)
			}
		}
		return said{}, nil
	}
	call(t, h, "write")
	call(t, h, "read")
}

// What a tool writes while it is being stopped is kept, as its operations end.
func TestLastWords(t *testing.T) {
	h := &guesttest.Host{}
	ctx, cancel := context.WithCancel(t.Context())
	run = func(c *guest.Call, in script) (said, error) {
		cancel()
		<-c.Context().Done()
		if _, err := c.Jobs(); err == nil {
			t.Error("an operation goes on")
		}
		if _, err := fmt.Fprintln(c.Output(), "bye"); err != nil {
			t.Error(err)
		}
		link, err := c.OutputLink()
		if err != nil || link.Bytes != 4 {
			t.Errorf("%+v, %v", link, err)
		}
		return said{}, nil
	}
	if _, err := h.Call(ctx, "run", json.RawMessage(`{"do":""}`)); err != nil {
		t.Error(err)
	}
}

// The real host's words for a job are the guest's.
func TestInputTellsJobAndProxy(t *testing.T) {
	run = func(c *guest.Call, in script) (said, error) {
		if c.Job() != 17 || c.Proxy() != "http://127.0.0.1:3128" {
			t.Errorf("job %d, proxy %q", c.Job(), c.Proxy())
		}
		return said{}, nil
	}
	if _, err := guest.Run(t.Context(), &guesttest.Host{}, sdk.Input{Tool: "run", Args: json.RawMessage(`{"do":""}`), Job: 17, Proxy: "http://127.0.0.1:3128"}); err != nil {
		t.Error(err)
	}
}
