package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/executor/executortest"
	"github.com/skillhost/skill/host/executor/wasm/codedir"
	"github.com/skillhost/skill/sdk"
)

// Compiled code is kept in the cache directory, or nothing is loaded.
func TestCacheDir(t *testing.T) {
	if !codedir.Checked {
		t.Skip("LEFT OUT: nothing is kept on this platform")
	}
	s := skillOf(abiSkill, undescribed(replyHello).bytes())
	try := func(dir string) error {
		x := New(Options{CacheDir: dir})
		p, err := x.Load(t.Context(), s)
		if err == nil {
			err = p.Close()
		}
		return errors.Join(err, x.Close())
	}
	dir := filepath.Join(t.TempDir(), "cache")
	for range 2 { // made, then found
		if err := try(dir); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("nothing was kept: %v", err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
	} {
		good, err := os.ReadFile(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(kept[0], damage(bytes.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := try(dir); sdk.KindOf(err) != sdk.Unavailable {
			t.Errorf("damaged: got %v, want an error of kind unavailable", err)
		}
		if err := os.WriteFile(kept[0], good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := try(dir); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("got %v, want an error of kind unavailable", err)
	}
}

// lateOps finds out that it has no operation but slow when it is to do it.
type lateOps struct{}

func (lateOps) Do(ctx context.Context, request sdk.Frame) ([]byte, error) {
	if string(request.Header) != `{"op":"slow"}` {
		return nil, executor.ErrUnknownOp
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// Runs of one program at the same time do not meet.
func TestRunConcurrently(t *testing.T) {
	p := load(t, newCached(t, cacheDir), skillOf(abiSkill, probe(t, executortest.Skill)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				job := jobOf(`{"do":[["count"],["begin","slow"],["begin","lost"],["await","2","-1"],["take","2"],["count"]]}`)
				job.Ops = lateOps{}
				r, err := p.Run(context.Background(), job)
				if err != nil || len(r.Content) != 1 || r.Content[0].Text != "1\n1\n2\n0\n-52\n2" {
					t.Errorf("got %v, %v", r.Content, err)
				}
			}
		})
	}
	wg.Wait()
}

// A guest that computes does not keep the garbage collector, and with it the
// whole host, from working.
func TestCollectDuringLoop(t *testing.T) {
	g := undescribed(join([]byte{opLoop, void, opBr, 0, opEnd, opUnreachable}))
	p := load(t, newExecutor(t), skillOf(abiSkill, g.bytes()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := p.Run(ctx, jobOf("{}"))
		done <- err
	}()
	for range 20 {
		runtime.GC()
	}
	cancel()
	if err := <-done; sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v, want an error of kind canceled", err)
	}
}
