package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/storetest"
	"github.com/skillhost/skill/sdk"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return Open(filepath.Join(t.TempDir(), "state ?&#%41.db")) })
}

// TestMain is also the process that TestProcesses and TestKill start.
func TestMain(m *testing.M) {
	file, loop := os.Getenv("STORE_FILE"), os.Getenv("STORE_LOOP") != ""
	if file == "" {
		os.Exit(m.Run())
	}
	s := Open(file)
	for i := 0; i < 40 || loop; i++ {
		if err := storetest.Increment(context.Background(), s, "b", "n"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if loop {
			fmt.Println(i)
		}
	}
	if err := s.Close(); err != nil {
		os.Exit(1)
	}
}

func child(t *testing.T, file string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "STORE_FILE="+file), env...)
	return cmd
}

// TestProcesses has several processes count in one file, which none of them
// has made: no increment is lost.
func TestProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if out, err := child(t, file).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	group.Wait()
	s := Open(file)
	defer s.Close()
	if got, _, err := s.Get(t.Context(), "b", "n"); err != nil || string(got) != "160" {
		t.Errorf("%q, %v after 160 increments", got, err)
	}
}

// TestKill kills a writer in the middle: what it had done is there, and the
// file is whole.
func TestKill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	for range 3 {
		cmd := child(t, file, "STORE_LOOP=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 40)
		if _, err := out.Read(buf); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
	}
	s := Open(file)
	defer s.Close()
	if err := storetest.Increment(t.Context(), s, "b", "n"); err != nil {
		t.Error(err)
	}
	var verdict string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity: %q, %v", verdict, err)
	}
}

func TestPrivateFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no mode bits on windows")
	}
	file := filepath.Join(t.TempDir(), "state.db")
	s := Open(file)
	defer s.Close()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("Open touched the file: %v", err)
	}
	if _, err := s.Put(t.Context(), "b", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// TestDamaged checks that a damaged file is reported and left alone.
func TestDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	content := []byte(strings.Repeat("this is no database ", 500))
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(file)
	defer s.Close()
	_, _, err := s.Get(t.Context(), "b", "k")
	var e *sdk.Error
	if !errors.As(err, &e) || e.Kind != sdk.Unavailable || !strings.Contains(e.Hint, "damaged") {
		t.Errorf("%v", err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(content) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestNewer checks that tables of a later version are not touched.
func TestNewer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.db")
	s := Open(file)
	if _, err := s.Put(t.Context(), "b", "k", nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = Open(file)
	defer s.Close()
	if _, _, err := s.Get(t.Context(), "b", "k"); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("%v", err)
	}
}
