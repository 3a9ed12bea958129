package message

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/skillhost/skill/host/mcp/task"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// TasksExtension is the name of the extension with which a call may be answered
// by a task (SEP-2663).
const TasksExtension = "io.modelcontextprotocol/tasks"

// NoTasks is the Fault of a request that needs a client with tasks.
func NoTasks() *wire.Fault {
	return MissingCapability(map[string]any{"extensions": map[string]any{TasksExtension: struct{}{}}})
}

// HasTasks reports whether the client said, with this request, that it has the
// extension for tasks.
func (p *Peer) HasTasks() bool {
	_, ok := p.Extensions[TasksExtension]
	return ok
}

// TaskID reads the id of a task from the parameters of a tasks/get, tasks/update
// or tasks/cancel.
func (r *Request) TaskID() (string, *wire.Fault) {
	if !wire.IsObject(r.Params) {
		return "", wire.BadParams("params is not an object")
	}
	id, ok := wire.Text(r.Members.TaskID)
	if !ok || id == "" {
		return "", wire.BadParams("taskId is not a string")
	}
	return id, nil
}

// TaskAnswers reads the inputResponses of a tasks/update, of which only those to
// open questions count: a client may send late what nobody waits for.
func (r *Request) TaskAnswers(open map[string]sdk.Question) (map[string]sdk.Answer, *wire.Fault) {
	var given map[string]raw
	if !wire.IsObject(r.Members.Responses) || json.Unmarshal(r.Members.Responses, &given) != nil {
		return nil, wire.BadParams("inputResponses is not an object")
	}
	out := map[string]sdk.Answer{}
	for key, v := range given {
		if _, ok := open[key]; !ok {
			continue
		}
		a, err := ReadAnswer(v)
		if err != nil {
			return nil, wire.BadParams("inputResponses: " + strconv.Quote(wire.Clip(key)) + ": " + err.Error())
		}
		out[key] = a
	}
	return out, nil
}

// taskTime is ISO 8601 as most clients write it.
const taskTime = "2006-01-02T15:04:05.000Z"

// AppendTask appends the members that all tells of a task have, as seen at now.
func AppendTask(l *wire.List, t *task.Task, now time.Time) {
	l.Text("taskId", t.ID)
	l.Text("status", string(t.Status))
	l.Optional("statusMessage", t.Message)
	l.Text("createdAt", t.Created.UTC().Format(taskTime))
	l.Text("lastUpdatedAt", t.Updated.UTC().Format(taskTime))
	l.Key("ttlMs")
	if t.Expires.IsZero() {
		l.B = append(l.B, "null"...)
	} else {
		l.B = strconv.AppendInt(l.B, max(1, t.Expires.Sub(t.Created).Milliseconds()), 10)
	}
	l.Key("pollIntervalMs")
	l.B = strconv.AppendInt(l.B, pollInterval(now.Sub(t.Created)).Milliseconds(), 10)
}

// pollInterval lets a client find out soon what ends soon, and ask seldom after
// what takes long.
func pollInterval(age time.Duration) time.Duration {
	return min(max(age/4, 500*time.Millisecond), 10*time.Second).Round(time.Millisecond)
}

// AppendDetails appends AppendTask and what the task's status brings: what it
// asks, its result or its error.
func AppendDetails(l *wire.List, t *task.Task, now time.Time) {
	AppendTask(l, t, now)
	switch t.Status {
	case task.Waiting:
		appendRequests(l, t.Questions)
	case task.Completed:
		l.Raw("result", t.Body)
	case task.Failed:
		if t.Body != nil {
			l.Raw("error", t.Body)
			return
		}
		l.Comma()
		l.B = (&wire.Fault{Code: wire.CodeServer, Message: "unavailable: " + t.Message}).Append(l.B)
	}
}

// appendRequests appends the member "inputRequests".
func appendRequests(l *wire.List, questions map[string]sdk.Question) {
	l.Key("inputRequests")
	in := wire.NewList(append(l.B, '{'))
	for _, id := range slices.Sorted(maps.Keys(questions)) {
		q := questions[id]
		in.Comma()
		in.B = append(wire.AppendString(in.B, id), ":{"...)
		in.B = append(AppendQuestion(in.B, &q, id), '}')
	}
	l.B = append(in.B, '}')
}

// TaskChanged begins the notification of how a task is now, for the subscription
// of that id.
func TaskChanged(t *task.Task, now time.Time, subscription json.RawMessage) wire.List {
	l := notification("notifications/tasks")
	subscribed(&l, subscription)
	AppendDetails(&l, t, now)
	return l
}

// TaskBody is what a task keeps of a result or an error that Era.Result or
// Fault.Append made: the value, without the name of the member.
func TaskBody(member []byte) json.RawMessage {
	for i, c := range member {
		if c == ':' { // the name has none
			return json.RawMessage(member[i+1:])
		}
	}
	return nil
}

// HeaderName returns the member of a request's params that the header Mcp-Name
// repeats, or nil if the request has none such.
func HeaderName(method string, p *Members) json.RawMessage {
	switch method {
	case "tools/call", "prompts/get":
		return p.Name
	case "resources/read":
		return p.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		return p.TaskID
	}
	return nil
}
