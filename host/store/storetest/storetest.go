// Package storetest holds the promises that every backend of package store
// keeps. It knows nothing of how they keep them.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Run checks the promises on stores that open makes. Each is to be empty; Run
// closes it.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	for name, promise := range map[string]func(*testing.T, store.Store){
		"put_returns_what_get_sees": putGet,
		"compare_and_swap":          compareAndSwap,
		"delete":                    deleting,
		"versions_never_repeat":     versions,
		"values_are_copied":         copies,
		"list":                      listing,
		"list_of_any_bytes":         trickyKeys,
		"buckets_are_apart":         buckets,
		"bounds":                    bounds,
		"canceled_context":          canceled,
		"close":                     closing,
		"concurrent_increments":     increments,
		"concurrent_creation":       creation,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			promise(t, s)
		})
	}
}

var bg = context.Background()

func put(t *testing.T, s store.Store, bucket, key, value string, old int64) int64 {
	t.Helper()
	v, err := s.Put(bg, bucket, key, []byte(value), old)
	if err != nil || v < 1 {
		t.Fatalf("Put %q %q over %d: version %d, %v", bucket, key, old, v, err)
	}
	return v
}

func want(t *testing.T, s store.Store, bucket, key, value string, version int64) {
	t.Helper()
	got, v, err := s.Get(bg, bucket, key)
	if err != nil || string(got) != value || v != version {
		t.Errorf("Get %q %q: %q, version %d, %v; want %q, version %d", bucket, key, got, v, err, value, version)
	}
}

func wantAbsent(t *testing.T, s store.Store, bucket, key string) {
	t.Helper()
	if got, v, err := s.Get(bg, bucket, key); !errors.Is(err, store.ErrAbsent) || got != nil || v != 0 {
		t.Errorf("Get %q %q: %q, version %d, %v; want it absent", bucket, key, got, v, err)
	}
}

func putGet(t *testing.T, s store.Store) {
	wantAbsent(t, s, "b", "k")
	for _, value := range []string{"x", "", "\x00\xff\n", strings.Repeat("long", 1<<18)} {
		v := put(t, s, "b", "k", value, store.Any)
		want(t, s, "b", "k", value, v)
	}
	v, err := s.Put(bg, "b", "nil", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	want(t, s, "b", "nil", "", v)
}

func compareAndSwap(t *testing.T, s store.Store) {
	conflict := func(old int64) {
		t.Helper()
		if v, err := s.Put(bg, "b", "k", []byte("wrong"), old); !errors.Is(err, store.ErrConflict) || v != 0 {
			t.Errorf("Put over %d: version %d, %v", old, v, err)
		}
	}
	conflict(1)
	wantAbsent(t, s, "b", "k")
	v1 := put(t, s, "b", "k", "1", 0)
	conflict(0)
	conflict(v1 + 1)
	conflict(-2)
	want(t, s, "b", "k", "1", v1)
	v2 := put(t, s, "b", "k", "2", v1)
	conflict(v1)
	want(t, s, "b", "k", "2", v2)
	v3 := put(t, s, "b", "k", "2", v2) // the same value is a new version
	if v1 == v2 || v2 == v3 {
		t.Errorf("versions %d, %d, %d", v1, v2, v3)
	}
	conflict(v2)
}

func deleting(t *testing.T, s store.Store) {
	check := func(old int64, want error) {
		t.Helper()
		if err := s.Delete(bg, "b", "k", old); !errors.Is(err, want) {
			t.Errorf("Delete over %d: %v, want %v", old, err, want)
		}
	}
	check(store.Any, nil)
	check(0, store.ErrConflict)
	check(1, store.ErrConflict)
	v := put(t, s, "b", "k", "x", 0)
	check(0, store.ErrConflict)
	check(v+1, store.ErrConflict)
	want(t, s, "b", "k", "x", v)
	check(v, nil)
	wantAbsent(t, s, "b", "k")
	check(v, store.ErrConflict)
	put(t, s, "b", "k", "x", 0)
	check(store.Any, nil)
	wantAbsent(t, s, "b", "k")
}

func versions(t *testing.T, s store.Store) {
	seen := map[int64]bool{}
	for range 5 {
		v1 := put(t, s, "b", "k", "x", 0)
		v2 := put(t, s, "b", "k", "x", v1)
		if seen[v1] || seen[v2] || v1 == v2 {
			t.Fatalf("version %d or %d again", v1, v2)
		}
		seen[v1], seen[v2] = true, true
		if err := s.Delete(bg, "b", "k", v2); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(bg, "b", "k", nil, v2); !errors.Is(err, store.ErrConflict) {
			t.Errorf("Put over a deleted version: %v", err)
		}
	}
}

func copies(t *testing.T, s store.Store) {
	value := []byte("value")
	v, err := s.Put(bg, "b", "k", value, 0)
	if err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	got, _, err := s.Get(bg, "b", "k")
	if err != nil {
		t.Fatal(err)
	}
	got[0] = 'Y'
	items, err := s.List(bg, "b", "", "", 1)
	if err != nil || len(items) != 1 {
		t.Fatal(items, err)
	}
	items[0].Value[0] = 'Z'
	want(t, s, "b", "k", "value", v)
}

func keysOf(t *testing.T, s store.Store, bucket, prefix, after string, n int) []string {
	t.Helper()
	items, err := s.List(bg, bucket, prefix, after, n)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, it := range items {
		keys = append(keys, it.Key)
		want(t, s, bucket, it.Key, string(it.Value), it.Version)
	}
	return keys
}

func listing(t *testing.T, s store.Store) {
	for _, k := range []string{"b/2", "a", "b/10", "b", "c", "b/1", "b0"} {
		put(t, s, "b", k, "value of "+k, 0)
	}
	for _, c := range []struct {
		prefix, after string
		n             int
		want          string
	}{
		{"", "", 99, "a b b/1 b/10 b/2 b0 c"},
		{"", "", 2, "a b"},
		{"", "b", 2, "b/1 b/10"},
		{"", "b/", 1, "b/1"},
		{"b/", "", 99, "b/1 b/10 b/2"},
		{"b/", "b/1", 1, "b/10"},
		{"b/", "a", 99, "b/1 b/10 b/2"},
		{"b/", "c", 99, ""},
		{"d", "", 99, ""},
		{"", "c", 99, ""},
		{"", "", 0, ""},
		{"", "", -1, ""},
	} {
		if got := strings.Join(keysOf(t, s, "b", c.prefix, c.after, c.n), " "); got != c.want {
			t.Errorf("List prefix %q after %q n %d: %q, want %q", c.prefix, c.after, c.n, got, c.want)
		}
	}
}

func trickyKeys(t *testing.T, s store.Store) {
	keys := []string{"\x00", "\x00\x00", "\x00a", " ", "%", "%25", "'", "*", "?", "A", "A\x00", "A\x00B", "_", "a", "a%", "a'b", "a_", "aa", "a\xfe", "a\xff", "a\xff\xff", "a\xff\xffb",
		"b", "é", "\xc3", "\xff", "\xff\x00", "\xff\xff", strings.Repeat("\xff", store.MaxKey)}
	slices.Sort(keys)
	for i, k := range keys {
		put(t, s, "b", k, strconv.Itoa(i), 0)
	}
	if got := keysOf(t, s, "b", "", "", 99); !slices.Equal(got, keys) {
		t.Errorf("all: %q", got)
	}
	for _, prefix := range keys {
		for _, after := range append(keys, "") {
			var want []string
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) && k > after {
					want = append(want, k)
				}
			}
			items, err := s.List(bg, "b", prefix, after, 99)
			var got []string
			for _, it := range items {
				got = append(got, it.Key)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("prefix %.9q after %.9q: %.9q, %v, want %.9q", prefix, after, got, err, want)
			}
		}
	}
}

func buckets(t *testing.T, s store.Store) {
	names := []string{"a", "ab", "A", "a\x00", "\xff", "a/b"}
	for _, b := range names {
		put(t, s, b, "k", b, 0)
		put(t, s, b, b+"k", b, 0)
	}
	for _, b := range names {
		for _, it := range keysOf(t, s, b, "", "", 99) {
			if it != "k" && it != b+"k" {
				t.Errorf("bucket %q holds %q", b, it)
			}
		}
	}
	if err := s.Delete(bg, "a", "k", store.Any); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, "a", "k")
	if got, _, err := s.Get(bg, "ab", "k"); err != nil || string(got) != "ab" {
		t.Errorf("the neighbour is %q, %v", got, err)
	}
}

func bounds(t *testing.T, s store.Store) {
	long := strings.Repeat("k", store.MaxKey)
	v := put(t, s, long, long, "x", 0)
	want(t, s, long, long, "x", v)
	biggest := make([]byte, store.MaxValue)
	biggest[len(biggest)-1] = 1
	if _, err := s.Put(bg, "b", "big", biggest, 0); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Get(bg, "b", "big"); err != nil || !bytes.Equal(got, biggest) {
		t.Errorf("the biggest value: %d bytes, %v", len(got), err)
	}
	for name, c := range map[string]struct {
		bucket, key string
		kind        sdk.Kind
	}{
		"empty key": {"b", "", sdk.Invalid}, "empty bucket": {"", "k", sdk.Invalid},
		"long key": {"b", long + "k", sdk.Limit}, "long bucket": {long + "b", "k", sdk.Limit},
	} {
		_, perr := s.Put(bg, c.bucket, c.key, nil, store.Any)
		_, _, gerr := s.Get(bg, c.bucket, c.key)
		derr := s.Delete(bg, c.bucket, c.key, store.Any)
		if sdk.KindOf(perr) != c.kind || sdk.KindOf(gerr) != c.kind || sdk.KindOf(derr) != c.kind {
			t.Errorf("%s: %v, %v, %v", name, perr, gerr, derr)
		}
	}
	if _, err := s.Put(bg, "b", "big", append(biggest, 0), store.Any); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("a value over the bound: %v", err)
	}
}

// calls returns every operation.
func calls(s store.Store, ctx context.Context) map[string]error {
	_, _, gerr := s.Get(ctx, "b", "k")
	_, perr := s.Put(ctx, "b", "k", []byte("new"), store.Any)
	_, lerr := s.List(ctx, "b", "", "", 1)
	return map[string]error{"Get": gerr, "Put": perr, "Delete": s.Delete(ctx, "b", "k", store.Any), "List": lerr}
}

func canceled(t *testing.T, s store.Store) {
	v := put(t, s, "b", "k", "old", 0)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for op, err := range calls(s, ctx) {
		if !errors.Is(err, context.Canceled) || sdk.KindOf(err) != sdk.Canceled {
			t.Errorf("%s: %v", op, err)
		}
	}
	want(t, s, "b", "k", "old", v)
}

func closing(t *testing.T, s store.Store) {
	put(t, s, "b", "k", "x", 0)
	for range 3 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for op, err := range calls(s, bg) {
		if sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("%s after Close: %v", op, err)
		}
	}
}

// Increment adds 1 to the decimal number under a key by compare-and-swap, and
// tries again for as long as others are faster.
func Increment(ctx context.Context, s store.Store, bucket, key string) error {
	for {
		value, version, err := s.Get(ctx, bucket, key)
		if err != nil && !errors.Is(err, store.ErrAbsent) {
			return err
		}
		n := 0
		if version > 0 {
			if n, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
		_, err = s.Put(ctx, bucket, key, strconv.AppendInt(nil, int64(n)+1, 10), version)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func increments(t *testing.T, s store.Store) {
	const goroutines, each = 8, 25
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				if err := errors.Join(Increment(bg, s, "b", "shared"), Increment(bg, s, "b", fmt.Sprint("own", g))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, it := range []struct {
		key  string
		want int
	}{{"shared", goroutines * each}, {"own3", each}} {
		if got, _, err := s.Get(bg, "b", it.key); err != nil || string(got) != strconv.Itoa(it.want) {
			t.Errorf("%s is %q, %v, want %d", it.key, got, err, it.want)
		}
	}
}

// creation lets many create and delete one key: of those who compete, exactly
// one may win.
func creation(t *testing.T, s store.Store) {
	for round := range 10 {
		var mu sync.Mutex
		var won []int64
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				v, err := s.Put(bg, "b", "k", []byte(strconv.Itoa(round)), 0)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, v)
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d creators", round, len(won))
		}
		deleted := 0
		for range 6 {
			wg.Go(func() {
				err := s.Delete(bg, "b", "k", won[0])
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					deleted++
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if deleted != 1 {
			t.Fatalf("round %d: %d deleters", round, deleted)
		}
	}
}
