package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/sdk"
)

// Edits at the same time are all kept.
func TestEditsAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.toml")
	var work sync.WaitGroup
	for i := range 16 {
		work.Go(func() {
			err := editPolicy(t.Context(), file, func(data []byte) ([]byte, error) { return policy.Forbid(data, fmt.Sprintf("skill-%d", i)) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "allow = false") != 16 {
		t.Errorf("%v\n%s", err, data)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A lock that nobody gives back is waited for, and named.
func TestLockTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := editPolicy(ctx, file, func([]byte) ([]byte, error) { t.Error("edited without the lock"); return nil, nil })
	if sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), file+".lock") {
		t.Error(err)
	}
	if _, err := os.Stat(file + ".lock"); err != nil {
		t.Errorf("the other's lock is gone: %v", err)
	}
}
