package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

func imported(t *testing.T, h *guesttest.Host, in request) (reply, string, error) {
	t.Helper()
	in.Action = "import"
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return call(t, h, string(b))
}

func TestImport(t *testing.T) {
	for name, c := range map[string]struct {
		in   request
		want string // the tasks, as export writes them; an error if it starts with "!"
	}{
		"headings": {request{Document: "# Release\r\n\r\nSome words.\n\n- [x] tag it\n* [ ] tell\tpeople\n## Docs ##\n1. [X] write\n2) [x] read\n"},
			"- [ ] Release\n  - [x] tag it\n  - [ ] tell people\n- [x] Docs\n  - [x] write\n  - [x] read\n"},
		"nested":            {request{Document: "- [ ] a\n  - [x] b\n    - [ ] c\n- [x] d\n"}, "- [ ] a\n  - [x] b\n  - [ ] c\n- [x] d\n"},
		"indented as whole": {request{Document: "  - [ ] a\n    - [x] b\n"}, "- [x] a\n  - [x] b\n"},
		"fenced":            {request{Document: "- [ ] a\n```md\n- [ ] no\n# no\n```\n~~~\n- [ ] no\n```\n~~~\n- [ ] b"}, "- [ ] a\n- [ ] b\n"},
		"into a new task":   {request{Text: "All", Document: "# x\n- [ ] a\n# y\n- [x] b"}, "- [ ] All\n  - [ ] a\n  - [x] b\n"},
		"todo list":         {request{Document: `[{"content":"a","status":"completed","activeForm":"doing a"},{"content":"b\nb","status":"in_progress"}]`}, "- [ ] To-do list\n  - [x] a\n  - [ ] b b\n"},
		"todo object":       {request{Text: "T", Document: ` {"todos":[{"text":"a","completed":true}]}`}, "- [x] T\n  - [x] a\n"},
		"headings alone":    {request{Document: "# a\n# b"}, "!no check boxes"},
		"nothing":           {request{Document: " \n"}, "!no document"},
		"broken JSON":       {request{Document: `[{"content":`}, "!no to-do list"},
		"JSON of another":   {request{Document: `{"tasks":[]}`}, "!no check boxes"},
		"task unknown":      {request{TaskID: 9, Document: "- [ ] a"}, "!there is no task 9"},
		"long":              {request{Document: "- [ ] " + strings.Repeat("x", maxText+1)}, "!too long"},
		"long step":         {request{Text: "a", Document: "- [ ] " + strings.Repeat("x", maxText+1)}, "!too long"},
		"many steps":        {request{Text: "a", Document: strings.Repeat("- [ ] x\n", maxSteps+1)}, "!500 steps already"},
		"many tasks":        {request{Document: strings.Repeat("- [ ] x\n", maxTasks+1)}, "!500 tasks already"},
		"many empty boxes":  {request{Document: strings.Repeat("- [ ]\n- [ ] \n", 10_000)}, "!no check boxes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &guesttest.Host{}
			_, _, err := imported(t, h, c.in)
			out, text, exportErr := call(t, h, `{"action":"export"}`)
			if exportErr != nil {
				t.Fatal(exportErr)
			}
			if want, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), want) || out.Document != "" {
					t.Errorf("got %v, and %q was kept", err, out.Document)
				}
				return
			}
			if err != nil || out.Document != c.want || text != c.want {
				t.Errorf("%v, got\n%s", err, out.Document)
			}
		})
	}
}

// TestImportInto: a list is added to a task there is, once and only to the
// version that was meant.
func TestImportInto(t *testing.T) {
	h := &guesttest.Host{}
	if _, _, err := call(t, h, `{"action":"create","text":"a"}`); err != nil {
		t.Fatal(err)
	}
	got, text, err := imported(t, h, request{TaskID: 1, IfVersion: 1, Document: "- [x] one\n- [ ] two"})
	if err != nil || len(got.Tasks) != 1 || got.Tasks[0].Version < 2 || len(got.Tasks[0].Steps) != 2 || !strings.Contains(text, "Imported 2 check boxes into 1 tasks.") {
		t.Errorf("%+v, %q, %v", got, text, err)
	}
	if _, _, err := imported(t, h, request{TaskID: 1, IfVersion: 1, Document: "- [ ] three"}); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("an old version: %v", err)
	}
}

// TestExportImport: what is exported reads back the same.
func TestExportImport(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := &list{}
		var v view
		for i := range 1 + r.IntN(4) {
			x, err := l.begin(fmt.Sprintf("task %d [ ] # - [x]", i), &v)
			if err != nil {
				t.Fatal(err)
			}
			for j := range r.IntN(4) {
				if _, err := x.add(request{Text: fmt.Sprintf("- [ ] step %d", j)}); err != nil {
					t.Fatal(err)
				}
				x.Steps[j].Done = r.IntN(2) == 0
			}
			x.Done = len(x.Steps) == 0 && r.IntN(2) == 0
			x.settle()
		}
		doc := markdown(l.Tasks)
		back := &list{}
		if _, err := back.apply(request{Action: "import", Document: doc}); err != nil {
			t.Fatal(err)
		}
		if again := markdown(back.Tasks); again != doc {
			t.Fatalf("seed %d:\n%s\nreads back as\n%s", seed, doc, again)
		}
	}
}

func FuzzImport(f *testing.F) {
	for _, doc := range []string{"- [ ] a\n  - [x] b", "# a\n- [x] b\n```\n- [ ] c", `[{"content":"a"}]`, "\t1. [X] a\r\n~~~", "{}"} {
		f.Add(doc, 0)
		f.Add(doc, 1)
	}
	f.Fuzz(func(t *testing.T, doc string, id int) {
		l := &list{}
		if _, err := l.apply(request{Action: "create", Text: "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.apply(request{Action: "import", Document: doc, TaskID: id}); err != nil {
			return
		}
		check(t, l, map[int]bool{1: true})
	})
}

// TestUnreadable: a list that cannot be read is kept, and said to be.
func TestUnreadable(t *testing.T) {
	h := &guesttest.Host{}
	h.Set("workspace", key, []byte(`{"format":1,"tasks":[{`))
	_, text, err := call(t, h, `{"action":"create","text":"new"}`)
	if err != nil || !strings.Contains(text, "could not be read") || !strings.Contains(text, key+".unreadable.1") || !strings.Contains(text, "Created task 1") {
		t.Fatalf("%q, %v", text, err)
	}
	if b := h.Get("workspace", key+".unreadable.1"); string(b) != `{"format":1,"tasks":[{` {
		t.Errorf("kept: %q", b)
	}
	if _, text, err = call(t, h, `{"action":"list"}`); err != nil || strings.Contains(text, "could not be read") || !strings.Contains(text, "new") {
		t.Errorf("afterwards: %q, %v", text, err)
	}
}

func TestResources(t *testing.T) {
	h := &guesttest.Host{}
	read := func(tool, args string) (string, error) {
		r, err := h.Call(t.Context(), tool, args)
		if err != nil {
			return "", err
		}
		return r.Content[0].Text, nil
	}
	if text, err := read("read_current", `{}`); err != nil || !strings.Contains(text, "no current task") {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := imported(t, h, request{Document: "# a\n- [x] b\n- [ ] c\n# d\n- [ ] e"}); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"read_current": "## Task 1: a (in progress, current)\n- [x] 1. b\n- [ ] 2. c\n", "read_list": "## Task 2: d (pending)\n- [ ] 1. e\n"} {
		if text, err := read(tool, `{}`); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %q, %v", tool, text, err)
		}
	}
	if text, err := read("read_task", `{"id":"2"}`); err != nil || text != "## Task 2: d (pending)\n- [ ] 1. e\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, id := range []string{"3", "02", "", "current", "-1"} {
		if text, err := read("read_task", `{"id":"`+id+`"}`); sdk.KindOf(err) != sdk.NotFound {
			t.Errorf("task %q: %q, %v", id, text, err)
		}
	}
	r, err := h.Call(t.Context(), "complete_task", `{"value":""}`)
	if err != nil || string(r.Structured) != `{"values":["1","2"],"total":2,"hasMore":false}` {
		t.Errorf("%s, %v", r.Structured, err)
	}
}
