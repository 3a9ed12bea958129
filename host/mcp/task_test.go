package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/store/memory"
	"github.com/skillhost/skill/sdk"
)

// errands is a house whose tools want to be tasks.
type errands struct{ *house }

func (errands) TaskMode(call *sdk.Call) conversation.TaskMode {
	tool := call.Tool
	when, name, ok := strings.Cut(tool, ".")
	switch {
	case !ok || name == "unknown":
		return conversation.TaskMode{}
	case when == "first":
		return conversation.TaskMode{When: conversation.TaskRequired, AskFirst: true}
	}
	return conversation.TaskMode{When: conversation.TaskWhen(when)}
}

func (e errands) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	if _, name, ok := strings.Cut(c.Tool, "."); ok {
		c.Tool = name
	}
	switch c.Tool {
	case "failing":
		r := sdk.Text("job failed")
		r.Failed = true
		return r, nil
	case "two":
		if c.State == "" {
			return sdk.Result{State: "s", Questions: map[string]sdk.Question{"x": {Kind: sdk.QuestionForm, Message: "X?"}, "y": {Kind: sdk.QuestionForm, Message: "Y?"}}}, nil
		}
		return sdk.Text(fmt.Sprintf("%s %s", c.Answers["x"].Content, c.Answers["y"].Action)), nil
	case "model":
		return sdk.Result{State: "s", Questions: map[string]sdk.Question{"m": {Kind: sdk.QuestionSampling}}}, nil
	case "progress":
		emit(sdk.Event{Kind: sdk.EventProgress, Progress: 1, Message: "half way"})
		return e.house.Call(ctx, sdk.Call{Tool: "wait", Args: c.Args}, emit)
	}
	return e.house.Call(ctx, c, emit)
}

func taskOptions(s task.Store) Options {
	return Options{Scope: sdk.Scope{Caller: "alice"}, Options: conversation.Options{Name: "skill", Version: "1", TaskAfter: 20 * time.Millisecond,
		Tasks: task.New(task.Options{Store: s, Bounds: task.Bounds{Caller: 20}})}}
}

const (
	metaPlain = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	metaTasks = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
)

var taskID = regexp.MustCompile(`"taskId":"([A-Z2-7]{26})"`)

// Transcripts in testdata/task are as those in testdata/talk, and: $TASKS and
// $PLAIN are the _meta of clients with and without the extension; $ID is the id
// of the last task; a line "? " is sent again until the answer is what follows;
// "! NAME" opens a gate.
func TestTaskTalk(t *testing.T) {
	transcripts(t, "task", func(t *testing.T, lines []string) {
		h := newHouse()
		s := serve(t, errands{h}, taskOptions(memory.Open()))
		id := ""
		expand := func(l string) string {
			return strings.NewReplacer("$TASKS", metaTasks, "$PLAIN", metaPlain, "$ID", id).Replace(l[2:])
		}
		recv := func() string {
			got := s.recv()
			if m := taskID.FindStringSubmatch(got); m != nil {
				id = m[1]
			}
			return got
		}
		for i := 0; i < len(lines); i++ {
			switch l := lines[i]; l[0] {
			case '!':
				close(h.gate(l[2:]))
			case '>':
				s.send(expand(l))
			case '<':
				if got, want := recv(), expand(l); !matches(want, got) {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
			case '?':
				i++
				got, want := "", expand(lines[i])
				for tries := 0; tries < 2000 && !matches(want, got); tries++ {
					time.Sleep(time.Millisecond)
					s.send(expand(l))
					got = recv()
				}
				if !matches(want, got) {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
			}
		}
		s.in.Close()
		if rest, _ := s.out.ReadString('\n'); rest != "" {
			t.Fatalf("one answer too many: %s", rest)
		}
	})
}

func toolCall(id, name, args, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, name, args, meta)
}

func taskCall(id, method, task string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tasks/%s","params":{"taskId":%q,%s}}`, id, method, task, metaTasks)
}

// create makes a task and returns its id.
func (s *session) create(id, name, args string) string {
	s.t.Helper()
	got := s.ask(toolCall(id, name, args, metaTasks))
	m := taskID.FindStringSubmatch(got)
	if m == nil || !strings.Contains(got, `"resultType":"task"`) {
		s.t.Fatalf("no task: %s", got)
	}
	return m[1]
}

// until asks how a task is until that status.
func (s *session) until(task, status string) string {
	s.t.Helper()
	got := ""
	for range 2000 {
		if got = s.ask(taskCall(`"poll"`, "get", task)); strings.Contains(got, `"status":"`+status+`"`) {
			return got
		}
		time.Sleep(time.Millisecond)
	}
	s.t.Fatalf("never %s: %s", status, got)
	return ""
}

// A conversation ends, its tasks go on; the next one finds them.
func TestTaskOutlivesItsConversation(t *testing.T) {
	h := errands{newHouse()}
	store := memory.Open()
	o := taskOptions(store)
	s := serve(t, h, o)
	id := s.create("1", "optional.wait", `{"gate":"g"}`)
	long := s.create("2", "long.wait", `{"gate":"g"}`)
	s.in.Close()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	s.done <- nil // for the cleanup
	s = serve(t, h, o)
	s.until(id, "working")
	close(h.gate("g"))
	for _, id := range []string{id, long} {
		expect(t, s.until(id, "completed"), `...,"result":{"resultType":"complete",...,"content":[{"type":"text","text":"opened"}],"isError":false}}}`)
	}
	if n := len(h.seen()); n != 2 {
		t.Errorf("%d calls of the Backend", n)
	}
	// Another process of the same user, and another user.
	o2 := taskOptions(store)
	expect(t, serve(t, h, o2).ask(taskCall("1", "get", id)), `..."status":"completed"...`)
	o2.Scope.Caller = "mallory"
	m := serve(t, h, o2)
	for _, method := range []string{"get", "update", "cancel"} {
		expect(t, m.ask(strings.Replace(taskCall("1", method, id), `"taskId"`, `"inputResponses":{},"taskId"`, 1)), `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"there is no such task...`)
	}
}

// A host that ends cancels its tasks, and says so to the next one.
func TestTaskShutdown(t *testing.T) {
	h := errands{newHouse()}
	store := memory.Open()
	o := taskOptions(store)
	s := serve(t, h, o)
	id := s.create("1", "optional.wait", `{"gate":"never"}`)
	stubborn := s.create("2", "optional.stubborn", `{"gate":"late"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := o.Tasks.Close(ctx); err != nil {
		t.Fatal(err)
	}
	close(h.gate("late"))
	after := serve(t, h, taskOptions(store))
	for _, id := range []string{id, stubborn} {
		expect(t, after.ask(taskCall("1", "get", id)), `..."status":"cancelled","statusMessage":"the host shut down"...`)
	}
	expect(t, s.ask(toolCall("3", "required.echo", `{}`, metaTasks)), `...unavailable: ...the host is shutting down...`)
	expect(t, s.ask(toolCall("4", "optional.echo", `{"message":"still here"}`, metaTasks)), `..."resultType":"complete"...still here...`)
}

// The client cancels a call that is about to become a task: nothing goes on
// behind its back.
func TestTaskCancelledBeforeItIsOne(t *testing.T) {
	h := errands{newHouse()}
	o := taskOptions(memory.Open())
	o.TaskAfter = time.Hour
	s := serve(t, h, o)
	s.send(toolCall("1", "long.wait", `{"gate":"never"}`, metaTasks))
	for len(h.seen()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	expect(t, s.ask(toolCall("2", "long.echo", `{"message":"next"}`, metaTasks)), `{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",...next...`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := o.Tasks.Close(ctx); err != nil || ctx.Err() != nil {
		t.Error("something runs on", err)
	}
}

// Beyond the bound a tool that must be a task is refused, and others are called
// as ever.
func TestTaskBounds(t *testing.T) {
	h := errands{newHouse()}
	o := taskOptions(memory.Open())
	s := serve(t, h, o)
	for i := range 20 {
		s.until(s.create(fmt.Sprint(i), "optional.echo", `{}`), "completed")
	}
	expect(t, s.ask(toolCall("1", "required.echo", `{}`, metaTasks)), `..."text":"limit: ...20 tasks...`)
	expect(t, s.ask(toolCall("2", "optional.echo", `{"message":"plain"}`, metaTasks)), `..."resultType":"complete"...plain...`)
	s.send(toolCall("3", "long.wait", `{"gate":"g"}`, metaTasks))
	time.Sleep(2 * o.TaskAfter)
	close(h.gate("g"))
	expect(t, s.recv(), `..."resultType":"complete"...opened...`)
}

// Tasks hold no slot of the calls.
func TestTasksLeaveRoomForCalls(t *testing.T) {
	h := errands{newHouse()}
	o := taskOptions(memory.Open())
	o.Concurrency, o.Queue = 1, 1
	s := serve(t, h, o)
	for i := range 4 {
		s.create(fmt.Sprint(i), "optional.wait", `{"gate":"g"}`)
	}
	s.create("5", "long.wait", `{"gate":"g"}`)
	expect(t, s.ask(toolCall("6", "echo", `{"message":"hello"}`, metaPlain)), `...hello...`)
	close(h.gate("g"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := o.Tasks.Close(ctx); err != nil {
		t.Error(err)
	}
}

// What a listener is told is what tasks/get would say.
func TestTaskNotifications(t *testing.T) {
	h := errands{newHouse()}
	s := serve(t, h, taskOptions(memory.Open()))
	id := s.create("1", "optional.two", `{}`)
	s.until(id, "input_required")
	listen := `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"taskIds":["` + id + `","AAAAAAAAAAAAAAAAAAAAAAAAAA"]},%s}}`
	expect(t, s.ask(fmt.Sprintf(listen, metaPlain)), `...-32021...`)
	expect(t, s.ask(fmt.Sprintf(listen, metaTasks)), `...acknowledged...{"taskIds":["`+id+`"]}}}`)
	expect(t, s.recv(), `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"taskId":"`+id+`","status":"input_required",..."inputRequests":{"1.x":...,"1.y":...}}}`)
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tasks/update","params":{"taskId":%q,"inputResponses":{"1.x":{"action":"accept","content":{"v":1}},"1.y":{"action":"decline"}},%s}}`, id, metaTasks))
	for ended, acked := false, false; !ended || !acked; {
		got := s.recv()
		switch {
		case strings.Contains(got, `"id":2`):
			acked = true
		case strings.Contains(got, `"status":"working"`):
		default:
			expect(t, got, `{"jsonrpc":"2.0","method":"notifications/tasks",..."status":"completed",..."text":"{\"v\":1} decline"...`)
			ended = true
		}
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"L"}}`)
}

// Two processes, one after the other, on one store on disk is host's test; here
// the second one finds the first dead.
func TestTaskOfADeadHost(t *testing.T) {
	h := errands{newHouse()}
	store := memory.Open()
	id := serve(t, h, taskOptions(store)).create("1", "optional.wait", `{"gate":"g"}`)
	expect(t, serve(t, h, taskOptions(store)).ask(taskCall("1", "get", id)),
		`..."status":"failed","statusMessage":"the host that ran it has ended",..."error":{"code":-32000,"message":"unavailable: the host that ran it has ended"}}}`)
	close(h.gate("g"))
}

func FuzzTaskRequests(f *testing.F) {
	for _, method := range []string{"get", "update", "cancel"} {
		f.Add(method, []byte(`{"taskId":"AAAAAAAAAAAAAAAAAAAAAAAAAA","inputResponses":{"1.x":{"action":"accept"}}}`))
	}
	f.Add("update", []byte(`{"taskId":7,"inputResponses":[]}`))
	f.Fuzz(func(t *testing.T, method string, params []byte) {
		var m map[string]json.RawMessage
		if json.Unmarshal(params, &m) != nil || m == nil {
			t.Skip()
		}
		m["_meta"] = json.RawMessage(metaTasks[len(`"_meta":`):])
		body, err := json.Marshal(m)
		if err != nil || bytes.ContainsAny(body, "\r\n") {
			t.Skip()
		}
		name, _ := json.Marshal("tasks/" + method)
		got := piped(t, errands{newHouse()}, taskOptions(memory.Open()), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}`, name, body))
		if len(got) != 1 || !strings.Contains(got[0], `"error"`) {
			t.Fatalf("%s", got)
		}
	})
}

// jobbing is a house one of whose tools starts background jobs.
type jobbing struct {
	errands
	cancelled chan string
}

func (j jobbing) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	_, tool, ok := strings.Cut(c.Tool, ".")
	if !ok {
		tool = c.Tool
	}
	if jobs, ok := map[string]int64{"start": 1, "several": 3, "many": 100}[tool]; ok {
		for n := range jobs {
			emit(sdk.Event{Kind: sdk.EventJob, Job: 8 - jobs + n, Message: "shell"})
		}
		r := sdk.Text("started")
		r.Meta = json.RawMessage(`{"io.modelcontextprotocol/related-task":{"taskId":"forged"},"skill/related-tasks":[{"taskId":"forged"}]}`)
		return r, nil
	}
	return j.errands.Call(ctx, c, emit)
}

func (jobbing) JobID(s sdk.Scope, e sdk.Event) string {
	return fmt.Sprintf("job-%s-%s-%d", s.Caller, e.Message, e.Job)
}

func (jobbing) Job(_ context.Context, s sdk.Scope, id string) (conversation.Job, error) {
	if id != "job-"+s.Caller+"-shell-7" {
		return conversation.Job{}, &sdk.Error{Kind: sdk.NotFound, What: "there is no such task"}
	}
	return conversation.Job{Task: task.Task{ID: id, Status: task.Completed}, Result: sdk.Text("the end")}, nil
}

func (j jobbing) CancelJob(ctx context.Context, s sdk.Scope, id string) error {
	_, err := j.Job(ctx, s, id)
	if err == nil {
		j.cancelled <- id
	}
	return err
}

// A result names the job that its call has started, to a client that can ask for
// it, and only the host can name one.
func TestJobsAsTasks(t *testing.T) {
	h := jobbing{errands{newHouse()}, make(chan string, 1)}
	o := taskOptions(memory.Open())
	o.TaskAfter = time.Hour // nothing here takes long
	s := serve(t, h, o)
	expect(t, s.ask(toolCall("1", "start", `{}`, metaPlain)), `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"skill","version":"1"}},"content":...`)
	expect(t, s.ask(toolCall("2", "start", `{}`, metaTasks)), `...,"io.modelcontextprotocol/related-task":{"taskId":"job-alice-shell-7"}},"content":[...started...`)
	const three = `"io.modelcontextprotocol/related-task":{"taskId":"job-alice-shell-7"},"skill/related-tasks":[{"taskId":"job-alice-shell-5"},{"taskId":"job-alice-shell-6"},{"taskId":"job-alice-shell-7"}]}`
	expect(t, s.ask(toolCall("7", "several", `{}`, metaTasks)), `..."resultType":"complete",...`+three+`,"content":[...started...`)
	expect(t, s.ask(toolCall("8", "several", `{}`, metaPlain)), `{"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"skill","version":"1"}},"content":...`)
	if got := s.ask(toolCall("9", "many", `{}`, metaTasks)); strings.Count(got, "job-alice-shell-") != 33 || !strings.Contains(got, `[{"taskId":"job-alice-shell--24"},`) || strings.Contains(got, "forged") {
		t.Errorf("the last 32 of many are named, the very last twice: %s", got)
	}
	// What a call says that became a task is in the result of the task.
	expect(t, s.until(s.create("10", "optional.several", `{}`), "completed"), `..."result":{"resultType":"complete",...`+three+`,"content":[...started...`)
	expect(t, s.ask(toolCall("12", "long.several", `{}`, metaTasks)), `..."resultType":"complete",...`+three+`,"content":[...started...`)
	expect(t, s.ask(taskCall("3", "get", "job-alice-shell-7")), `..."status":"completed",..."result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"skill","version":"1"}},"content":[...the end...`)
	expect(t, s.ask(taskCall("4", "update", "job-alice-shell-7")), `{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete",...`)
	expect(t, s.ask(taskCall("5", "cancel", "job-alice-shell-7")), `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete",...`)
	if got := <-h.cancelled; got != "job-alice-shell-7" {
		t.Error(got)
	}
	for _, method := range []string{"get", "update", "cancel"} {
		expect(t, s.ask(taskCall("6", method, "job-bob-shell-7")), `{"jsonrpc":"2.0","id":6,"error":{"code":-32602,...`)
	}
}
