package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/wasm"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/ops"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/manifests"
	"github.com/skillhost/skill/sdk"
)

// world is what the compiled skills of this repository run in: the real
// executor and the real operations, with a store in memory.
type world struct {
	t         *testing.T
	exec      *wasm.Executor
	table     *ops.Table
	workspace string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, exec: wasm.New(wasm.Options{}), table: ops.New(ops.Deps{Store: &mapStore{items: map[string]store.Item{}}})}
	t.Cleanup(func() {
		if err := w.exec.Close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	if w.workspace, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return w
}

// tool is a loaded skill, ready to be called.
type tool struct {
	*world
	skill   *manifest.Skill
	program executor.Program
	logs    []string
}

// load loads the skill of dir; that checks its module against its manifest.
func (w *world) load(dir string) *tool {
	w.t.Helper()
	s, err := manifest.OpenBuiltin(os.DirFS(dir))
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.exec.Load(w.t.Context(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return &tool{world: w, skill: s, program: p}
}

func (o *tool) call(name, args string) (sdk.Result, error) {
	o.t.Helper()
	shipped, err := policy.Read("shipped.toml", manifests.Shipped)
	if err != nil {
		o.t.Fatal(err)
	}
	// As the binary has it: the manifest, and what built-ins are held to.
	layers := append([]capability.Layer{o.skill.Needs}, shipped.Authorize(policy.Request{
		Caller: "local:test", Skill: o.skill.Name, Digest: o.skill.Home.Digest, Builtin: true, Tool: name}).Layers...)
	for i := range layers {
		layers[i], err = layers[i].Bind(capability.Vars{Workspace: filepath.ToSlash(o.workspace)}, func(p string) (string, error) {
			real, err := filepath.EvalSymlinks(p)
			return filepath.ToSlash(real), err
		})
		if err != nil {
			o.t.Fatal(err)
		}
	}
	grant := capability.NewGrant(layers, nil)
	scope := sdk.Scope{Caller: "local:test", Workspace: o.workspace, Session: "s"}
	var mu sync.Mutex
	return o.program.Run(o.t.Context(), executor.Job{
		Input:  sdk.Input{Tool: name, Args: json.RawMessage(args), Scope: scope, Timeout: time.Minute},
		Grant:  grant,
		Limits: o.skill.Limits,
		Dirs:   executor.Dirs{Workspace: o.workspace, Tmp: func() (string, error) { return o.t.TempDir(), nil }},
		Soft:   o.t.Context(),
		Ops:    o.table.Bind(ops.Binding{Grant: grant, Scope: scope, Skill: o.skill.Name, Limits: o.skill.Limits}),
		Emit: func(e sdk.Event) {
			mu.Lock()
			defer mu.Unlock()
			o.logs = append(o.logs, e.Message)
		},
	})
}

// mapStore is a store.Store in memory.
type mapStore struct {
	mu    sync.Mutex
	last  int64
	items map[string]store.Item
}

func (m *mapStore) Get(_ context.Context, bucket, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if it, ok := m.items[bucket+"\x00"+key]; ok {
		return it.Value, it.Version, nil
	}
	return nil, 0, store.ErrAbsent
}

func (m *mapStore) Put(_ context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != store.Any && m.items[bucket+"\x00"+key].Version != old {
		return 0, store.ErrConflict
	}
	m.last++
	m.items[bucket+"\x00"+key] = store.Item{Key: key, Value: bytes.Clone(value), Version: m.last}
	return m.last, nil
}

func (m *mapStore) Delete(_ context.Context, bucket, key string, old int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != store.Any && m.items[bucket+"\x00"+key].Version != old {
		return store.ErrConflict
	}
	delete(m.items, bucket+"\x00"+key)
	return nil
}

func (m *mapStore) List(_ context.Context, bucket, prefix, after string, n int) ([]store.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []store.Item
	for at, it := range m.items {
		if b, _, _ := strings.Cut(at, "\x00"); b == bucket && strings.HasPrefix(it.Key, prefix) && it.Key > after {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b store.Item) int { return strings.Compare(a.Key, b.Key) })
	return items[:min(n, len(items))], nil
}

func (m *mapStore) Close() error { return nil }

// buildExample compiles an example outside of the tree.
func buildExample(t *testing.T, name string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	from, dir := filepath.Join(root, "examples", name), t.TempDir()
	s, err := readManifest(filepath.Join(from, manifest.FileName), manifest.Read)
	if err != nil {
		t.Fatal(err)
	}
	switch err := compile(from, &s, filepath.Join(dir, s.Source)); {
	case errors.Is(err, errNoClang) && os.Getenv("CI") != "true":
		t.Skipf("LEFT OUT: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(from, manifest.FileName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, manifest.FileName), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBuiltins builds the built-in skills as the binary embeds them, and calls
// them.
func TestBuiltins(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dist := t.TempDir()
	if err := os.Mkdir(filepath.Join(dist, "gone"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := builtins(root, dist, &out); err != nil {
		t.Fatal(err)
	}
	var digests map[string]string
	data, err := os.ReadFile(filepath.Join(dist, "digests.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &digests); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(digests)+1 { // and digests.json
		t.Errorf("%v in dist, digests of %v", entries, digests)
	}
	w := newWorld(t)
	tools := map[string]*tool{}
	for name, digest := range digests {
		tools[name] = w.load(filepath.Join(dist, name))
		if s := tools[name].skill; s.Home.Digest != digest || s.Name != name {
			t.Errorf("%s: digest %s, written %s", name, s.Home.Digest, digest)
		}
	}
	t.Run("ReadImage", func(t *testing.T) { tools["read-image"].readImage(t) })
	t.Run("TaskManager", func(t *testing.T) { tools["task-manager"].tasks(t) })
}

func (o *tool) readImage(t *testing.T) {
	var photo bytes.Buffer
	m := image.NewRGBA(image.Rect(0, 0, 4000, 3000))
	for i := range m.Pix {
		m.Pix[i] = uint8(i / 4000)
	}
	if err := jpeg.Encode(&photo, m, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.workspace, "photo.jpg")
	if err := os.WriteFile(path, photo.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(root, "go.mod")
	shows := func(p string, wide int) {
		t.Helper()
		args, _ := json.Marshal(map[string]string{"file_path": p})
		r, err := o.call("ReadImage", string(args))
		if err != nil || r.Failed || len(r.Content) != 2 {
			t.Fatalf("%s: %+v, %v", p, r, err)
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(r.Content[1].Data)); err != nil || c.Width != wide || c.Height != wide*3/4 {
			t.Errorf("%s: %+v, %v", p, c, err)
		}
	}
	shows(path, 1568)
	photo.Reset()
	if err := jpeg.Encode(&photo, m.SubImage(image.Rect(0, 0, 40, 30)), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, photo.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, "photo.jpg", "/workspace/photo.jpg"} {
		shows(p, 40)
	}
	args, _ := json.Marshal(map[string]string{"file_path": outside})
	if r, err := o.call("ReadImage", string(args)); err != nil || !r.Failed || !strings.Contains(r.Content[0].Text, "may not read there") {
		t.Errorf("outside of the workspace: %+v, %v", r, err)
	}
	args, _ = json.Marshal(map[string]string{"file_path": filepath.Join(o.workspace, "foto.jpg")})
	if r, err := o.call("ReadImage", string(args)); err != nil || !r.Failed || !strings.Contains(r.Content[0].Text, `"photo.jpg"`) {
		t.Errorf("absent: %+v, %v", r, err)
	}
}

func (o *tool) tasks(t *testing.T) {
	for _, c := range [][2]string{
		{`{"action":"list"}`, "There are no tasks."},
		{`{"action":"create","text":"release"}`, "Created task 1"},
		{`{"action":"add","text":"write the notes"}`, "- [ ] 1. write the notes"},
		{`{"action":"complete","step_id":1}`, "- [x] 1. write the notes"},
	} {
		if r, err := o.call("TaskManager", c[0]); err != nil || !strings.Contains(r.Content[0].Text, c[1]) {
			t.Fatalf("%s: %+v, %v", c[0], r, err)
		}
	}
	if _, err := o.call("TaskManager", `{"action":"show","task_id":9}`); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), `1 "release"`) {
		t.Errorf("unknown task: %v", err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := o.call("TaskManager", `{"action":"add","task_id":1,"text":"more"}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r, err := o.call("TaskManager", `{"action":"show","task_id":1}`)
	if err != nil || strings.Count(r.Content[0].Text, "more") != 6 {
		t.Errorf("after 6 at once: %+v, %v", r, err)
	}
}

func TestHello(t *testing.T) {
	tool := newWorld(t).load(buildExample(t, "hello-go"))
	r, err := tool.call("greet", `{"name":"Ann","loud":true}`)
	if err != nil || r.Content[0].Text != "HELLO, ANN" || string(r.Structured) != `{"greeting":"HELLO, ANN"}` {
		t.Errorf("%+v, %v", r, err)
	}
	if !slices.Contains(tool.logs, "greeting Ann") {
		t.Errorf("logs %q", tool.logs)
	}
	if _, err := tool.call("greet", `{"name":5}`); sdk.KindOf(err) != sdk.Invalid {
		t.Errorf("bad arguments: %v", err)
	}
	if _, err := tool.call("absent", `{}`); sdk.KindOf(err) != sdk.NotFound {
		t.Errorf("unknown tool: %v", err)
	}
}

// opsFunc are operations that a test gives.
type opsFunc func(ctx context.Context, op string, n int) (blob string, err error)

func (f opsFunc) Do(ctx context.Context, r sdk.Frame) ([]byte, error) {
	var h struct {
		Op string `json:"op"`
		N  int    `json:"n"`
	}
	if err := json.Unmarshal(r.Header, &h); err != nil {
		return nil, err
	}
	blob, err := f(ctx, h.Op, h.N)
	if err != nil {
		return nil, err
	}
	return sdk.AppendFrame(nil, []byte("{}"), []byte(blob)), nil
}

// TestSDKInModule holds the SDK to its promises inside a module: natively its
// goroutines are real threads, and its host is another one.
func TestSDKInModule(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	from, dir := filepath.Join(root, "skills", "build", "testdata", "many"), t.TempDir()
	text := "name = \"many\"\nversion = \"0.1.0\"\ndescription = \"x\"\nruntime = \"wasm\"\nsource = \"many.wasm\"\n"
	for _, name := range []string{"at_once", "any", "any_for", "unknown_op", "panic", "too_much", "until_cancelled", "ask"} {
		text += "[tools." + name + "]\ninput = '{\"type\":\"object\",\"additionalProperties\":false}'\n"
	}
	text += "[limits]\nmemory = \"512MiB\"\n"
	if err := os.WriteFile(filepath.Join(dir, manifest.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := manifest.Read(manifest.FileName, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compile(from, &s, filepath.Join(dir, s.Source)); err != nil {
		t.Fatal(err)
	}
	tool := newWorld(t).load(dir)
	var together sync.WaitGroup
	together.Add(12)
	counted := 0
	perform := opsFunc(func(ctx context.Context, op string, n int) (string, error) {
		switch op {
		case "together": // answers none before all are asked
			together.Done()
			together.Wait()
			return fmt.Sprint(n), nil
		case "soon":
			return "", nil
		case "count":
			counted++
			return fmt.Sprint(counted), nil
		case "never":
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "", executor.ErrUnknownOp
	})
	run := func(ctx context.Context, in sdk.Input) (sdk.Result, error) {
		return tool.program.Run(t.Context(), executor.Job{Input: in, Limits: tool.skill.Limits, Soft: ctx, Ops: perform, Emit: func(sdk.Event) {},
			Dirs: executor.Dirs{Tmp: func() (string, error) { return t.TempDir(), nil }}})
	}
	for name, want := range map[string]string{"at_once": "ok", "any": "1", "any_for": "1"} {
		if r, err := run(t.Context(), sdk.Input{Tool: name}); err != nil || r.Content[0].Text != want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for name, want := range map[string]sdk.Kind{"unknown_op": sdk.Unavailable, "panic": sdk.Guest, "too_much": sdk.Limit} {
		if r, err := run(t.Context(), sdk.Input{Tool: name}); sdk.KindOf(err) != want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	soft, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := run(soft, sdk.Input{Tool: "until_cancelled"}); err != nil || r.Content[0].Text != "last words" {
		t.Errorf("until_cancelled: %+v, %v", r, err)
	}
	r, err := run(t.Context(), sdk.Input{Tool: "ask"})
	if err != nil || r.Questions["sure"].Message != "sure?" {
		t.Fatalf("ask: %+v, %v", r, err)
	}
	r, err = run(t.Context(), sdk.Input{Tool: "ask", State: r.State, Answers: map[string]sdk.Answer{"sure": {Action: "decline"}}})
	if err != nil || r.Content[0].Text != "1decline" || counted != 1 {
		t.Errorf("answered: %+v, %v, counted %d", r, err, counted)
	}
}

// TestWordcount holds both examples of command/1 to the same counts.
func TestWordcount(t *testing.T) {
	for _, name := range []string{"wordcount-go", "wordcount-c"} {
		t.Run(name, func(t *testing.T) {
			tool := newWorld(t).load(buildExample(t, name))
			for args, want := range map[string]string{
				`{"text":"to be or\nnot \u00e9\ud83d\ude00 é"}`: `{"characters":17,"lines":2,"words":6}`,
				`{"text":""}`:                        `{"characters":0,"lines":0,"words":0}`,
				`{"text":"a \"b\"\\ \/\t\n"}`:        `{"characters":10,"lines":1,"words":3}`,
				` { "text" : "one two\u000athree" }`: `{"characters":13,"lines":2,"words":3}`,
			} {
				r, err := tool.call("count", args)
				var got map[string]int
				if err == nil {
					err = json.Unmarshal(r.Structured, &got)
				}
				if b, _ := json.Marshal(got); err != nil || string(b) != want {
					t.Errorf("%s: got %s, %v", args, r.Structured, err)
				}
			}
			if _, err := tool.call("count", `{"text":5}`); sdk.KindOf(err) != sdk.Guest {
				t.Errorf("bad arguments: %v", err)
			}
		})
	}
}

// TestReproducible: the same sources give the same module, wherever they lie.
func TestReproducible(t *testing.T) {
	var modules [2][]byte
	for i := range modules {
		dir := buildExample(t, "hello-go")
		var err error
		if modules[i], err = os.ReadFile(filepath.Join(dir, "hello-go.wasm")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(modules[0], modules[1]) {
		t.Error("two builds differ")
	}
	if root, err := moduleRoot(); err != nil || bytes.Contains(modules[0], []byte(root)) {
		t.Errorf("the module names the checkout %s, %v", root, err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const toml = "name = \"x\"\nversion = \"0.1.0\"\ndescription = \"x\"\nruntime = \"wasm\"\nsource = \"x.wasm\"\n[tools.x]\n"
	write(manifest.FileName, toml)
	if _, err := pack(dir, t.TempDir()); err == nil || !strings.Contains(err.Error(), `the skill is called "x"`) {
		t.Errorf("another name than its folder: %v", err)
	}
	s, err := manifest.Read(manifest.FileName, []byte(toml))
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module x\n\ngo 1.26\n")
	write("main.go", "package main\n\nfunc main() { undefined() }\n")
	if err := compile(dir, &s, filepath.Join(dir, "x.wasm")); err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("does not compile: %v", err)
	}
}
