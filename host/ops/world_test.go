package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// memory is a store.Store whose writes a test may interfere with.
type memory struct {
	mu      sync.Mutex
	buckets map[string]map[string]store.Item
	last    int64
	before  func(bucket, key string) error // of each Put and Delete; its error is the operation's
}

func (m *memory) Get(_ context.Context, bucket, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	it, ok := m.buckets[bucket][key]
	if !ok {
		return nil, 0, store.ErrAbsent
	}
	return slices.Clone(it.Value), it.Version, nil
}

func (m *memory) Put(_ context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	if m.before != nil {
		if err := m.before(bucket, key); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != store.Any && m.buckets[bucket][key].Version != old {
		return 0, store.ErrConflict
	}
	if m.buckets == nil {
		m.buckets = map[string]map[string]store.Item{}
	}
	if m.buckets[bucket] == nil {
		m.buckets[bucket] = map[string]store.Item{}
	}
	m.last++
	m.buckets[bucket][key] = store.Item{Key: key, Value: slices.Clone(value), Version: m.last}
	return m.last, nil
}

func (m *memory) Delete(_ context.Context, bucket, key string, old int64) error {
	if m.before != nil {
		if err := m.before(bucket, key); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old != store.Any && m.buckets[bucket][key].Version != old {
		return store.ErrConflict
	}
	delete(m.buckets[bucket], key)
	return nil
}

func (m *memory) List(_ context.Context, bucket, prefix, after string, n int) ([]store.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var items []store.Item
	for _, it := range slices.SortedFunc(maps.Values(m.buckets[bucket]), func(a, b store.Item) int { return cmp.Compare(a.Key, b.Key) }) {
		if strings.HasPrefix(it.Key, prefix) && it.Key > after && len(items) < n {
			items = append(items, it)
		}
	}
	return items, nil
}

func (m *memory) Close() error { return nil }

// newTable returns a Table over a memory store, and a network in which every
// name leads to this machine and is refused unless a grant lists 127.0.0.1.
func newTable(t testing.TB) (*Table, *memory) {
	m := &memory{}
	start := time.Unix(1_800_000_000, 0)
	var mu sync.Mutex
	now := start
	return New(Deps{Store: m, Broker: egress.New(egress.Options{Resolver: loopback{}}), Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}}), m
}

type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

func anyone(skill string) Binding {
	return Binding{Skill: skill, Scope: sdk.Scope{Caller: "local:ann", Workspace: "/w", Session: "s1"}}
}

// grant returns a grant of one manifest layer with entries "kind entry".
func grant(t testing.TB, entries ...string) capability.Grant {
	t.Helper()
	l := capability.Layer{Name: "manifest", Closed: true, Table: "[capabilities]"}
	for _, e := range entries {
		kind, entry, _ := strings.Cut(e, " ")
		c, err := capability.Parse(capability.Kind(kind), entry, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		l.Allow = append(l.Allow, c)
	}
	return capability.NewGrant([]capability.Layer{l}, nil)
}

type answer struct {
	h     map[string]any
	blobs [][]byte
	err   *sdk.Error
}

// ask performs the operation with the JSON header and the blobs.
func ask(t testing.TB, o executor.Ops, header string, blobs ...[]byte) answer {
	t.Helper()
	return askCtx(t, t.Context(), o, header, blobs...)
}

func askCtx(t testing.TB, ctx context.Context, o executor.Ops, header string, blobs ...[]byte) answer {
	t.Helper()
	f, err := sdk.ParseFrame(sdk.AppendFrame(nil, []byte(header), blobs...))
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Do(ctx, f)
	if err != nil {
		t.Fatalf("%s: %v", header, err)
	}
	reply, err := sdk.ParseFrame(b)
	if err != nil {
		t.Fatalf("%s: reply %q: %v", header, b, err)
	}
	var w struct {
		Error *sdk.Error `json:"error"`
	}
	a := answer{blobs: reply.Blobs}
	if err := json.Unmarshal(reply.Header, &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(reply.Header, &a.h); err != nil {
		t.Fatal(err)
	}
	a.err = w.Error
	return a
}

// is fails unless a's header is want, apart from "blobs".
func (a answer) is(t testing.TB, want string) {
	t.Helper()
	got := maps.Clone(a.h)
	delete(got, "blobs")
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
}

// fails fails unless a is an error of the kind that says all parts.
func (a answer) fails(t testing.TB, kind sdk.Kind, parts ...string) {
	t.Helper()
	if a.err == nil || a.err.Kind != kind {
		t.Errorf("got %v %v, want an error of kind %q", a.h, a.err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(a.err.Error(), p) {
			t.Errorf("error %q does not say %q", a.err, p)
		}
	}
}

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
