//go:build unix

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/skillhost/skill/sdk/guest"
)

type in struct {
	Do   string `json:"do"`
	Text string `json:"text,omitempty"`
}

var count int

// tools registers a tool that does what it is asked to.
func tools() {
	guest.Tool("do", "", func(c *guest.Call, in in) (string, error) {
		switch in.Do {
		case "say":
			return in.Text, nil
		case "count":
			count++
			return strconv.Itoa(count), nil
		case "pid":
			return strconv.Itoa(os.Getpid()), nil
		case "stdin":
			b, err := io.ReadAll(os.Stdin)
			return string(b), err
		case "env":
			return strings.Join(os.Environ(), "\n"), nil
		case "fds":
			return fds()
		case "exe":
			b, err := os.ReadFile("/proc/self/exe")
			return fmt.Sprint(len(b)), err
		case "print":
			fmt.Println(in.Text)
			fmt.Fprintln(os.Stderr, "aside "+in.Text)
			return "printed", nil
		case "flood":
			flood(os.Stdout)
		case "exit":
			fmt.Fprintln(os.Stderr, "bye")
			os.Exit(5)
		case "nap":
			d, err := time.ParseDuration(in.Text)
			time.Sleep(d)
			return "awake", err
		case "wait":
			<-c.Context().Done()
			b, err := json.Marshal(map[string]any{"cause": context.Cause(c.Context()).Error()})
			return string(b), err
		case "op":
			f, err := c.Start(in.Text, nil).Wait()
			return string(f.Header), err
		case "ops":
			return many(c, in.Text)
		case "dial":
			network, address, _ := strings.Cut(in.Text, " ")
			conn, err := net.DialTimeout(network, address, 5*time.Second)
			if err == nil {
				conn.Close()
				return "connected", nil
			}
			return err.Error(), nil
		case "proxy":
			return c.Proxy(), nil
		}
		return "", fmt.Errorf("do what?")
	})
}

// fds lists the files that are open.
func fds() (string, error) {
	var out []string
	for fd := range 1024 {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil {
			out = append(out, file(&st))
		}
	}
	return strings.Join(out, "\n"), nil
}

// file tells files apart.
func file(st *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }

// many starts n operations and waits for them.
func many(c *guest.Call, n string) (string, error) {
	count, err := strconv.Atoi(n)
	if err != nil {
		return "", err
	}
	var started []*guest.Op
	for range count {
		started = append(started, c.Start("meet", nil))
	}
	failed := 0
	for _, o := range started {
		if _, err := o.Wait(); err != nil {
			failed++
		}
	}
	return fmt.Sprintf("%d failed", failed), nil
}
