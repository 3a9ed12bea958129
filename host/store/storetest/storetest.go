// Package storetest holds the promises that every store keeps. A backend's
// test calls Run.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/store"
)

// Run holds the stores that open makes to the promises. Each call of open
// gives an empty one.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"round_trip": roundTrip, "compare_and_swap": compareAndSwap, "versions_never_repeat": versions, "increments": increments,
		"list": list, "list_tricky_bytes": tricky, "buckets_are_apart": buckets, "bounds": bounds, "canceled": canceled,
		"values_are_copies": copies, "close": closing,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			test(t, s)
		})
	}
}

func put(t *testing.T, s store.Store, bucket, key, value string, old int64) int64 {
	t.Helper()
	v, err := s.Put(t.Context(), bucket, key, []byte(value), old)
	if err != nil {
		t.Fatalf("Put %q: %v", key, err)
	}
	return v
}

func roundTrip(t *testing.T, s store.Store) {
	if _, _, err := s.Get(t.Context(), "b", "k"); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("absent key gives %v", err)
	}
	for _, value := range []string{"one", "", "\x00\xff", strings.Repeat("x", 1<<20)} {
		v := put(t, s, "b", "k", value, store.Any)
		got, version, err := s.Get(t.Context(), "b", "k")
		if err != nil || string(got) != value || version != v || v < 1 {
			t.Errorf("got %d bytes of version %d, %v; want %d of %d", len(got), version, err, len(value), v)
		}
	}
	if err := s.Delete(t.Context(), "b", "k", store.Any); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Get(t.Context(), "b", "k"); !errors.Is(err, store.ErrAbsent) {
		t.Errorf("deleted key gives %v", err)
	}
	if err := s.Delete(t.Context(), "b", "k", store.Any); err != nil {
		t.Errorf("deleting an absent key: %v", err)
	}
}

func compareAndSwap(t *testing.T, s store.Store) {
	conflict := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", what, err)
		}
	}
	_, err := s.Put(t.Context(), "b", "k", nil, 7)
	conflict("put over a version that never was", err)
	v1 := put(t, s, "b", "k", "1", 0)
	_, err = s.Put(t.Context(), "b", "k", nil, 0)
	conflict("create what exists", err)
	v2 := put(t, s, "b", "k", "2", v1)
	_, err = s.Put(t.Context(), "b", "k", nil, v1)
	conflict("put over an old version", err)
	conflict("delete an old version", s.Delete(t.Context(), "b", "k", v1))
	conflict("delete as absent", s.Delete(t.Context(), "b", "k", 0))
	if err := s.Delete(t.Context(), "b", "k", v2); err != nil {
		t.Error(err)
	}
	conflict("delete what is gone", s.Delete(t.Context(), "b", "k", v2))
}

func versions(t *testing.T, s store.Store) {
	seen := map[int64]bool{}
	for range 20 {
		v := put(t, s, "b", "k", "x", store.Any)
		if seen[v] {
			t.Fatalf("version %d twice", v)
		}
		seen[v] = true
		if err := s.Delete(t.Context(), "b", "k", v); err != nil {
			t.Fatal(err)
		}
	}
}

// Increment adds one to a number, as often as it takes.
func Increment(ctx context.Context, s store.Store, bucket, key string) error {
	for {
		value, old, err := s.Get(ctx, bucket, key)
		if err != nil && !errors.Is(err, store.ErrAbsent) {
			return err
		}
		n := 0
		if err == nil {
			if n, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
		_, err = s.Put(ctx, bucket, key, []byte(strconv.Itoa(n+1)), old)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func increments(t *testing.T, s store.Store) {
	const writers, each = 8, 25
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				if err := Increment(t.Context(), s, "b", "n"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	if got, _, err := s.Get(t.Context(), "b", "n"); err != nil || string(got) != strconv.Itoa(writers*each) {
		t.Errorf("%q, %v after %d increments", got, err, writers*each)
	}
}

func list(t *testing.T, s store.Store) {
	for i := range 25 {
		put(t, s, "b", fmt.Sprintf("a/%02d", i), strconv.Itoa(i), 0)
	}
	put(t, s, "b", "b", "other", 0)
	var keys []string
	for after := ""; ; {
		page, err := s.List(t.Context(), "b", "a/", after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, i := range page {
			if string(i.Value) != strconv.Itoa(len(keys)) || i.Version < 1 {
				t.Errorf("%s has %q of version %d", i.Key, i.Value, i.Version)
			}
			keys = append(keys, i.Key)
		}
		after = page[len(page)-1].Key
	}
	if len(keys) != 25 {
		t.Errorf("listed %d keys: %q", len(keys), keys)
	}
	for _, n := range []int{0, -1} {
		if page, err := s.List(t.Context(), "b", "", "", n); err != nil || len(page) != 0 {
			t.Errorf("a page of %d has %d, %v", n, len(page), err)
		}
	}
}

func tricky(t *testing.T, s store.Store) {
	want := []string{"\x00", "\x00a", "%", "%_", "_", "a", "a\x00", "a\xff", "a\xff\xff", "é", "\xff", "\xff\xff"}
	for _, k := range want {
		put(t, s, "b", k, k, 0)
	}
	for _, prefix := range append(want, "") {
		got, err := s.List(t.Context(), "b", prefix, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		var keys, expect []string
		for _, i := range got {
			keys = append(keys, i.Key)
		}
		for _, k := range want {
			if strings.HasPrefix(k, prefix) {
				expect = append(expect, k)
			}
		}
		if fmt.Sprintf("%q", keys) != fmt.Sprintf("%q", expect) {
			t.Errorf("prefix %q: %q, want %q", prefix, keys, expect)
		}
	}
}

func buckets(t *testing.T, s store.Store) {
	for _, b := range []string{"a", "a/b", "a\x00b", "A"} {
		put(t, s, b, "k", b, 0)
		put(t, s, b, "b", b, 0)
	}
	for _, b := range []string{"a", "a/b", "a\x00b", "A"} {
		page, err := s.List(t.Context(), b, "", "", 10)
		if err != nil || len(page) != 2 || string(page[0].Value) != b {
			t.Errorf("bucket %q: %v, %v", b, page, err)
		}
	}
}

func bounds(t *testing.T, s store.Store) {
	long := strings.Repeat("k", store.MaxKey+1)
	for what, err := range map[string]error{
		"long key":    second(s.Put(t.Context(), "b", long, nil, store.Any)),
		"long bucket": second(s.Put(t.Context(), long, "k", nil, store.Any)),
		"long value":  second(s.Put(t.Context(), "b", "k", make([]byte, store.MaxValue+1), store.Any)),
		"no key":      second(s.Put(t.Context(), "b", "", nil, store.Any)),
		"no bucket":   second(s.Put(t.Context(), "", "k", nil, store.Any)),
	} {
		if err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	put(t, s, "b", long[1:], "fits", 0)
}

func second(_ int64, err error) error { return err }

func canceled(t *testing.T, s store.Store) {
	put(t, s, "b", "k", "1", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, "b", "k", []byte("2"), store.Any); err == nil {
		t.Error("a canceled Put succeeds")
	}
	if got, _, err := s.Get(t.Context(), "b", "k"); err != nil || string(got) != "1" {
		t.Errorf("%q, %v after a canceled Put", got, err)
	}
}

func copies(t *testing.T, s store.Store) {
	value := []byte("abc")
	if _, err := s.Put(t.Context(), "b", "k", value, 0); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	got, _, err := s.Get(t.Context(), "b", "k")
	if err != nil || !bytes.Equal(got, []byte("abc")) {
		t.Errorf("%q, %v", got, err)
	}
	got[0] = 'Y'
	if again, _, err := s.Get(t.Context(), "b", "k"); err != nil || !bytes.Equal(again, []byte("abc")) {
		t.Errorf("%q, %v", again, err)
	}
}

func closing(t *testing.T, s store.Store) {
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := s.Get(t.Context(), "b", "k"); err == nil || errors.Is(err, store.ErrAbsent) {
		t.Errorf("Get after Close: %v", err)
	}
}
