package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// childEnv tells the test binary to act as a process of its own.
const childEnv = "AUDIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		child(role, os.Getenv("AUDIT_TEST_DIR"))
		return
	}
	os.Exit(m.Run())
}

// start runs the test binary as a child that acts as role on dir and returns
// its standard output.
func start(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, "AUDIT_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

var bg = context.Background()

// logDir returns a directory for a log whose key stays in the test's folder.
func logDir(t testing.TB) string { return filepath.Join(t.TempDir(), "audit") }

func open(t testing.TB, opts Options) *File {
	t.Helper()
	f, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func appendAll(t testing.TB, f *File, events ...Event) {
	t.Helper()
	for _, e := range events {
		if err := f.Append(bg, e); err != nil {
			t.Fatal(err)
		}
	}
}

func closeLog(t testing.TB, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// call returns the events of one call.
func call(id string) []Event {
	return []Event{
		{Type: TypeStart, Call: id, Caller: "local:ann", Skill: "hello@1.0.0", Tool: "greet", Decision: "allow", Params: []byte(`{"name":"Ann"}`)},
		{Type: TypeAccess, Call: id, Tool: "greet", Access: "filesystem.read", Target: "/data/x", Decision: "allow", Count: 3},
		{Type: TypeEnd, Call: id, Tool: "greet", Skill: "hello@1.0.0", Caller: "local:ann", Duration: 1500, Bytes: 12},
	}
}

func verify(t testing.TB, dir string) Report {
	t.Helper()
	r, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func records(t testing.TB, dir string, q Filter) []Record {
	t.Helper()
	var all []Record
	for r, err := range Query(dir, q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func logFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestLogReadsBack(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir, Version: "1.2.3"})
	denial := &sdk.Denial{Capability: "filesystem.read", Resource: "/etc/passwd", Layer: "manifest", File: "skill.toml", Line: 7, Allow: `filesystem = ["read:/etc/passwd"]`}
	appendAll(t, f, call("c1")...)
	appendAll(t, f, Event{Type: TypeRefuse, Call: "c2", Parent: "c1", Trace: "00-ab", Client: "cli", Session: "s", Digest: "sha256:1", Runtime: "wasm",
		Level: "wasm", Kind: sdk.Denied, Error: "no: \x1b[31m\u202e\xff \"quoted\"", Denied: denial, Decision: "deny"})
	if got := verify(t, dir); !got.Intact() || got.Running != 0 || got.Files[0].State != "live" {
		t.Errorf("while it is written: %+v", got)
	}
	closeLog(t, f)
	closeLog(t, f)
	if err := f.Append(bg, Event{Type: TypeEnd}); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("Append after Close: %v", err)
	}

	rs := records(t, dir, Filter{})
	var types []string
	for i, r := range rs {
		types = append(types, string(r.Type))
		if r.Seq != int64(i+1) || r.Boot != f.Boot() || r.Version != 1 {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if got := strings.Join(types, " "); got != "boot start access end refuse close" {
		t.Fatalf("types: %s", got)
	}
	if o := rs[0].Origin; o.Version != "1.2.3" || o.PID != os.Getpid() || o.User == "" || len(o.Heads) != 0 {
		t.Errorf("origin: %+v", o)
	}
	if p := rs[1].Params; p == nil || fmt.Sprint(p.Shape) != "[name:string:3]" || p.Size != 14 || len(p.Digest) != 32 {
		t.Errorf("params: %+v", p)
	}
	if rs[2].Count != 3 || rs[3].Duration != 1500 || rs[3].Bytes != 12 {
		t.Errorf("numbers: %+v %+v", rs[2], rs[3])
	}
	if r := rs[4]; *r.Denied != *denial || r.Kind != sdk.Denied || r.Parent != "c1" || r.Error != "no: \x1b[31m\u202e\ufffd \"quoted\"" {
		t.Errorf("refusal: %+v", r)
	}
	if r := verify(t, dir); !r.Intact() || len(r.Problems) != 0 || r.Records != 6 || r.Calls != 1 || r.Refused != 1 || r.Files[0].State != "closed" {
		t.Errorf("verify: %+v", r)
	}
	b, err := os.ReadFile(logFiles(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(b, "\x00\x1b") || bytes.Contains(b, []byte("Ann\"")) || bytes.Contains(b, []byte("\u202e")) {
		t.Errorf("the file holds values or controls: %q", b)
	}
}

func TestAppendRefusesWhatCallersDoNotWrite(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir})
	for _, typ := range []Type{"", TypeBoot, TypeClose, "else"} {
		if err := f.Append(bg, Event{Type: typ}); sdk.KindOf(err) != sdk.Internal {
			t.Errorf("type %q: %v", typ, err)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := f.Append(ctx, Event{Type: TypeStart}); sdk.KindOf(err) != sdk.Canceled || !errors.Is(err, context.Canceled) {
		t.Errorf("start of a canceled call: %v", err)
	}
	if err := f.Append(ctx, Event{Type: TypeEnd, Call: "x"}); err != nil {
		t.Errorf("end of a canceled call: %v", err)
	}
	if n := len(records(t, dir, Filter{})); n != 2 {
		t.Errorf("%d records", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	dir := logDir(t)
	for _, opts := range []Options{{}, {Dir: dir, Durability: "none"}, {Dir: dir, Params: "values"}} {
		if _, err := Open(opts); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "audit.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("short key: %v", err)
	}
}

func TestDigestIsKeyedPerUser(t *testing.T) {
	digest := func(dir string) string {
		f := open(t, Options{Dir: dir})
		appendAll(t, f, call("c")[0])
		closeLog(t, f)
		return records(t, dir, Filter{Type: TypeStart})[0].Params.Digest
	}
	a := logDir(t)
	first, again, other := digest(a), digest(a), digest(logDir(t))
	if first != again || first == other {
		t.Errorf("digests %s, %s under one key and %s under another", first, again, other)
	}
}

func TestConcurrentAppends(t *testing.T) {
	for _, durability := range []string{"kernel", "disk"} {
		t.Run(durability, func(t *testing.T) {
			dir := logDir(t)
			f := open(t, Options{Dir: dir, Durability: durability, MaxSize: 64 << 10, Secrets: func() []string { return []string{"hunter2"} }})
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 100 {
						for _, e := range call(fmt.Sprintf("%d-%d", g, i)) {
							if err := f.Append(bg, e); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			closeLog(t, f)
			r := verify(t, dir)
			if len(r.Problems) != 0 || r.Calls != 800 || len(r.Files) < 3 || r.Records != 2400+2*len(r.Files) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestEndAlwaysFitsItsRoom(t *testing.T) {
	long := strings.Repeat("\x01", 4096) // six bytes each when escaped
	denial := &sdk.Denial{Capability: long, Resource: long, Layer: long, File: long, Line: 1 << 30, Allow: long}
	e := Event{Type: TypeEnd, Call: long, Parent: long, Trace: long, Caller: long, Client: long, Session: long, Skill: long, Digest: long, Tool: long,
		Runtime: long, Level: long, Decision: long, Kind: sdk.Kind(long), Error: long, Denied: denial, Access: long, Target: long, Count: 1 << 30,
		Duration: 1 << 62, Bytes: 1 << 62, Note: long}
	n := newEncoder(make([]byte, 32), false)
	const frame = 256 // what the chain puts around it
	if got := len(n.encode(&e)) + frame; got > endRoom {
		t.Errorf("the longest end takes %d bytes of %d", got, endRoom)
	}
}

// TestSecretsNeverReachTheFile puts secrets into every field that a guest or a
// client has a hand in, in both modes of parameters.
func TestSecretsNeverReachTheFile(t *testing.T) {
	for mode, want := range map[string]string{
		"shape":    `"params":{"shape":["url:string:26","?:number","password:string:7"],`,
		"redacted": `"params":{"values":{"url":"https://[redacted]@h/?[redacted]","[redacted]":1,"password":"[redacted]"},`,
	} {
		dir := logDir(t)
		f := open(t, Options{Dir: dir, Params: mode, Secrets: func() []string { return []string{"hunter2"} }})
		denial := &sdk.Denial{Resource: "https://u:pw9@h/?q=pw9", Allow: `network = ["hunter2.example"]`}
		appendAll(t, f, Event{Type: TypeRefuse, Client: "c hunter2", Error: "Get https://u:pw9@h/?q=pw9: hunter2", Target: "https://h/x?sig=pw9",
			Note: "hunter2", Denied: denial, Params: []byte(`{"url":"https://u:pw9@h/?q=pw9&xyz","hunter2":1,"password":"letmein"}`)})
		closeLog(t, f)
		b := readFile(t, logFiles(t, dir)[0])
		for _, secret := range []string{"hunter2", "pw9", "letmein"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s: %q is in %s", mode, secret, b)
			}
		}
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%s: no %s in %s", mode, want, b)
		}
		records(t, dir, Filter{}) // and it can be read
	}
}

// BenchmarkAppend takes the two records of one call; the medians of each are
// reported beside their sum.
func BenchmarkAppend(b *testing.B) {
	f := open(b, Options{Dir: logDir(b), MaxSize: 1 << 40})
	first := Event{Type: TypeStart, Call: "01JD3Z7W4C9QK2", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Caller: "local:ann",
		Session: "b7d5e1f0", Skill: "read-image@1.0.0", Digest: "sha256:9f86d081884c7d659a2feaa0c55ad015", Tool: "ReadImage", Runtime: "wasm",
		Level: "wasm", Decision: "allow", Params: []byte(`{"path":"/workspace/photo.jpg","max":1024,"region":{"x":1,"y":2}}`)}
	last := Event{Type: TypeEnd, Call: first.Call, Caller: first.Caller, Skill: first.Skill, Tool: first.Tool, Duration: time.Millisecond, Bytes: 4711}
	var starts, ends []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		err1 := f.Append(bg, first)
		t1 := time.Now()
		err2 := f.Append(bg, last)
		starts, ends = append(starts, t1.Sub(t0)), append(ends, time.Since(t1))
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(median(starts)), "start-p50-ns")
	b.ReportMetric(float64(median(ends)), "end-p50-ns")
}
