package host

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// newLibrary installs and builds the skill of testdata/reading, as its author
// would, and returns a host that allows it.
func newLibrary(t *testing.T) (*world, *Host) {
	t.Helper()
	w := newWorld(t)
	dir := filepath.Join(w.home, "skills", "reading")
	manifest, err := os.ReadFile("testdata/reading/skill.toml")
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "skills/reading/skill.toml", string(manifest))
	w.write(t, "skills/reading/readme.md", "# Library")
	w.write(t, "skills/reading/cover.png", "\x89PNG\x00")
	w.write(t, "skills/reading/letter.md", "Dear {{who}}, {{tone}}")
	w.write(t, "skills/reading/SKILL.md", "---\nname: reading\ndescription: Books.\n---\nUse $ARGUMENTS.")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", filepath.Join(dir, "reading.wasm"), "./testdata/reading")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n, err := WriteTools(t.Context(), dir); err != nil || n != 4 {
		t.Fatal(n, err)
	}
	h := w.open(t)
	s, err := h.Catalog.Skill("reading")
	if err != nil {
		t.Fatal(err, h.Problems())
	}
	w.write(t, "policy.toml", fmt.Sprintf("[skills.reading]\nallow = true\ndigest = %q\n", s.Home.Digest))
	eventually(t, "the policy is reloaded", func() bool { return h.Dispatcher.VisibleSkill(s, h.Scope()) })
	return w, h
}

func ask(t *testing.T, h *Host, kind sdk.CallKind, what, args string) (sdk.Result, error) {
	t.Helper()
	return h.Call(t.Context(), sdk.Call{Kind: kind, Tool: what, Args: json.RawMessage(args), Scope: h.Scope(), Client: sdk.Client{Form: true, URL: true}}, nil)
}

// parts are the contents of a result as one line.
func parts(r sdk.Result) string {
	var list []string
	for _, c := range r.Content {
		list = append(list, strings.Trim(fmt.Sprintf("%s|%s|%s|%s|%s|%x", c.Type, c.Role, c.URI, c.MIME, c.Text, c.Data), "|"))
	}
	return strings.Join(list, " ")
}

// all lists everything of a kind, one item a page, but for what the built-in
// tools serve.
func all(t *testing.T, h *Host, kind conversation.Kind) (list []string) {
	t.Helper()
	for cursor := ""; ; {
		p, err := h.List(t.Context(), h.Scope(), kind, cursor, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range p.Items {
			if !builtinOffer.Match(item) {
				list = append(list, string(item))
			}
		}
		if cursor = p.Next; cursor == "" {
			return list
		}
	}
}

var builtinOffer = regexp.MustCompile(`^{"uri(Template)?":"(callback|plan|skill-output|task)://`)

// TestOffers runs a real guest that serves resources, prompts and completions.
func TestOffers(t *testing.T) {
	w, h := newLibrary(t)
	for kind, want := range map[conversation.Kind][]string{
		conversation.Resources: {`{"uri":"lib://cover","name":"cover","mimeType":"image/png","size":5}`, `{"uri":"lib://readme","name":"readme","mimeType":"text/markdown","size":9}`,
			`{"uri":"skill://invoke-skill/SKILL.md","name":"invoke-skill","description":"How skills are found and invoked on this host.","mimeType":"text/markdown","size":287}`,
			`{"uri":"skill://reading/SKILL.md","name":"reading","description":"Books.","mimeType":"text/markdown","size":57}`,
			`{"uri":"ui://reading/view","name":"view","mimeType":"text/html;profile=mcp-app","size":9}`},
		conversation.Templates: {`{"uriTemplate":"lib://books/{id}","name":"book","mimeType":"text/plain"}`},
		conversation.Prompts: {`{"name":"reading","description":"Books.","arguments":[{"name":"arguments","description":"what the instructions are to be applied to"}]}`,
			`{"name":"reading.chat","arguments":[{"name":"who","required":true}]}`, `{"name":"reading.letter","description":"A letter.","arguments":[{"name":"who","required":true}]}`},
	} {
		if got := all(t, h, kind); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", kind, strings.Join(got, "\n"))
		}
	}
	tools := strings.Join(all(t, h, conversation.Tools), "\n")
	if strings.Contains(tools, "reading.read") || !strings.Contains(tools, `"name":"reading.touch"`) || !strings.Contains(tools, `"_meta":{"ui":{"resourceUri":"ui://reading/view"}}`) || !strings.Contains(tools, "i.png") || strings.Contains(tools, `"hidden"`) {
		t.Errorf("tools: %s", tools)
	}
	for _, x := range []struct {
		kind       sdk.CallKind
		what, args string
		want       string // or the kind of the error
	}{
		{sdk.CallResource, "lib://readme", "", "resource||lib://readme|text/markdown|# Library"},
		{sdk.CallResource, "lib://cover", "", "resource||lib://cover|image/png||89504e4700"},
		{sdk.CallResource, "lib://books/3", "", "resource||lib://books/3|text/plain|book 3 at lib://books/3"},
		{sdk.CallResource, "lib://books/all", "", "resource||lib://books/all|text/plain|t resource||lib://books/all|image/png||0102 resource||lib://books/all|audio/wav||03 resource||lib://books/b|application/zip||04"},
		{sdk.CallResource, "lib://books/missing", "", "not_found"},
		{sdk.CallResource, "lib://books/%2e%2e", "", "invalid"},
		{sdk.CallResource, "lib://other", "", "not_found"},
		{sdk.CallResource, "skill://reading/letter.md", "", "resource||skill://reading/letter.md|text/markdown|Dear {{who}}, {{tone}}"},
		{sdk.CallResource, "skill://reading/cover.png", "", "resource||skill://reading/cover.png|image/png||89504e4700"},
		{sdk.CallResource, "skill://reading/none.md", "", "not_found"},
		{sdk.CallResource, "skill://reading", "", "not_found"},
		{sdk.CallResource, "skill://reading/../reading/SKILL.md", "", "invalid"},
		{sdk.CallResource, "skill://review/SKILL.md", "", "denied"}, // nobody has allowed it
		{sdk.CallPrompt, "reading.letter", `{"who":"{{who}}"}`, "text|user|||Dear {{who}}, {{tone}}"},
		{sdk.CallPrompt, "reading_letter", `{}`, "invalid"},
		{sdk.CallPrompt, "reading.chat", `{"who":"Ann"}`, "text|user|||I am Ann image|assistant||image/png||09 resource|user|lib://books/1|text/plain|embedded"},
		{sdk.CallTool, "reading.read", `{"uri":"lib://books/3"}`, "not_found"},
		{sdk.CallTool, "InvokeSkill", `{"skill_name":"reading","tool":"read"}`, "not_found"},
	} {
		r, err := ask(t, h, x.kind, x.what, x.args)
		got := parts(r)
		if err != nil {
			got = string(sdk.KindOf(err))
		}
		if got != x.want {
			t.Errorf("%s %s %s: %s (%v), want %s", x.kind, x.what, x.args, got, err, x.want)
		}
	}
	if r, err := ask(t, h, sdk.CallPrompt, "reading", `{"arguments":"care"}`); err != nil || !strings.Contains(r.Content[0].Text, "Use care.") || r.Content[0].Role != "user" {
		t.Errorf("%s, %v", parts(r), err)
	}
	for args, want := range map[string]string{
		`{"prompt":"reading.chat","argument":{"name":"who","value":"A"},"context":{"tone":"!"}}`: `{"values":["who=A!"],"total":1,"hasMore":false}`,
		`{"uri":"lib://books/{id}","argument":{"name":"id","value":"O"}}`:                        `{"values":["one"],"total":1,"hasMore":false}`,
	} {
		if r, err := ask(t, h, sdk.CallCompletion, "x", args); err != nil || string(r.Structured) != want {
			t.Errorf("%s: %s, %v", args, r.Structured, err)
		}
	}
	r, err := ask(t, h, sdk.CallResource, "lib://books/ask", "")
	if err != nil || len(r.Questions) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = h.Call(t.Context(), sdk.Call{Kind: sdk.CallResource, Tool: "lib://books/ask", Scope: h.Scope(), State: r.State,
		Answers: map[string]sdk.Answer{"who": {Action: "accept", Content: json.RawMessage(`{"name":"Ann"}`)}, "web": {Action: "decline"}}}, nil)
	if err != nil || !strings.Contains(parts(r), `{"name":"Ann"}decline`) {
		t.Errorf("%s, %v", parts(r), err)
	}
	denyTool(t, w, h)
}

// denyTool checks that who may not call a tool does not see what it serves.
func denyTool(t *testing.T, w *world, h *Host) {
	s, err := h.Catalog.Skill("reading")
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "policy.toml", fmt.Sprintf("[skills.reading]\nallow = true\ndigest = %q\n[skills.reading.tools.read]\nallow = false\n[skills.reading.tools.\"resources.cover\"]\nallow = false\n", s.Home.Digest))
	eventually(t, "the template is gone", func() bool { return len(all(t, h, conversation.Templates)) == 0 })
	if got := strings.Join(all(t, h, conversation.Resources), ""); strings.Contains(got, "cover") || !strings.Contains(got, "readme") {
		t.Errorf("resources: %s", got)
	}
	for _, uri := range []string{"lib://books/1", "lib://cover"} {
		if _, err := ask(t, h, sdk.CallResource, uri, ""); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := ask(t, h, sdk.CallCompletion, "x", `{"uri":"lib://books/{id}","argument":{"name":"id","value":""}}`); sdk.KindOf(err) != sdk.NotFound {
		t.Error(err)
	}
}

// TestAnnounced checks who is told of what a guest announces.
func TestAnnounced(t *testing.T) {
	w, h := newLibrary(t)
	hear := func(scope sdk.Scope) chan conversation.Change {
		heard := make(chan conversation.Change, 64)
		seq := h.Watch(t.Context(), scope)
		go func() {
			for c := range seq {
				heard <- c
			}
		}()
		return heard
	}
	other := h.Scope()
	other.Caller = "other"
	s, err := h.Catalog.Skill("reading")
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "policy.toml", fmt.Sprintf("[skills.reading]\nallow = true\ndigest = %q\n[callers.other]\ntools.deny = [\"reading.*\"]\n", s.Home.Digest))
	eventually(t, "the other caller sees nothing of it", func() bool { return !h.Dispatcher.VisibleSkill(s, other) })
	mine, others := hear(h.Scope()), hear(other)
	if _, err := ask(t, h, sdk.CallTool, "reading.touch", "{}"); err != nil {
		t.Fatal(err)
	}
	next := func(heard chan conversation.Change) conversation.Change {
		select {
		case c := <-heard:
			return c
		case <-time.After(30 * time.Second):
			t.Fatal("nothing was heard")
			return conversation.Change{}
		}
	}
	c := next(mine)
	for slices.Contains(everything, c) { // the policy was another one, just now
		c = next(mine)
	}
	if want := (conversation.Change{Kind: conversation.Resources, URI: "lib://books/7"}); c != want {
		t.Errorf("heard %+v, want %+v", c, want)
	}
	if c = next(mine); c != (conversation.Change{Kind: conversation.Resources}) {
		t.Errorf("heard %+v", c)
	}
	before, err := h.List(t.Context(), h.Scope(), conversation.Resources, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	h.changes.announce()
	for range everything {
		if c := next(others); !slices.Contains(everything, c) {
			t.Errorf("announced_to_who_may_not_see: %+v", c)
		}
	}
	if after, err := h.List(t.Context(), h.Scope(), conversation.Resources, "", 10); err != nil || after.Version == before.Version {
		t.Errorf("the version stays %d, %v", after.Version, err)
	}
}

// TestLate checks that a watcher which is late misses no list.
func TestLate(t *testing.T) {
	c := changes{next: make(chan struct{})}
	for i := range maxNews + 1 {
		c.tell(news{change: conversation.Change{Kind: conversation.Prompts, URI: fmt.Sprint(i)}})
	}
	if fresh, now, _ := c.since(0); len(fresh) != 1 || fresh[0] != (news{}) || now != maxNews+1 {
		t.Errorf("%d news, %d", len(fresh), now)
	}
	if fresh, _, _ := c.since(1); len(fresh) != maxNews || fresh[0].change.URI != "1" {
		t.Errorf("%d news", len(fresh))
	}
	if fresh, _, _ := c.since(maxNews + 1); len(fresh) != 0 {
		t.Errorf("%d news", len(fresh))
	}
}
