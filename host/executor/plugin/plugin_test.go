//go:build unix

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// A heard is what came of a call besides its result.
type heard struct {
	mu   sync.Mutex
	logs []string
}

func (h *heard) emit(e sdk.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logs = append(h.logs, e.Level+": "+e.Message)
}

func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(h.logs)), "\n")
}

func limits() manifest.Limits { l := manifest.DefaultLimits; l.Memory = 64 << 20; return l }

// do calls the tool of a test plugin.
func do(t *testing.T, p executor.Program, what, text string, change ...func(*executor.Job)) (string, *heard, error) {
	t.Helper()
	args, err := json.Marshal(in{what, text})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &heard{}
	j := executor.Job{
		Input: sdk.Input{Tool: "do", Args: args, Call: "call-1", Scope: sdk.Scope{Caller: "ann"}}, Limits: limits(), Soft: ctx, Ops: testOps{}, Emit: h.emit,
	}
	for _, c := range change {
		c(&j)
	}
	hard := context.Context(ctx)
	if d, ok := j.Soft.(hardAfter); ok {
		var stop func()
		hard, stop = context.WithTimeoutCause(ctx, time.Duration(d.after), d.cause)
		defer stop()
		j.Soft = hard
		if d.soft != nil {
			j.Soft = d.soft
		}
	}
	r, err := p.Run(hard, j)
	if err != nil {
		return "", h, err
	}
	if len(r.Content) != 1 {
		t.Fatalf("%d pieces of content", len(r.Content))
	}
	return r.Content[0].Text, h, nil
}

// hardAfter makes a call's hard deadline short.
type hardAfter struct {
	context.Context
	after time.Duration
	cause error
	soft  context.Context
}

func within(d time.Duration, cause error) func(*executor.Job) {
	return func(j *executor.Job) { j.Soft = hardAfter{j.Soft, d, cause, nil} }
}

func output(n int64) func(*executor.Job) { return func(j *executor.Job) { j.Limits.Output = n } }

func caller(name string) func(*executor.Job) {
	return func(j *executor.Job) { j.Input.Scope.Caller = name }
}

type testOps struct{ meet chan struct{} }

func (o testOps) Do(ctx context.Context, f sdk.Frame) ([]byte, error) {
	var h struct{ Op string }
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return nil, err
	}
	switch h.Op {
	case "echo":
		return sdk.AppendFrame(nil, f.Header), nil
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "refused":
		return nil, &sdk.Error{Kind: sdk.Denied, What: "not for you"}
	case "panics", "fails":
		if h.Op == "panics" {
			panic("the host's secret")
		}
		return nil, errors.New("the host's secret")
	case "big":
		return sdk.AppendFrame(nil, []byte("{}"), make([]byte, 4<<20)), nil
	case "large":
		return sdk.AppendFrame(nil, []byte("{}"), make([]byte, 65<<20)), nil
	case "meet":
		select {
		case o.meet <- struct{}{}: // whoever comes first waits for another
		case <-o.meet:
		case <-ctx.Done():
		}
		return sdk.AppendFrame(nil, []byte("{}")), nil
	}
	return nil, executor.ErrUnknownOp
}

func TestCall(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, skillOf("good"))
	for _, c := range []struct {
		what, text, want string
		kind             sdk.Kind
	}{
		{"say", "hello", "hello", ""},
		{"say", strings.Repeat("x", 200_000), strings.Repeat("x", 200_000), ""},
		{"op", "echo", `{"op":"echo"}`, ""},
		{"op", "absent", "", sdk.Unavailable},
		{"op", "refused", "", sdk.Denied},
		{"op", "panics", "", sdk.Guest},
		{"op", "fails", "", sdk.Guest},
		{"op", "large", "", sdk.Limit},
		{"proxy", "", "http://call-1", ""},
		{"no idea", "", "", sdk.Guest},
	} {
		got, _, err := do(t, p, c.what, c.text)
		if got != c.want || sdk.KindOf(err) != c.kind {
			t.Errorf("%s %.20s: got %.100q, %v, want %.100q, %q", c.what, c.text, got, err, c.want, c.kind)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %s: %v tells of the host", c.what, c.text, err)
		}
	}
	if w.cages.recorded == 0 {
		t.Error("nothing was recorded")
	}
}

// Operations run at once, as many as may, and more are refused one by one.
func TestOperationsRunAtOnce(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	together := func(j *executor.Job) { j.Ops = testOps{meet: make(chan struct{})} }
	if got, _, err := do(t, p, "ops", "64", together); got != "0 failed" || err != nil {
		t.Errorf("64: %q, %v", got, err)
	}
	got, _, err := do(t, p, "ops", "100", func(j *executor.Job) {
		soft, cancel := context.WithTimeout(j.Soft, 500*time.Millisecond)
		t.Cleanup(cancel)
		j.Soft, j.Ops = soft, stuckOps{}
	})
	if got != "100 failed" || err != nil { // 36 at once, the others at the soft deadline
		t.Errorf("100: %q, %v", got, err)
	}
}

// stuckOps never end before the call does.
type stuckOps struct{}

func (stuckOps) Do(ctx context.Context, _ sdk.Frame) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What a tool prints is logged with its call, all of it, and corrupts nothing.
func TestPrint(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	for range 5 {
		got, h, err := do(t, p, "print", "1|1|unix|/x|grpc")
		if got != "printed" || err != nil || h.text() != "info: 1|1|unix|/x|grpc\nwarning: aside 1|1|unix|/x|grpc" {
			t.Errorf("%q, %v\n%s", got, err, h.text())
		}
	}
}

func TestSoft(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	for want, cause := range map[string]error{
		"the call is cancelled or out of time": context.DeadlineExceeded,
		"asked to stop by signal INT":          &sdk.Stop{Signal: "INT", Grace: time.Second},
	} {
		soft, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
		got, _, err := do(t, p, "wait", "", func(j *executor.Job) { j.Soft = soft })
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestHard(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	for want, cause := range map[sdk.Kind]error{
		sdk.Limit:    &sdk.Error{Kind: sdk.Limit, What: "not in time", Hint: "limits.timeout"},
		sdk.Canceled: context.Canceled,
	} {
		begun := time.Now()
		_, _, err := do(t, p, "nap", "1h", within(200*time.Millisecond, cause))
		if sdk.KindOf(err) != want || time.Since(begun) > 10*time.Second {
			t.Errorf("got %v after %v, want kind %s", err, time.Since(begun), want)
		}
	}
	if got, _, err := do(t, p, "say", "still here"); got != "still here" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestHostile: whatever a plugin does wrong is a clear error, and the next
// call is made by another process.
func TestHostile(t *testing.T) {
	w := newWorld(t, Options{})
	for name, c := range map[string]struct {
		kind sdk.Kind
		says string
	}{
		"stream_none":           {sdk.Guest, "without a result"},
		"stream_status":         {sdk.Guest, "sorry about that"},
		"stream_exit":           {sdk.Guest, "exited with status 7 in the middle of the call: last words"},
		"stream_signal":         {sdk.Guest, "killed"},
		"stream_hang":           {sdk.Limit, "not in time"},
		"stream_number":         {sdk.Guest, "result of call 7 in call 1"},
		"stream_garbage_result": {sdk.Guest, "not a frame"},
		"stream_garbage_log":    {sdk.Guest, "not JSON"},
		"stream_garbage_part":   {sdk.Guest, "not a frame"},
		"stream_garbage_op":     {sdk.Guest, "not a frame"},
		"stream_kind_zero":      {sdk.Guest, "does not send"},
		"stream_kind_unknown":   {sdk.Guest, "kind 99"},
		"stream_kind_reply":     {sdk.Guest, "REPLY"},
		"stream_id_twice":       {sdk.Guest, "id 5"},
		"stream_ops_flood":      {sdk.Guest, "does not stop to ask"},
		"stream_ops_deaf":       {sdk.Limit, "not in time"},
		"stream_log_flood":      {sdk.Limit, "limits.output"},
		"stream_empty_flood":    {sdk.Limit, "more than 131072 messages"},
		"stream_giant":          {sdk.Limit, "limits.output"},
		"stream_lie":            {sdk.Guest, "lie"},
		"stream_stubborn":       {sdk.Limit, "not in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := w.load(t, skillOf(name))
			for range 2 { // the second call is no worse off than the first
				begun := time.Now()
				patience := 20 * time.Second
				if c.says == "not in time" {
					patience = time.Second
				}
				_, _, err := do(t, p, "say", "x", output(1<<20), within(patience, &sdk.Error{Kind: sdk.Limit, What: "not in time"}))
				if sdk.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("got %v, want kind %s and %q", err, c.kind, c.says)
				}
				if since := time.Since(begun); since > 20*time.Second {
					t.Errorf("after %v", since)
				}
			}
		})
	}
}

// TestLate: what a plugin says after a result is not taken for the result of
// the next call on that stream.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		kind sdk.Kind
		says string
	}{
		"late_result":  {sdk.Guest, "result of call 1 in call 2"},
		"late_garbage": {sdk.Guest, "not JSON"},
		"late_end":     {sdk.Guest, "without a result"},
		"late_silence": {sdk.Limit, "not in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWorld(t, Options{}).load(t, session(skillOf(name)))
			for range 2 { // then there is another process
				if got, _, err := do(t, p, "say", ""); got != "done" || err != nil {
					t.Fatalf("%q, %v", got, err)
				}
				_, _, err := do(t, p, "say", "", within(time.Second, &sdk.Error{Kind: sdk.Limit, What: "not in time"}))
				if sdk.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
					t.Errorf("got %v, want kind %s and %q", err, c.kind, c.says)
				}
			}
		})
	}
}

// TestStreams: calls one after another share a stream, calls at once do not,
// and what ends one by force ends no other.
func TestStreams(t *testing.T) {
	w := newWorld(t, Options{})
	p := w.load(t, session(skillOf("good")))
	for range 3 {
		if got, _, err := do(t, p, "say", "x"); got != "x" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	w.pool.mu.Lock()
	proc := w.pool.all[0]
	w.pool.mu.Unlock()
	if len(proc.streams) != 1 || proc.streams[0].calls != 3 {
		t.Errorf("%d streams", len(proc.streams))
	}
	if _, _, err := do(t, p, "say", "x", output(1<<28)); err != nil || len(proc.streams) != 1 || proc.streams[0].calls != 1 {
		t.Errorf("a call with other limits: %d streams, %v", len(proc.streams), err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, _, err := do(t, p, "nap", "200ms"); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			_, _, err := do(t, p, "nap", "1h", within(50*time.Millisecond, &sdk.Error{Kind: sdk.Limit, What: "not in time"}))
			if sdk.KindOf(err) != sdk.Limit {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestToolsThatBreak: the same for what an honest plugin's tool may do.
func TestToolsThatBreak(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	for what, c := range map[string]struct {
		kind sdk.Kind
		says string
	}{
		"exit":  {sdk.Guest, "exited with status 5 in the middle of the call: bye"},
		"flood": {sdk.Limit, "limits.output"},
	} {
		if _, _, err := do(t, p, what, "", output(100_000)); sdk.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: got %v", what, err)
		}
		if got, _, err := do(t, p, "say", "next"); got != "next" || err != nil {
			t.Errorf("after %s: %q, %v", what, got, err)
		}
	}
}

func TestOutputLimit(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("good"))
	if _, _, err := do(t, p, "say", strings.Repeat("x", 200_000), output(100_000)); sdk.KindOf(err) != sdk.Limit || !strings.Contains(err.Error(), "limits.output") {
		t.Errorf("got %v", err)
	}
	if _, _, err := do(t, p, "say", strings.Repeat("x", 90_000), output(100_000)); err != nil {
		t.Error(err)
	}
}

// What a skill asks for and cannot have on this machine is said in its log.
func TestNote(t *testing.T) {
	w := newWorld(t, Options{})
	w.cages.note = "programs have no network"
	if _, h, err := do(t, w.load(t, skillOf("good")), "say", ""); err != nil || h.text() != "warning: programs have no network" {
		t.Errorf("%q, %v", h.text(), err)
	}
}

// The transport's own directories are gone as soon as they are there.
func TestNoDirectories(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	w := newWorld(t, Options{})
	if _, _, err := do(t, w.load(t, session(skillOf("good"))), "say", ""); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "plugin-dir*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// A plugin that is served by go-plugin itself works.
func TestInterop(t *testing.T) {
	p := newWorld(t, Options{}).load(t, skillOf("interop"))
	for range 2 {
		if got, _, err := do(t, p, "say", ""); got != "done" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}
