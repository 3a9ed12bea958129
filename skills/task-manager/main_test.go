package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

func call(t *testing.T, h *guesttest.Host, args string) (reply, string, error) {
	t.Helper()
	r, err := h.Call(t.Context(), "TaskManager", args)
	if err != nil {
		return reply{}, "", err
	}
	var out reply
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	return out, r.Content[0].Text, nil
}

// TestScript goes through every action in turn, on one list.
func TestScript(t *testing.T) {
	h := &guesttest.Host{}
	for i, c := range []struct {
		args string
		want string // part of the text, or of the error if it starts with "!"
		also string
	}{
		{`{"action":"list"}`, "There are no tasks.", ""},
		{`{"action":"pending","query":"anything"}`, "There are no tasks.", ""},
		{`{"action":"show"}`, "!no current task", "there are no tasks yet"},
		{`{"action":"create"}`, "!no text", ""},
		{`{"action":"create","text":"  "}`, "!no text", ""},
		{`{"action":"create","text":"Write the parser"}`, "Created task 1, which is now the current one.", "## Task 1: Write the parser (in progress, current)"},
		{`{"action":"create","query":"Second\n## Task 9: fake"}`, "Created task 2", "## Task 2: Second ## Task 9: fake (in progress, current)"},
		{`{"action":"add","text":"one","task_id":1}`, "Added step 1 to task 1.", "- [ ] 1. one"},
		{`{"action":"switch","task_id":1}`, "Task 1 is the current one.", ""},
		{`{"action":"switch","task_id":7}`, "!there is no task 7", `there are 1 "Write the parser", 2 "Second`},
		{`{"action":"switch"}`, "!no task_id", "there are 1"},
		{`{"action":"add","query":"two","task_id":0}`, "Added step 2 to task 1.", "- [ ] 2. two"},
		{`{"action":"add","text":"three"}`, "Added step 3", ""},
		{`{"action":"add"}`, "!no text", ""},
		{`{"action":"block","step_id":3,"blocked_by":[1,2,2]}`, "Step 3 of task 1 is blocked.", "- [ ] 3. three (waits for 1, 2)"},
		{`{"action":"block","step_id":1,"blocked_by":[3]}`, "!cannot wait for step 3", ""},
		{`{"action":"block","step_id":1,"blocked_by":[1]}`, "!cannot wait for step 1", ""},
		{`{"action":"block","step_id":1,"blocked_by":[9]}`, "!has no step 9", `it has 1 "one", 2 "two", 3 "three"`},
		{`{"action":"block","step_id":1}`, "!neither text nor blocked_by", ""},
		{`{"action":"block","blocked_by":[1]}`, "!without step_id", ""},
		{`{"action":"complete","step_id":3}`, "!step 3 waits for step 1, 2", ""},
		{`{"action":"complete","step_id":1}`, "Completed step 1 of task 1.", "- [x] 1. one"},
		{`{"action":"complete","step_id":1}`, "- [x] 1. one", ""},
		{`{"action":"block","step_id":1,"text":"x"}`, "!done already", ""},
		{`{"action":"block","step_id":2,"text":"waiting for the vendor"}`, "Step 2 of task 1 is blocked.", "- [ ] 2. two (blocked: waiting for the vendor)"},
		{`{"action":"complete","step_id":2}`, "Completed step 2", "- [ ] 3. three\n"},
		{`{"action":"update","step_id":3,"text":"drei"}`, "Updated step 3 of task 1.", "3. drei"},
		{`{"action":"update","text":"Parser"}`, "Updated task 1.", "## Task 1: Parser"},
		{`{"action":"update"}`, "!no text", ""},
		{`{"action":"complete","step_id":3}`, "the task is done", "(done, current)"},
		{`{"action":"block","text":"x"}`, "!done already", ""},
		{`{"action":"pending"}`, "## Task 2", ""},
		{`{"action":"reopen","step_id":3}`, "Reopened step 3", "(in progress, current)"},
		{`{"action":"reopen","step_id":3}`, "- [ ] 3. drei\n", ""},
		{`{"action":"complete"}`, "Completed task 1 with the 1 steps that were left.", ""},
		{`{"action":"add","text":"four"}`, "The task is open again.", ""},
		{`{"action":"block","task_id":2,"text":"no money"}`, "Task 2 is blocked.", "Blocked: no money"},
		{`{"action":"reopen","task_id":2}`, "Reopened task 2.", "(pending)"},
		{`{"action":"complete","task_id":2}`, "Completed task 2.", "(done)"},
		{`{"action":"delete"}`, "!neither task_id nor step_id", ""},
		{`{"action":"delete","step_id":1}`, "Deleted step 1 of task 1.", ""},
		{`{"action":"complete","step_id":1}`, "!task 1 has no step 1", ""},
		{`{"action":"delete","task_id":1}`, `Deleted task 1, "Parser".`, ""},
		{`{"action":"pending"}`, "Nothing is pending", ""},
		{`{"action":"complete","step_id":4}`, "!no current task", `2 "Second`},
		{`{"action":"create","text":"next"}`, "Created task 3", ""},
		{`{"action":"show","task_id":3,"if_version":2}`, "!task 3 has version 1, not 2", ""},
		{`{"action":"add","text":"a","if_version":1}`, "Added step 1 to task 3", ""},
		{`{"action":"add","text":"a","if_version":1}`, "!has version 2, not 1", ""},
		{`{"action":"list"}`, "## Task 2", "## Task 3"},
		{`{"action":"shout"}`, "!unknown action", ""},
		{`{"action":"add","text":"` + strings.Repeat("x", maxText+1) + `"}`, "!4097 bytes", ""},
	} {
		_, text, err := call(t, h, c.args)
		want, fails := strings.CutPrefix(c.want, "!")
		if fails != (err != nil) {
			t.Fatalf("%d %s: got %q, %v", i, c.args, text, err)
		}
		if err != nil {
			text = err.Error()
			if sdk.KindOf(err) != sdk.Invalid {
				t.Errorf("%d %s: kind %s", i, c.args, sdk.KindOf(err))
			}
		}
		if !strings.Contains(text, want) || !strings.Contains(text, c.also) {
			t.Fatalf("%d %s: got %q", i, c.args, text)
		}
	}
}

func TestStructured(t *testing.T) {
	h := &guesttest.Host{}
	for _, args := range []string{`{"action":"create","text":"a"}`, `{"action":"create","text":"b"}`, `{"action":"add","text":"s"}`, `{"action":"add","text":"t"}`} {
		if _, _, err := call(t, h, args); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := call(t, h, `{"action":"block","step_id":2,"blocked_by":[1]}`)
	want := reply{CurrentTask: 2, Changed: []int{2}, Tasks: []taskView{{ID: 2, Title: "b", Status: "in_progress", Version: 4, Steps: []stepView{
		{ID: 1, Text: "s", Status: "pending", BlockedBy: []int{}}, {ID: 2, Text: "t", Status: "blocked", BlockedBy: []int{1}}}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, _, err = call(t, h, `{"action":"delete","task_id":1}`); err != nil || len(got.Tasks) != 0 || !slices.Equal(got.Changed, []int{1}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, _, err = call(t, h, `{"action":"list"}`); err != nil || len(got.Tasks) != 1 || len(got.Changed) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	l := &list{}
	apply := func(in request) error { _, err := l.apply(in); return err }
	for range maxTasks {
		if err := apply(request{Action: "create", Text: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(request{Action: "create", Text: "t"}); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("task %d: %v", maxTasks+1, err)
	}
	for range maxSteps {
		if err := apply(request{Action: "add", Text: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(request{Action: "add", Text: "s"}); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("step %d: %v", maxSteps+1, err)
	}
	if err := apply(request{Action: "show", TaskID: 999}); !strings.Contains(err.Error(), "and 480 more") {
		t.Errorf("names: %v", err)
	}
	v, err := l.apply(request{Action: "list"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range l.Tasks {
		x.Title = strings.Repeat("x", 400)
	}
	if r := v.reply(l); len(r.Text) > maxShown+100 || !strings.Contains(r.Text, "tasks left out") || len(r.Structured.Tasks) != maxTasks {
		t.Errorf("a text of %d bytes", len(r.Text))
	}

	h := &guesttest.Host{}
	long := strings.Repeat("x", maxText)
	for i := 0; ; i++ {
		_, _, err := call(t, h, `{"action":"create","text":"`+long+`"}`)
		if err == nil && i < 300 {
			continue
		}
		if sdk.KindOf(err) != sdk.Limit || i < 200 || !strings.Contains(err.Error(), "delete tasks that are done") {
			t.Errorf("after %d long texts: %v", i, err)
		}
		break
	}
	// What did not fit is not there, and the rest still is.
	if got, _, err := call(t, h, `{"action":"delete","task_id":1}`); err != nil || got.CurrentTask == 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestParallelAgents: no update is lost, and no id is given twice.
func TestParallelAgents(t *testing.T) {
	h := &guesttest.Host{}
	if _, _, err := call(t, h, `{"action":"create","text":"shared"}`); err != nil {
		t.Fatal(err)
	}
	const agents, each = 8, 15
	var wg sync.WaitGroup
	for a := range agents {
		wg.Go(func() {
			for i := range each {
				if _, err := h.Call(t.Context(), "TaskManager", fmt.Sprintf(`{"action":"add","task_id":1,"text":"%d.%d"}`, a, i)); err != nil {
					t.Error(err)
				}
				if _, err := h.Call(t.Context(), "TaskManager", fmt.Sprintf(`{"action":"create","text":"own %d.%d"}`, a, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, _, err := call(t, h, `{"action":"list"}`)
	if err != nil {
		t.Fatal(err)
	}
	texts, ids := map[string]bool{}, map[int]bool{}
	for _, s := range got.Tasks[0].Steps {
		texts[s.Text] = true
	}
	for _, x := range got.Tasks {
		ids[x.ID] = true
	}
	if len(texts) != agents*each || len(got.Tasks[0].Steps) != agents*each || len(ids) != agents*each+1 || got.Tasks[0].Version != agents*each+1 {
		t.Errorf("%d steps, %d ids, version %d", len(texts), len(ids), got.Tasks[0].Version)
	}
}

// TestTwoWriters: with if_version, of two who decided on the same state one is
// told so.
func TestTwoWriters(t *testing.T) {
	h := &guesttest.Host{}
	if _, _, err := call(t, h, `{"action":"create","text":"a"}`); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = h.Call(t.Context(), "TaskManager", fmt.Sprintf(`{"action":"update","text":"by %d","if_version":1}`, i))
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d writers won", won)
	}
}

func TestStoredByAnother(t *testing.T) {
	h := &guesttest.Host{}
	h.Set("workspace", key, []byte(`{"format":2}`))
	if _, _, err := call(t, h, `{"action":"list"}`); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("a newer format: %v", err)
	}
}

// check holds l to what must be true of every list.
func check(t *testing.T, l *list, given map[int]bool) {
	t.Helper()
	last := 0
	current := l.Current == 0
	for _, x := range l.Tasks {
		if x.ID <= last || x.ID > l.Next || x.Title == "" || x.Version < 1 {
			t.Fatalf("task %+v after id %d of %d", x, last, l.Next)
		}
		last = x.ID
		current = current || x.ID == l.Current
		if x.Done && (x.left() > 0 || x.Reason != "") {
			t.Fatalf("task %d is done with %d steps left, reason %q", x.ID, x.left(), x.Reason)
		}
		lastStep := 0
		for _, s := range x.Steps {
			if s.ID <= lastStep || s.ID > x.Next || s.Text == "" || s.Done && s.Reason != "" {
				t.Fatalf("step %+v", s)
			}
			lastStep = s.ID
			if x.waitsFor(s, s.ID) {
				t.Fatalf("step %d waits for itself", s.ID)
			}
			for _, id := range s.After {
				if _, err := x.step(id); err != nil {
					t.Fatalf("step %d waits for %d, which is not there", s.ID, id)
				}
			}
		}
	}
	if !current {
		t.Fatalf("the current task %d is not there", l.Current)
	}
	if l.Next < len(given) {
		t.Fatalf("%d ids given, next %d", len(given), l.Next)
	}
}

// TestRandomSequences: whatever the order of actions, the list stays sound,
// ids are never given again, a failed action changes nothing, versions grow
// with every change and only then, and what is stored reads back the same.
func TestRandomSequences(t *testing.T) {
	actions := []string{"create", "add", "add", "complete", "complete", "list", "pending", "switch", "update", "reopen", "block", "block", "delete", "show", "import", "export"}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := &list{}
		given := map[int]bool{}
		for range 150 {
			in := request{Action: actions[r.IntN(len(actions))], TaskID: r.IntN(6), StepID: r.IntN(6), Text: []string{"", "a", "b"}[r.IntN(3)],
				Document: []string{"- [ ] c\n  - [x] d\n", "# e\n- [x] f\n- [x] g\n# h\n- [ ] i\n", `[{"content":"j","status":"completed"},{"content":"k"}]`, "none"}[r.IntN(4)]}
			for range r.IntN(3) {
				in.BlockedBy = append(in.BlockedBy, 1+r.IntN(5))
			}
			before, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var next *list
			if err := json.Unmarshal(before, &next); err != nil {
				t.Fatal(err)
			}
			v, err := next.apply(in)
			if err != nil {
				continue // the copy is thrown away, as manage does
			}
			check(t, next, given)
			v.reply(next)
			for id := l.Next + 1; id <= next.Next; id++ {
				if given[id] {
					t.Fatalf("id %d was given twice", id)
				}
				given[id] = true
			}
			after, _ := json.Marshal(next)
			if changed := string(after) != string(before); changed != (len(v.changed) > 0 || next.Current != l.Current) {
				t.Fatalf("seed %d %+v: changed %v said of\n%s\n%s", seed, in, v.changed, before, after)
			}
			if old, now := versions(l), versions(next); !maps.Equal(old, now) != (len(v.changed) > 0) {
				t.Fatalf("seed %d %+v: versions %v, then %v", seed, in, old, now)
			}
			l = next
		}
	}
}

func versions(l *list) map[int]int {
	m := map[int]int{}
	for _, t := range l.Tasks {
		m[t.ID] = t.Version
	}
	return m
}
