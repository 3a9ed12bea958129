package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/host/store/storetest"
	"github.com/skillhost/skill/sdk"
)

var bg = context.Background()

const childEnv = "SQLITE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role, os.Getenv("SQLITE_TEST_FILE")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is what a process of its own does.
func child(role, path string) error {
	s := Open(path)
	switch role {
	case "increment":
		for range 50 {
			if err := storetest.Increment(bg, s, "b", "shared"); err != nil {
				return err
			}
		}
		return s.Close()
	case "write":
		for i := 1; ; i++ {
			if _, err := s.Put(bg, "b", "n", []byte(strconv.Itoa(i)), store.Any); err != nil {
				return err
			}
			if _, err := s.Put(bg, "b", "big", make([]byte, 200<<10), store.Any); err != nil {
				return err
			}
			fmt.Println(i)
		}
	}
	return fmt.Errorf("no role %q", role)
}

func start(t *testing.T, role, path string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, "SQLITE_TEST_FILE="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s := Open(path)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// odd is a file name that a careless URI would cut.
const odd = "state #1 100%25?mode=memory&x.db"

func file(t *testing.T) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(t.TempDir(), "state #1 100%25.db")
	}
	return filepath.Join(t.TempDir(), "dir", odd)
}

func put(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if _, err := s.Put(bg, "b", key, []byte(value), store.Any); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s *Store, key, value string) {
	t.Helper()
	if got, _, err := s.Get(bg, "b", key); err != nil || string(got) != value {
		t.Errorf("%s is %q, %v, want %q", key, got, err, value)
	}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return Open(file(t)) })
}

func TestOpenIsLazyAndKeepsWhatIsThere(t *testing.T) {
	path := file(t)
	s := open(t, path)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("Open touched the file: %v", err)
	}
	put(t, s, "k", "x")
	if runtime.GOOS != "windows" {
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	}
	other := open(t, path) // of another process, as it were
	want(t, other, "k", "x")
	put(t, other, "k", "y")
	want(t, s, "k", "y")
	if err := errors.Join(s.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, open(t, path), "k", "y")
	found, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(found) > 3 {
		t.Errorf("left behind: %v, %v", found, err)
	}
	if err := Open(filepath.Join(t.TempDir(), "x")).Close(); err != nil {
		t.Errorf("Close without use: %v", err)
	}
}

func TestLooseModeIsTightened(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	path := file(t)
	s := open(t, path)
	put(t, s, "k", "x")
	if err := errors.Join(s.Close(), os.Chmod(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	want(t, open(t, path), "k", "x")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestProcessesLoseNoUpdate(t *testing.T) {
	path := file(t)
	const processes = 4
	var cmds []*exec.Cmd
	var outs []*bufio.Reader
	for range processes {
		cmd, out := start(t, "increment", path) // the first ones compete to make the file
		cmds, outs = append(cmds, cmd), append(outs, out)
	}
	for i, cmd := range cmds {
		said, _ := outs[i].ReadString('\n')
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	want(t, open(t, path), "shared", strconv.Itoa(50*processes))
}

func TestKilledProcessLeavesAWholeStore(t *testing.T) {
	path := file(t)
	for round := range 3 {
		cmd, out := start(t, "write", path)
		last := 0
		for last < 5+3*round {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(line, &last); err != nil {
				t.Fatal(line)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				break
			}
			_, _ = fmt.Sscan(line, &last)
		}
		_ = cmd.Wait()
		s := open(t, path)
		got, _, err := s.Get(bg, "b", "n")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(string(got)); err != nil || n < last {
			t.Errorf("%d writes were acknowledged and the last one there is %q", last, got)
		}
		var verdict string
		if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
			t.Errorf("integrity: %s, %v", verdict, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadFilesAreRefusedAndLeftAlone damages a file in ways that must never
// end in an empty store.
func TestBadFilesAreRefusedAndLeftAlone(t *testing.T) {
	path := file(t)
	s := open(t, path)
	for i := range 200 {
		put(t, s, fmt.Sprint(i), strings.Repeat("x", 1000))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"empty":           func([]byte) []byte { return []byte{} },
		"text":            func([]byte) []byte { return []byte(strings.Repeat("this is no database\n", 100)) },
		"header":          func(b []byte) []byte { b[0] ^= 1; return b },
		"cut_in_header":   func(b []byte) []byte { return b[:50] },
		"cut_in_the_data": func(b []byte) []byte { return b[:len(b)/2/4096*4096] },
		"pages_of_zeros":  func(b []byte) []byte { clear(b[4096:]); return b },
		"other_program":   func(b []byte) []byte { b[68]++; return b }, // application_id
		"newer_format":    func(b []byte) []byte { b[63]++; return b }, // user_version
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			bad := change(append([]byte{}, good...))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, bad, 0o600)); err != nil {
				t.Fatal(err)
			}
			s := open(t, path)
			_, _, err := s.Get(bg, "b", "0")
			if err == nil { // a part of the file that this key does not need is gone
				for i := range 200 {
					_, _, gerr := s.Get(bg, "b", fmt.Sprint(i))
					err = errors.Join(err, gerr)
				}
			}
			if sdk.KindOf(err) != sdk.Unavailable || errors.Is(err, store.ErrAbsent) {
				t.Errorf("Get: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(bad) {
				t.Errorf("the file was changed: %d bytes of %d, %v", len(after), len(bad), err)
			}
		})
	}
}

func TestMissingFileWithJournalIsRefused(t *testing.T) {
	path := file(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+"-wal", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(t, path).Get(bg, "b", "k"); sdk.KindOf(err) != sdk.Unavailable {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was made: %v", err)
	}
}

// TestUseAfterFailureTriesAgain: a store that could not be opened is not lost
// for the life of the host.
func TestUseAfterFailureTriesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if _, _, err := s.Get(bg, "b", "k"); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("a folder as the file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, s, "k", "x")
	want(t, s, "k", "x")
}

// TestOlderSchemaIsMigrated takes a file back to before the first migration.
func TestOlderSchemaIsMigrated(t *testing.T) {
	path := file(t)
	s := open(t, path)
	put(t, s, "k", "x")
	if _, err := s.db.Exec("DROP TABLE item; PRAGMA user_version = 0"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	put(t, s, "k", "y")
	want(t, s, "k", "y")
}

func BenchmarkStore(b *testing.B) {
	s := Open(filepath.Join(b.TempDir(), "x.db"))
	defer func() { _ = s.Close() }()
	value := make([]byte, 200)
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Put(bg, "b", "k", value, store.Any); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Get(bg, "b", "k"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFirstUse(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.db")
	for b.Loop() {
		s := Open(path)
		if _, err := s.List(bg, "b", "", "", 1); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
