package audit

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// child is what a process of its own does; see start.
func child(role, dir string) {
	f, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	switch role {
	case "append":
		for i := 0; ; i++ {
			for _, e := range call(fmt.Sprint(i)) {
				if err := f.Append(bg, e); err != nil {
					fmt.Println("append:", err)
					os.Exit(1)
				}
			}
			fmt.Println(i)
		}
	case "full":
		signal.Ignore(syscall.Signal(25)) // SIGXFSZ
		if err := fill(f); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ok")
	}
}

// TestKilledHostLosesNothing kills a host with SIGKILL while it writes: what
// Append said is written must be there, and nothing may look tampered with.
func TestKilledHostLosesNothing(t *testing.T) {
	dir := logDir(t)
	for round := range 4 {
		cmd, out := start(t, "append", dir)
		last := -1
		for last < 200+round*37 {
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
		for { // what it said before it died
			line, err := out.ReadString('\n')
			if err != nil {
				break
			}
			_, _ = fmt.Sscan(line, &last)
		}
		_ = cmd.Wait()
		r := verify(t, dir)
		if !r.Intact() || len(r.Files) != round+1 {
			t.Fatalf("round %d: %+v", round, r.Problems)
		}
		if f := r.Files[round]; f.State != "unclosed" || f.Records < 1+3*(last+1) {
			t.Errorf("round %d: %d calls were acknowledged and %d records are there", round, last+1, f.Records)
		}
	}
	f := open(t, Options{Dir: dir})
	closeLog(t, f)
	if r := verify(t, dir); !r.Intact() || len(r.Files) != 5 {
		t.Errorf("after the next boot: %+v", r.Problems)
	}
}

// TestFullDisk lets a child run into a limit on the size of its files, which
// answers as a full disk does.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no limit on the size of files here")
	}
	dir := logDir(t)
	_, out := start(t, "full", dir)
	line, err := out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ok" {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = out.ReadString('\n')
	if r := verify(t, dir); !r.Intact() || r.Interrupted != 0 || r.Files[0].State != "closed" {
		t.Errorf("%+v", r)
	}
}

// fill starts calls until there is no space, ends them all, and goes on once
// there is space again.
func fill(f *File) error {
	if err := limitFileSize(256 << 10); err != nil {
		return err
	}
	var running []string
	for {
		id := fmt.Sprint(len(running))
		err := f.Append(bg, Event{Type: TypeStart, Call: id})
		if err != nil {
			if sdk.KindOf(err) != sdk.Unavailable {
				return fmt.Errorf("refused with %w", err)
			}
			break
		}
		if running = append(running, id); len(running) > 100 {
			return errors.New("the limit was not met")
		}
	}
	long := strings.Repeat("\x01", 4096)
	accesses := 0
	for ; f.Append(bg, Event{Type: TypeAccess, Call: "0", Target: long}) == nil; accesses++ {
		if accesses > 1000 {
			return errors.New("accesses never met the limit")
		}
	}
	if len(running) == 0 || accesses == 0 {
		return fmt.Errorf("%d calls and %d accesses had space", len(running), accesses)
	}
	for _, typ := range []Type{TypeStart, TypeRefuse, TypePolicy} {
		if err := f.Append(bg, Event{Type: typ}); sdk.KindOf(err) != sdk.Unavailable {
			return fmt.Errorf("type %s on a full disk: %v", typ, err)
		}
	}
	for _, id := range running {
		if err := f.Append(bg, Event{Type: TypeEnd, Call: id, Error: long, Client: long, Caller: long}); err != nil {
			return fmt.Errorf("the end of a call that was running: %w", err)
		}
	}
	if err := limitFileSize(^uint64(0)); err != nil {
		return err
	}
	for _, e := range call("after") {
		if err := f.Append(bg, e); err != nil {
			return fmt.Errorf("with space again: %w", err)
		}
	}
	return f.Close()
}

// TestCutFileBreaksTheLog truncates the file under its writer. The host must
// live, start no further call, and still record what ran.
func TestCutFileBreaksTheLog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be cut here")
	}
	for name, now := range map[string]func() time.Time{
		"seen_by_the_next_record": func() time.Time { return time.Unix(1e9, 0) },
		"seen_by_the_next_second": clock(time.Unix(1e9, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "seen_by_the_next_record" && runtime.GOOS != "linux" {
				t.Skip("no mapping here")
			}
			dir := logDir(t)
			f := open(t, Options{Dir: dir, Now: now})
			appendAll(t, f, call("c1")[0])
			if err := os.Truncate(logFiles(t, dir)[0], 0); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := f.Append(bg, call("c2")[0]); sdk.KindOf(err) != sdk.Unavailable {
					t.Errorf("a call starts: %v", err)
				}
			}
			if err := f.Append(bg, call("c1")[2]); err != nil {
				t.Errorf("the end of a running call: %v", err)
			}
			closeLog(t, f)
			if r := verify(t, dir); r.Intact() {
				t.Error("nobody notices")
			}
			if !strings.Contains(string(readFile(t, logFiles(t, dir)[0])), `"type":"end"`) {
				t.Error("the end is not in the file")
			}
		})
	}
}

func TestUnlinkedFileBreaksTheLog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files that are open cannot be removed here")
	}
	dir := logDir(t)
	f := open(t, Options{Dir: dir, Now: clock(time.Unix(1e9, 0))})
	appendAll(t, f, call("c1")...)
	if err := os.Remove(logFiles(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(bg, call("c2")[0]); sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "removed") {
		t.Errorf("a call starts: %v", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	dir := logDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	boots(t, dir, 2)
	if _, err := Retain(dir, 0, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	boots(t, dir, 1)
	for path, want := range map[string]os.FileMode{dir: 0o700, dir + "/../audit.key": 0o600, logFiles(t, dir)[0]: 0o600, dir + "/.lock": 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	link := logDir(t)
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: link}); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("the directory is a link: %v", err)
	}
}
