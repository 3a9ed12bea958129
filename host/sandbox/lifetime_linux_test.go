package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/skillhost/skill/host/sandbox/stage"
)

func TestStates(t *testing.T) {
	for _, level := range levels(t) {
		w := newWorld(t)
		for _, tt := range []struct {
			do   string
			kill bool
			want State
		}{
			{"exit 0", false, State{}},
			{"exit 7", false, State{Exit: 7}},
			{"sleep 60000", true, State{Exit: -1, Signal: "SIGKILL"}},
		} {
			for _, init := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/init=%v", level, tt.do, init), func(t *testing.T) {
					p := program(t, tt.do)
					p.Init = init
					proc, err := w.Start(t.Context(), w.cage(level), p)
					if err != nil {
						t.Fatal(err)
					}
					if tt.kill {
						proc.Kill()
						proc.Kill()
					}
					got, err := proc.Wait()
					if got != tt.want || err != nil {
						t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
					}
					if proc.Signal(syscall.SIGTERM) == nil {
						t.Error("signalled a process that has ended")
					}
				})
			}
		}
	}
}

func TestSignals(t *testing.T) {
	for _, level := range levels(t) {
		for _, init := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/init=%v", level, init), func(t *testing.T) {
				w := newWorld(t)
				r, wr, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				p := program(t, "term")
				p.Init, p.Out = init, wr
				proc, err := w.Start(t.Context(), w.cage(level), p)
				wr.Close()
				if err != nil {
					t.Fatal(err)
				}
				late := time.AfterFunc(maxRun, proc.Kill)
				defer late.Stop()
				lines := bufio.NewScanner(r)
				if !lines.Scan() {
					t.Fatal("the program did not begin")
				}
				if err := proc.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
				if !lines.Scan() || lines.Text() != "term: EINTR" {
					t.Errorf("got %q", lines.Text())
				}
			})
		}
	}
}

// What a program leaves behind does not outlive its cage: at level strict
// wherever it went, elsewhere if it stayed in its process group.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	for _, init := range []bool{false, true} {
		for _, how := range []string{"the program ends", "Kill", "Close"} {
			t.Run(fmt.Sprintf("%s/init=%v", how, init), func(t *testing.T) {
				l := New()
				defer l.Close()
				marker := fmt.Sprintf("left=%d-%v-%s", os.Getpid(), init, strings.ReplaceAll(how, " ", "-"))
				list := []string{"orphans 3"}
				if how != "the program ends" {
					list = append(list, "sleep 60000")
				}
				p := program(t, list...)
				p.Init = init
				p.Env = append(p.Env, marker)
				proc, err := l.Start(t.Context(), w.cage(need(t, Strict)), p)
				if err != nil {
					t.Fatal(err)
				}
				if how != "the program ends" {
					within(t, "the orphans to begin", func() bool { return len(withEnv(t, marker)) >= 4 })
				}
				switch how {
				case "Kill":
					proc.Kill()
				case "Close":
					if err := l.Close(); err != nil {
						t.Error(err)
					}
					if n := withEnv(t, marker); len(n) > 0 {
						t.Errorf("after Close there are %v", n)
					}
				}
				<-proc.Done()
				if n := withEnv(t, marker); len(n) > 0 {
					t.Errorf("left: %v", n)
				}
			})
		}
	}
}

// At level landlock there is no PID namespace: what stayed in the program's
// process group ends with it.
func TestProcessGroupIsLeft(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root runs at level strict only")
	}
	for _, level := range []Level{need(t, Landlock), None} {
		for _, init := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/init=%v", level, init), func(t *testing.T) {
				w := newWorld(t)
				marker := fmt.Sprintf("group=%d-%s-%v", os.Getpid(), level, init)
				p := program(t, "children 3", "sleep 1000")
				p.Init = init
				p.Env = append(p.Env, marker)
				proc, err := w.Start(t.Context(), w.cage(level), p)
				if err != nil {
					t.Fatal(err)
				}
				within(t, "the children to begin", func() bool { return len(withEnv(t, marker)) >= 4 })
				<-proc.Done()
				within(t, "the children to end", func() bool { return len(withEnv(t, marker)) == 0 })
			})
		}
	}
}

// within waits for something that is to happen soon.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// withEnv returns the processes that have a variable in their environment.
func withEnv(t *testing.T, variable string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), variable) {
			pids = append(pids, f)
		}
	}
	return pids
}

// doomedHost starts a cage and says so; then it is killed.
func doomedHost(args []string) int {
	level, init, marker := Level(args[0]), args[1] == "true", args[2]
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return 1
	}
	w := &world{Launcher: New(), read: args[3], write: args[3]}
	_, err = w.Start(context.Background(), w.cage(level), Program{File: self, Init: init,
		Args: []string{"hostile", "orphans 3", "sleep 60000"}, Env: []string{roleEnv + "=hostile", marker}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	time.Sleep(time.Minute)
	return 0
}

// kill -9 of the host leaves no process behind.
func TestHostIsKilled(t *testing.T) {
	need(t, Strict)
	for _, init := range []bool{false, true} {
		t.Run(fmt.Sprintf("init=%v", init), func(t *testing.T) {
			marker := fmt.Sprintf("doomed=%d-%v", os.Getpid(), init)
			host := exec.Command("/proc/self/exe", "strict", strconv.FormatBool(init), marker, newWorld(t).write)
			host.Env = []string{roleEnv + "=host"}
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			if line != "started\n" {
				t.Errorf("the host said %q", line)
			} else {
				within(t, "the orphans to begin", func() bool { return len(withEnv(t, marker)) >= 4 })
			}
			_ = host.Process.Kill()
			_, _ = io.Copy(io.Discard, out)
			_ = host.Wait()
			within(t, "the cage to end with its host", func() bool { return len(withEnv(t, marker)) == 0 })
		})
	}
}

// A stage whose host died before the kernel knew that it is to die with it
// finds out by itself: nobody says Go, and it executes nothing.
func TestStageWithoutHost(t *testing.T) {
	w := newWorld(t)
	level := levels(t)[0]
	for _, answer := range []string{"", "no", string(rune(stage.Go))} {
		c, p := w.cage(level), program(t, "write "+w.write+"/ran")
		c.Limits = c.Limits.withDefaults()
		status, child, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		spec, err := seal(specOf(&c, &p, false).Encode())
		if err != nil {
			t.Fatal(err)
		}
		null := open(t, os.DevNull)
		cmd := exec.Command("/proc/self/exe")
		cmd.Args[0] = stage.Name
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(spec), "spec"), child, p.File}
		cmd.Stdin, cmd.SysProcAttr = null, sysProcAttr(&c, nil)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		child.Close()
		cmd.ExtraFiles[0].Close()
		if answer != "" {
			_, _ = status.WriteString(answer)
		}
		alive := answer == string(rune(stage.Go))
		if answer == "" {
			status.Close() // as the kernel does for a host that dies
		}
		if err := cmd.Wait(); (err == nil) != alive {
			t.Errorf("answer %q: the stage ended with %v", answer, err)
		}
		if _, err := os.Stat(w.write + "/ran"); (err == nil) != alive {
			t.Errorf("answer %q: whether the program ran: %v", answer, err)
		}
		status.Close()
	}
}

// The thread of the goroutine that called Start ends; the process does not.
func TestThreadEnds(t *testing.T) {
	w := newWorld(t)
	level := levels(t)[0]
	procs := make(chan Process)
	var failure error
	for range 4 {
		go func() {
			runtime.LockOSThread() // and end with the thread
			proc, err := w.Start(context.Background(), w.cage(level), program(t, "sleep 60000"))
			if err != nil {
				failure = err
			}
			procs <- proc
		}()
		proc := <-procs
		if failure != nil {
			t.Fatal(failure)
		}
		select {
		case <-proc.Done():
			s, _ := proc.Wait()
			t.Errorf("the process ended with the thread: %+v", s)
		case <-time.After(150 * time.Millisecond):
		}
		proc.Kill()
	}
}

func TestStartLeaksNothing(t *testing.T) {
	n := 200
	if testing.Short() || raced { // which makes a start take several times as long
		n = 30
	}
	w := newWorld(t)
	level := levels(t)[0]
	start := func(i int) {
		p := program(t, "exit 0")
		defer p.File.Close()
		c := w.cage(level)
		p.Init = i%2 == 0
		if level == Strict && i%3 == 0 {
			c.Network = Proxy
			c.Serves = w.write
		}
		if i%5 == 4 { // a start that fails
			p.Dir = "/nowhere"
			if _, err := w.Start(t.Context(), c, p); err == nil {
				t.Error("started in a directory that is not there")
			}
			return
		}
		proc, err := w.Start(t.Context(), c, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proc.Wait(); err != nil {
			t.Error(err)
		}
	}
	for i := range 15 {
		start(i)
	}
	fds, goroutines := openFiles(t), runtime.NumGoroutine()
	for i := range n {
		start(i)
	}
	within(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := openFiles(t); now > fds {
		t.Errorf("%d descriptors became %d", fds, now)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
