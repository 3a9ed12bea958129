package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

func TestKV(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	ask(t, o, `{"op":"kv.get","key":"k"}`).is(t, `{"found":false}`)
	ask(t, o, `{"op":"kv.delete","key":"k"}`).is(t, `{"deleted":false}`)
	put := ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("one"))
	version := int64(put.h["version"].(float64))
	get := ask(t, o, `{"op":"kv.get","key":"k"}`)
	get.is(t, fmt.Sprintf(`{"found":true,"version":%d}`, version))
	if len(get.blobs) != 1 || string(get.blobs[0]) != "one" {
		t.Errorf("value %q", get.blobs)
	}
	// The next call of the skill sees it.
	if a := ask(t, tab.Bind(anyone("a")), `{"op":"kv.get","key":"k","scope":"workspace"}`); string(a.blobs[0]) != "one" {
		t.Errorf("value %q", a.blobs)
	}
	empty := ask(t, o, `{"op":"kv.put","key":"k"}`, []byte{})
	if empty.err != nil {
		t.Fatal(empty.err)
	}
	if a := ask(t, o, `{"op":"kv.get","key":"k"}`); a.h["found"] != true || len(a.blobs) != 1 || len(a.blobs[0]) != 0 {
		t.Errorf("empty value: %v %q", a.h, a.blobs)
	}
	ask(t, o, `{"op":"kv.delete","key":"k"}`).is(t, `{"deleted":true}`)
	ask(t, o, `{"op":"kv.get","key":"k"}`).is(t, `{"found":false}`)
}

func TestKVCompareAndSwap(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	put := func(version any, value string) answer {
		return ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"k","version":%v}`, version), []byte(value))
	}
	put(7, "x").is(t, `{"conflict":true,"version":0}`)
	first := put(0, "x").h["version"]
	put(0, "y").is(t, fmt.Sprintf(`{"conflict":true,"version":%v}`, first))
	second := put(first, "y").h["version"]
	if second == nil || second == first {
		t.Fatal("versions", first, second)
	}
	put(first, "z").is(t, fmt.Sprintf(`{"conflict":true,"version":%v}`, second))
	ask(t, o, fmt.Sprintf(`{"op":"kv.delete","key":"k","version":%v}`, first)).is(t, fmt.Sprintf(`{"conflict":true,"version":%v}`, second))
	if a := ask(t, o, `{"op":"kv.get","key":"k"}`); string(a.blobs[0]) != "y" {
		t.Errorf("value %q", a.blobs[0])
	}
	ask(t, o, fmt.Sprintf(`{"op":"kv.delete","key":"k","version":%v}`, second)).is(t, `{"deleted":true}`)
	ask(t, o, fmt.Sprintf(`{"op":"kv.delete","key":"k","version":%v}`, second)).is(t, `{"conflict":true,"version":0}`)
}

// Lost updates would show as a sum that is too small.
func TestKVConcurrentIncrements(t *testing.T) {
	tab, m := newTable(t)
	other := New(Deps{Store: m}) // as another process: it shares no lock
	var wg sync.WaitGroup
	for i := range 8 {
		o := []*Table{tab, other}[i%2].Bind(anyone("a"))
		wg.Go(func() {
			for range 10 {
				for {
					a := ask(t, o, `{"op":"kv.get","key":"n"}`)
					version, n := 0.0, 0
					if a.h["found"] == true {
						version, n = a.h["version"].(float64), len(a.blobs[0])
					}
					if a := ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"n","version":%v}`, version), []byte(strings.Repeat("x", n+1))); a.err != nil {
						t.Error(a.err)
						return
					} else if a.h["conflict"] == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if a := ask(t, tab.Bind(anyone("a")), `{"op":"kv.get","key":"n"}`); len(a.blobs[0]) != 80 {
		t.Errorf("sum %d, want 80", len(a.blobs[0]))
	}
}

// Every owner in a small world of names full of separators sees its own key
// and no other one's, in each scope.
func TestKVIsolation(t *testing.T) {
	names := []string{"a", "a/b", "b", "a:1", "1:a", "a,1:b", "a\x00b", "A", "a ", "1:a,1:b,"}
	for _, scope := range []string{"workspace", "caller", "session"} {
		tab, _ := newTable(t)
		type owner struct{ skill, caller, place string }
		var owners []owner
		for _, s := range names {
			for _, c := range names {
				for _, p := range names {
					owners = append(owners, owner{s, c, p})
					if scope == "caller" {
						break // the place makes no difference
					}
				}
			}
		}
		bind := func(o owner) executor.Ops {
			return tab.Bind(Binding{Skill: o.skill, Scope: sdk.Scope{Caller: o.caller, Workspace: o.place, Session: o.place}})
		}
		for _, o := range owners {
			// Absent must hold: nobody before it wrote here.
			if a := ask(t, bind(o), `{"op":"kv.put","key":"k","version":0,"scope":"`+scope+`"}`, []byte(fmt.Sprintf("%q", o))); a.h["conflict"] != nil || a.err != nil {
				t.Fatalf("%s: %q meets another owner: %v", scope, o, a.h)
			}
		}
		for _, o := range owners {
			a := ask(t, bind(o), `{"op":"kv.list","values":true,"scope":"`+scope+`"}`)
			if len(a.blobs) != 1 || string(a.blobs[0]) != fmt.Sprintf("%q", o) {
				t.Fatalf("%s: %q sees %q", scope, o, a.blobs)
			}
		}
	}
}

func TestKVScopes(t *testing.T) {
	tab, _ := newTable(t)
	base := anyone("a")
	for _, scope := range []string{"workspace", "caller", "session"} {
		if a := ask(t, tab.Bind(base), `{"op":"kv.put","key":"k","scope":"`+scope+`"}`, []byte(scope)); a.err != nil {
			t.Fatal(a.err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*sdk.Scope)
		sees   string // the scopes in which the key is still there
	}{
		{"the same", func(*sdk.Scope) {}, "workspace caller session"},
		{"another workspace", func(s *sdk.Scope) { s.Workspace = "/v" }, "caller session"},
		{"no workspace", func(s *sdk.Scope) { s.Workspace = "" }, "caller session"},
		{"another session", func(s *sdk.Scope) { s.Session = "s2" }, "workspace caller"},
		{"another caller", func(s *sdk.Scope) { s.Caller = "local:bob" }, ""},
	} {
		b := base
		c.change(&b.Scope)
		var sees []string
		for _, scope := range []string{"workspace", "caller", "session"} {
			a := ask(t, tab.Bind(b), `{"op":"kv.get","key":"k","scope":"`+scope+`"}`)
			if a.h["found"] == true {
				if string(a.blobs[0]) != scope {
					t.Errorf("%s: scope %s holds %q", c.name, scope, a.blobs[0])
				}
				sees = append(sees, scope)
			}
		}
		if got := strings.Join(sees, " "); got != c.sees {
			t.Errorf("%s sees %q, want %q", c.name, got, c.sees)
		}
	}
	b := base
	b.Scope.Session = ""
	ask(t, tab.Bind(b), `{"op":"kv.get","key":"k","scope":"session"}`).fails(t, sdk.Invalid, "no session")
}

func TestKVList(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	var all []string
	for i := range 40 {
		key := fmt.Sprintf("task/%02d", i)
		all = append(all, key)
		if a := ask(t, o, `{"op":"kv.put","key":`+quote(key)+`}`, []byte(key)); a.err != nil {
			t.Fatal(a.err)
		}
	}
	ask(t, o, `{"op":"kv.put","key":"other"}`, []byte("x"))
	for _, limit := range []int{1, 7, 16, 39, 40, 41} {
		var got []string
		after := ""
		for {
			a := ask(t, o, fmt.Sprintf(`{"op":"kv.list","prefix":"task/","after":%s,"limit":%d,"values":true}`, quote(after), limit))
			if a.err != nil {
				t.Fatal(a.err)
			}
			items := a.h["items"].([]any)
			if len(items) > limit {
				t.Fatalf("%d items of %d", len(items), limit)
			}
			for _, it := range items {
				m := it.(map[string]any)
				after = m["key"].(string)
				if v := string(a.blobs[int(m["blob"].(float64))]); v != after || m["size"] != float64(len(v)) || m["version"] == nil {
					t.Errorf("%s holds %q: %v", after, v, m)
				}
				got = append(got, after)
			}
			if a.h["more"] != true {
				break
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	a := ask(t, o, `{"op":"kv.list"}`)
	if n := len(a.h["items"].([]any)); n != 41 || len(a.blobs) != 0 || a.h["more"] != false {
		t.Errorf("%d items, %d blobs, more %v", n, len(a.blobs), a.h["more"])
	}
	ask(t, tab.Bind(anyone("b")), `{"op":"kv.list"}`).is(t, `{"items":[],"more":false}`)
}

// A list of large values comes in parts.
func TestKVListBytes(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	for i := range 6 {
		if a := ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"%d"}`, i), make([]byte, maxValue)); a.err != nil {
			t.Fatal(a.err)
		}
	}
	a := ask(t, o, `{"op":"kv.list","values":true}`)
	if len(a.blobs) != listBytes/maxValue || a.h["more"] != true {
		t.Errorf("%d values, more %v", len(a.blobs), a.h["more"])
	}
	a = ask(t, o, `{"op":"kv.list","values":true,"after":"3"}`)
	if len(a.blobs) != 2 || a.h["more"] != false {
		t.Errorf("%d values, more %v", len(a.blobs), a.h["more"])
	}
}

func TestKVQuotaValue(t *testing.T) {
	tab, _ := newTable(t)
	o := tab.Bind(anyone("a"))
	if a := ask(t, o, `{"op":"kv.put","key":"k"}`, make([]byte, maxValue)); a.err != nil {
		t.Error(a.err)
	}
	ask(t, o, `{"op":"kv.put","key":"k"}`, make([]byte, maxValue+1)).fails(t, sdk.Limit)
}

func TestKVQuotaBytes(t *testing.T) {
	tab, m := newTable(t)
	o := tab.Bind(anyone("a"))
	value := make([]byte, maxValue-1) // with a key of one byte: 1 MiB
	for i := range 16 {
		if a := ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"%c"}`, 'a'+i), value); a.err != nil {
			t.Fatal(i, a.err)
		}
	}
	ask(t, o, `{"op":"kv.put","key":"z"}`, nil).fails(t, sdk.Limit, "16777217 bytes")
	ask(t, o, `{"op":"kv.put","key":"a"}`, make([]byte, maxValue)).fails(t, sdk.Limit)
	if a := ask(t, o, `{"op":"kv.put","key":"a"}`, value); a.err != nil {
		t.Error("the same size again:", a.err)
	}
	// Other scopes and skills have room of their own.
	if a := ask(t, o, `{"op":"kv.put","key":"z","scope":"caller"}`, value); a.err != nil {
		t.Error(a.err)
	}
	if a := ask(t, tab.Bind(anyone("b")), `{"op":"kv.put","key":"z"}`, value); a.err != nil {
		t.Error(a.err)
	}
	// What shrinks or goes makes room.
	if a := ask(t, o, `{"op":"kv.put","key":"a"}`, value[:10]); a.err != nil {
		t.Error(a.err)
	}
	if a := ask(t, o, `{"op":"kv.put","key":"z"}`, value[:100]); a.err != nil {
		t.Error(a.err)
	}
	ask(t, o, `{"op":"kv.delete","key":"b"}`).is(t, `{"deleted":true}`)
	if a := ask(t, o, `{"op":"kv.put","key":"y"}`, value); a.err != nil {
		t.Error(a.err)
	}
	checkUsage(t, m)
}

func TestKVQuotaKeys(t *testing.T) {
	tab, m := newTable(t)
	o := tab.Bind(anyone("a"))
	for i := range quotaKeys {
		if a := ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"%d"}`, i), nil); a.err != nil {
			t.Fatal(i, a.err)
		}
	}
	ask(t, o, `{"op":"kv.put","key":"more"}`, nil).fails(t, sdk.Limit, "1001 keys")
	if a := ask(t, o, `{"op":"kv.put","key":"7"}`, []byte("x")); a.err != nil {
		t.Error("an old key:", a.err)
	}
	ask(t, o, `{"op":"kv.delete","key":"7"}`).is(t, `{"deleted":true}`)
	if a := ask(t, o, `{"op":"kv.put","key":"more"}`, nil); a.err != nil {
		t.Error(a.err)
	}
	checkUsage(t, m)
}

// checkUsage compares the counts that are kept with the keys that are there.
func checkUsage(t *testing.T, m *memory) {
	t.Helper()
	for bucket, it := range m.buckets[usageBucket] {
		var u usage
		for k, v := range m.buckets[bucket] {
			u = u.plus(usage{1, int64(len(k) + len(v.Value))})
		}
		if want := quote(u); string(it.Value) != want {
			t.Errorf("%s is counted as %s, and holds %s", bucket, it.Value, want)
		}
	}
}

// A crash between counting and writing leaves a count that is too high. It
// refuses nobody: before that, the keys are counted again.
func TestKVQuotaHeals(t *testing.T) {
	tab, m := newTable(t)
	if a := ask(t, tab.Bind(anyone("a")), `{"op":"kv.put","key":"k"}`, []byte("v")); a.err != nil {
		t.Fatal(a.err)
	}
	for _, broken := range []string{quote(usage{quotaKeys, quotaBytes}), "not JSON"} {
		for bucket := range m.buckets[usageBucket] {
			if _, err := m.Put(t.Context(), usageBucket, bucket, []byte(broken), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		if a := ask(t, tab.Bind(anyone("a")), `{"op":"kv.put","key":"k2"}`, []byte("v"+broken)); a.err != nil {
			t.Error(a.err)
		}
		checkUsage(t, m)
	}
	// Making the host count costs: a guest cannot have it do so for ever.
	o := tab.Bind(anyone("a"))
	value := make([]byte, maxValue)
	for i := range 15 {
		if a := ask(t, o, fmt.Sprintf(`{"op":"kv.put","key":"%d"}`, i), value); a.err != nil {
			t.Fatal(a.err)
		}
	}
	full := 0
	for range Budget {
		a := ask(t, o, `{"op":"kv.put","key":"more"}`, value)
		if a.err == nil {
			t.Fatal("over the quota")
		}
		if strings.Contains(a.err.Error(), "asks too much") {
			break
		}
		full++
	}
	if full > Budget/recountCost {
		t.Errorf("%d counts in one call", full)
	}
}

// Writers of other processes come between: the quota's count stays right.
func TestKVConflicts(t *testing.T) {
	tab, m := newTable(t)
	o := tab.Bind(anyone("a"))
	times := 3
	m.before = func(bucket, key string) error {
		if times > 0 && bucket != usageBucket {
			times--
			return store.ErrConflict
		}
		return nil
	}
	if a := ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("v")); a.err != nil {
		t.Fatal(a.err)
	}
	checkUsage(t, m)
	times = 3
	ask(t, o, `{"op":"kv.delete","key":"k"}`).is(t, `{"deleted":true}`)
	checkUsage(t, m)
	times = 1 << 20
	ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("v")).fails(t, sdk.Unavailable)
	checkUsage(t, m)
	m.before = func(bucket, _ string) error {
		if bucket == usageBucket {
			return store.ErrConflict
		}
		return nil
	}
	ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("v")).fails(t, sdk.Unavailable)
}

func TestKVStoreFails(t *testing.T) {
	tab, m := newTable(t)
	o := tab.Bind(anyone("a"))
	m.before = func(string, string) error { return errors.New("open /home/ann/.local/state/skill.db: disk I/O error") }
	a := ask(t, o, `{"op":"kv.put","key":"k"}`, []byte("v"))
	a.fails(t, sdk.Unavailable)
	if strings.Contains(a.err.Error(), "/home") {
		t.Error("tells the host's paths:", a.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.before = func(string, string) error { cancel(); return ctx.Err() }
	askCtx(t, ctx, o, `{"op":"kv.put","key":"k"}`, []byte("v")).fails(t, sdk.Canceled)
}

// A writer that waits for its turn gives up when its call ends.
func TestKVLockObeysCtx(t *testing.T) {
	tab, m := newTable(t)
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	m.before = func(bucket, key string) error {
		if key == "slow" {
			close(entered)
			<-ctx.Done()
		}
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { ask(t, tab.Bind(anyone("a")), `{"op":"kv.put","key":"slow"}`, []byte("v")) })
	<-entered
	late, end := context.WithCancel(t.Context())
	wg.Go(func() {
		askCtx(t, late, tab.Bind(anyone("a")), `{"op":"kv.put","key":"k"}`, []byte("v")).fails(t, sdk.Canceled)
	})
	end()
	wg.Go(func() { cancel() })
	wg.Wait()
}
