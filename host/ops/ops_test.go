package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

func TestTable(t *testing.T) {
	tab, _ := newTable(t)
	ops := tab.Ops()
	if !slices.IsSortedFunc(ops, func(a, b Op) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	for _, o := range ops {
		if want := strings.Trim(string(o.Needs.Kind)+"."+string(o.Needs.Verb), "."); o.Audit != want {
			t.Errorf("%s: audit name %q, want %q", o.Name, o.Audit, want)
		}
		if o.Needs != (capability.Topic{}) && !slices.Contains(capability.Verbs(o.Needs.Kind), o.Needs.Verb) {
			t.Errorf("%s: no such topic %v", o.Name, o.Needs)
		}
		if o.Cost < 1 && o.Name != "output.write" || o.Cost > Budget || o.About == "" || o.do == nil {
			t.Errorf("%+v is incomplete", o)
		}
	}
}

// docs/ops.md holds the table as it is here, and a section for each operation.
func TestDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/ops.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.ReplaceAll(string(b), "\r\n", "\n")
	tab, _ := newTable(t)
	var rows []string
	for _, o := range tab.Ops() {
		needs := "nothing"
		if o.Audit != "" {
			needs = "`" + o.Audit + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %d |", o.Name, o.About, needs, o.Cost))
		if !strings.Contains(doc, "\n## `"+o.Name+"`\n") {
			t.Errorf("docs/ops.md has no section for %s", o.Name)
		}
	}
	if want := strings.Join(rows, "\n"); !strings.Contains(doc, want+"\n\n") {
		t.Errorf("docs/ops.md should hold the table\n%s", want)
	}
	for _, m := range regexp.MustCompile("(?m)^## `(.+)`$").FindAllStringSubmatch(doc, -1) {
		if _, ok := tab.ops[m[1]]; !ok {
			t.Errorf("docs/ops.md describes %s, which does not exist", m[1])
		}
	}
	for name, value := range map[string]int{"Budget": Budget, "requests": maxRequests, "keys": quotaKeys, "headers": maxHeaders} {
		if s := strconvComma(value); !strings.Contains(doc, s) {
			t.Errorf("docs/ops.md does not say %s (%s)", s, name)
		}
	}
}

func strconvComma(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}

func TestUnknownOp(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	for _, h := range []string{`{"op":"fs.read"}`, `{"op":""}`, `{}`, `{"op":"http.Request"}`, `{"op":"kv.get\u0000"}`} {
		reply, err := o.Do(t.Context(), sdk.Frame{Header: []byte(h)})
		if !errors.Is(err, executor.ErrUnknownOp) || reply != nil {
			t.Errorf("%s: %q, %v", h, reply, err)
		}
	}
}

func TestMalformedRequests(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "secrets TOKEN", "invoke *", "network *")
	b.Invoke = func(context.Context, string, json.RawMessage) (sdk.Result, error) { return sdk.Text("x"), nil }
	blob := [][]byte{[]byte("v")}
	for _, c := range []struct {
		header string
		blobs  [][]byte
	}{
		{`{"op":"time","zone":"UTC"}`, nil}, {`{"op":"time"}`, blob},
		{`{"op":"kv.get"}`, nil}, {`{"op":"kv.get","key":""}`, nil}, {`{"op":"kv.get","key":1}`, nil}, {`{"op":"kv.get","key":"k","scope":"all"}`, nil}, {`{"op":"kv.get","key":"k","version":1}`, nil}, {`{"op":"kv.get","key":"k"}`, blob},
		{`{"op":"kv.get","key":"` + strings.Repeat("k", maxKey+1) + `"}`, nil},
		{`{"op":"kv.put","key":"k"}`, nil}, {`{"op":"kv.put","key":"k","version":-1}`, blob}, {`{"op":"kv.put","key":"k","value":"v"}`, blob}, {`{"op":"kv.put","key":"k"}`, append(blob, blob...)},
		{`{"op":"kv.list","limit":0}`, nil}, {`{"op":"kv.list","limit":1001}`, nil}, {`{"op":"kv.list","limit":-1}`, nil}, {`{"op":"kv.list","prefix":"` + strings.Repeat("k", maxKey+1) + `"}`, nil},
		{`{"op":"kv.delete"}`, nil}, {`{"op":"kv.delete","key":"k","scope":7}`, nil},
		{`{"op":"secret.exists"}`, nil}, {`{"op":"secret.exists","name":["TOKEN"]}`, nil},
		{`{"op":"invoke"}`, nil}, {`{"op":"invoke","tool":"x","args":[]}`, nil}, {`{"op":"invoke","tool":"x","args":"{}"}`, nil}, {`{"op":"invoke","tool":"x"}`, blob},
		{`{"op":"http.request"}`, nil}, {`{"op":"http.request","url":"https://[::1"}`, nil}, {`{"op":"http.request","url":"https://a.example.com","method":"GE T"}`, nil}, {`{"op":"http.request","url":"https://a.example.com","method":"CONNECT"}`, nil},
		{`{"op":"http.request","url":"https://a.example.com","headers":[["a"]]}`, nil}, {`{"op":"http.request","url":"https://a.example.com","headers":[["a","b","c"]]}`, nil}, {`{"op":"http.request","url":"https://a.example.com","headers":{"a":"b"}}`, nil},
		{`{"op":"http.request","url":"https://a.example.com","headers":[["a","b\r\nc: d"]]}`, nil}, {`{"op":"http.request","url":"https://a.example.com","headers":[["Host","b"]]}`, nil},
		{`{"op":"http.request","url":"https://a.example.com","redirect":"maybe"}`, nil}, {`{"op":"http.request","url":"https://a.example.com","timeout_ms":0}`, nil}, {`{"op":"http.request","url":"https://a.example.com","timeout_ms":9223372036854775807}`, nil}, {`{"op":"http.request","url":"https://a.example.com","max_bytes":-1}`, nil},
		{`{"op":"http.request","url":"https://a.example.com"}`, append(blob, blob...)},
	} {
		a := ask(t, tab.Bind(b), c.header, c.blobs...)
		if a.err == nil || a.err.Kind != sdk.Invalid || a.err.Op == "" {
			t.Errorf("%.120s with %d blobs: %v %v", c.header, len(c.blobs), a.h, a.err)
		}
	}
	for _, h := range []string{``, `[]`, `"x"`, `{"op":1}`, `{"op":"time"`} {
		reply, err := tab.Bind(b).Do(t.Context(), sdk.Frame{Header: []byte(h)})
		if err != nil {
			t.Errorf("%q: %v", h, err)
		} else if _, err := sdk.ParseResult(reply); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%q: %v", h, err)
		}
	}
}

func TestTime(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	ask(t, o, `{"op":"time"}`).is(t, `{"monotonic":1000000000,"now_unix_ns":1800000002000000000}`)
	ask(t, o, `{"op":"time"}`).is(t, `{"monotonic":2000000000,"now_unix_ns":1800000003000000000}`)
}

// What is not granted is refused in the same words whether or not it is set.
func TestSecretExists(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "secrets SET", "secrets UNSET")
	b.Secrets = func() egress.Secrets {
		return egress.Secrets{{Name: "SET", Value: "v"}, {Name: "UNSET"}, {Name: "HIDDEN", Value: "v"}}
	}
	o := tab.Bind(b)
	ask(t, o, `{"op":"secret.exists","name":"SET"}`).is(t, `{"exists":true}`)
	ask(t, o, `{"op":"secret.exists","name":"UNSET"}`).is(t, `{"exists":false}`)
	hidden, missing := ask(t, o, `{"op":"secret.exists","name":"HIDDEN"}`), ask(t, o, `{"op":"secret.exists","name":"MISSNG"}`)
	hidden.fails(t, sdk.Denied)
	missing.fails(t, sdk.Denied)
	if strings.ReplaceAll(hidden.err.Error(), "HIDDEN", "MISSNG") != missing.err.Error() {
		t.Errorf("told apart: %v, %v", hidden.err, missing.err)
	}
}

func TestInvoke(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "invoke hello.*")
	var tools []string
	b.Invoke = func(_ context.Context, tool string, args json.RawMessage) (sdk.Result, error) {
		tools = append(tools, tool+string(args))
		switch tool {
		case "hello.fail":
			return sdk.Result{}, fmt.Errorf("dispatch: %w", &sdk.Error{Kind: sdk.Guest, What: "it broke"})
		case "hello.bug":
			return sdk.Result{}, errors.New("open /var/lib/skill/state.db: no space")
		}
		return sdk.Result{Content: []sdk.Content{{Type: sdk.TypeImage, Data: []byte("png"), MIME: "image/png"}}}, nil
	}
	f, err := sdk.ParseFrame(sdk.AppendFrame(nil, []byte(`{"op":"invoke","tool":"hello.greet","args":{"a":1}}`)))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := tab.Bind(b).Do(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sdk.ParseResult(reply)
	if err != nil || len(r.Content) != 1 || string(r.Content[0].Data) != "png" {
		t.Errorf("%+v, %v", r, err)
	}
	ask(t, tab.Bind(b), `{"op":"invoke","tool":"hello.fail"}`).fails(t, sdk.Guest, "it broke")
	bug := ask(t, tab.Bind(b), `{"op":"invoke","tool":"hello.bug"}`)
	bug.fails(t, sdk.Internal)
	if strings.Contains(bug.err.Error(), "/var") {
		t.Error("tells the host's paths:", bug.err)
	}
	ask(t, tab.Bind(b), `{"op":"invoke","tool":"ReadImage"}`).fails(t, sdk.Denied, "invoke.call ReadImage")
	if want := []string{`hello.greet{"a":1}`, "hello.fail", "hello.bug"}; !slices.Equal(tools, want) {
		t.Errorf("invoked %q, want %q", tools, want)
	}
	b.Invoke = nil
	ask(t, tab.Bind(b), `{"op":"invoke","tool":"hello.greet"}`).fails(t, sdk.Denied)
}

func TestZeroBindingDenies(t *testing.T) {
	tab, m := newTable(t)
	o := tab.Bind(Binding{})
	for h, kind := range map[string]sdk.Kind{
		`{"op":"http.request","url":"https://a.example.com"}`: sdk.Denied, `{"op":"invoke","tool":"x"}`: sdk.Denied, `{"op":"secret.exists","name":"X"}`: sdk.Denied,
		`{"op":"kv.get","key":"k"}`: sdk.Internal, `{"op":"kv.list"}`: sdk.Internal, `{"op":"kv.delete","key":"k"}`: sdk.Internal,
	} {
		ask(t, o, h).fails(t, kind)
	}
	ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("v")).fails(t, sdk.Internal)
	if len(m.buckets) != 0 {
		t.Error("wrote", m.buckets)
	}
}

func TestBudget(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	for i := range Budget {
		if a := ask(t, o, `{"op":"time"}`); a.err != nil {
			t.Fatal(i, a.err)
		}
	}
	ask(t, o, `{"op":"time"}`).fails(t, sdk.Limit, "10000 units")
	ask(t, o, `{"op":"kv.get","key":"k"}`).fails(t, sdk.Limit)
	if a := ask(t, tab.Bind(anyone("a")), `{"op":"time"}`); a.err != nil {
		t.Error("the next call pays for this one:", a.err)
	}
}

func TestCtxIsObeyed(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	b.Grant = grant(t, "network *", "invoke *")
	b.Invoke = func(ctx context.Context, _ string, _ json.RawMessage) (sdk.Result, error) {
		return sdk.Result{}, ctx.Err()
	}
	for name, v := range map[string]struct {
		cause error
		kind  sdk.Kind
	}{
		"canceled": {nil, sdk.Canceled}, "deadline": {context.DeadlineExceeded, sdk.Limit}, "budget": {&sdk.Error{Kind: sdk.Limit, What: "fuel"}, sdk.Limit},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(v.cause)
		for _, o := range tab.Ops() {
			if strings.HasPrefix(o.Name, "output.") { // TestLastWords
				continue
			}
			if a := askCtx(t, ctx, tab.Bind(b), `{"op":"`+o.Name+`"}`); a.err == nil || a.err.Kind != v.kind {
				t.Errorf("%s: %s: %v", name, o.Name, a.err)
			}
		}
	}
	// Canceled while it runs.
	ctx, cancel := context.WithCancelCause(t.Context())
	b.Invoke = func(ctx context.Context, _ string, _ json.RawMessage) (sdk.Result, error) {
		cancel(context.DeadlineExceeded)
		return sdk.Result{}, ctx.Err()
	}
	askCtx(t, ctx, tab.Bind(b), `{"op":"invoke","tool":"x"}`).fails(t, sdk.Limit, "the time is over")
}

func FuzzDo(f *testing.F) {
	tab, _ := newTable(f)
	for _, o := range tab.Ops() {
		f.Add(sdk.AppendFrame(nil, []byte(`{"op":"`+o.Name+`","key":"k","name":"n","tool":"t","url":"https://a.example.com"}`)))
	}
	f.Add(sdk.AppendFrame(nil, []byte(`{"op":"kv.put","key":"k"}`), []byte("value")))
	f.Add(sdk.AppendFrame(nil, []byte(`{"op":"kv.list","values":true,"limit":3}`)))
	f.Add(sdk.AppendFrame(nil, []byte(`{"op":"http.request","url":"http://127.0.0.1:1/","headers":[["a","b"]]}`), []byte("x")))
	f.Add([]byte("\x02\x00\x00\x00{}"))
	b := anyone("a")
	b.Grant = grant(f, "secrets n", "invoke *", "network a.example.com")
	b.Invoke = func(_ context.Context, tool string, args json.RawMessage) (sdk.Result, error) {
		return sdk.Result{Structured: args}, nil
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := sdk.ParseFrame(data)
		if err != nil {
			fr = sdk.Frame{Header: data, Blobs: [][]byte{nil}} // not even parsed
		}
		reply, err := tab.Bind(b).Do(t.Context(), fr)
		if err != nil {
			if !errors.Is(err, executor.ErrUnknownOp) {
				t.Fatal(err)
			}
			return
		}
		if _, err := sdk.ParseFrame(reply); err != nil {
			t.Fatalf("reply %q: %v", reply, err)
		}
	})
}

func TestBindAllocates(t *testing.T) {
	tab, _ := newTable(t)
	b := anyone("a")
	var o executor.Ops
	if n := testing.AllocsPerRun(100, func() { o = tab.Bind(b) }); n > 2 {
		t.Errorf("%v allocations for %T", n, o)
	}
}

func BenchmarkBind(b *testing.B) {
	tab, _ := newTable(b)
	bind := anyone("a")
	b.ReportAllocs()
	var o executor.Ops
	for b.Loop() {
		o = tab.Bind(bind)
	}
	if o.(*job).Skill != bind.Skill {
		b.Error("not bound")
	}
}

func BenchmarkTime(b *testing.B) {
	tab, _ := newTable(b)
	o := tab.Bind(anyone("a"))
	f := sdk.Frame{Header: []byte(`{"op":"time"}`)}
	b.ReportAllocs()
	for b.Loop() {
		o.(*job).spent.Store(0)
		if _, err := o.Do(b.Context(), f); err != nil {
			b.Fatal(err)
		}
	}
}
