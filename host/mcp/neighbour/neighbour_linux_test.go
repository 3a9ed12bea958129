package neighbour

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the other user: it connects to the address that it is given
// and prints what it reads.
func TestMain(m *testing.M) {
	address := os.Getenv("NEIGHBOUR_CALLS")
	if address == "" {
		os.Exit(m.Run())
	}
	c, err := net.Dial("tcp", address)
	if err == nil {
		_, err = io.WriteString(c, "hello\n")
	}
	if err == nil {
		_, err = io.Copy(os.Stdout, c)
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
	}
	os.Exit(0)
}

// serve greets whoever comes through.
func serve(t *testing.T, address string, uid int) (string, chan string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no %s here: %v", address, err)
	}
	turned := make(chan string, 64)
	l = Only(l, uid, "go away", func(who string, _ int) { turned <- who })
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 16))
			io.WriteString(c, "welcome")
			c.Close()
		}
	}()
	return l.Addr().String(), turned
}

func call(t *testing.T, address string, uid int) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"NEIGHBOUR_CALLS=" + address}
	if uid != os.Getuid() {
		cmd.SysProcAttr = credential(uid)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// loopback_other_user: nobody but the user of the host, and root, gets in.
func TestOnlyOneUser(t *testing.T) {
	me := os.Getuid()
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		address, _ := serve(t, listen, me)
		_, port, _ := net.SplitHostPort(address)
		to := map[string]string{"127.0.0.1:0": "127.0.0.1", "[::1]:0": "::1", "[::]:0": "::ffff:127.0.0.1"}[listen]
		if got := call(t, net.JoinHostPort(to, port), me); got != "welcome" {
			t.Errorf("%s: %q", listen, got)
		}
	}
	if me != 0 {
		t.Skip("LEFT OUT: only root can be another user")
	}
	address, turned := serve(t, "127.0.0.1:0", 1507)
	if got := call(t, address, 1507); got != "welcome" {
		t.Errorf("the user: %q", got)
	}
	if got := call(t, address, 0); got != "welcome" {
		t.Errorf("root: %q", got)
	}
	if got := call(t, address, 1508); !strings.HasPrefix(got, "go away") {
		t.Errorf("another user: %q", got)
	}
	select {
	case who := <-turned:
		if who != "user 1508" {
			t.Errorf("turned away %s", who)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody was turned away")
	}
}

// A connection that is over when it is looked at belongs to nobody.
func TestGone(t *testing.T) {
	if _, err := find("/proc/net/tcp", "0100007F:0001", "0100007F:0002"); err != errUnknown {
		t.Errorf("got %v", err)
	}
	if _, err := find("/proc/net/none", "x", "y"); err != errUnknown {
		t.Errorf("got %v", err)
	}
}

// sent_and_gone: a socket that its process has closed is no user's any more, and
// the kernel's table shows root there. What it has sent is not served.
func TestSentAndGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		t.Fatal(err)
	}
	c.Close() // before anybody has accepted it
	turned := make(chan string, 1)
	only := Only(l, os.Getuid(), "go away", func(who string, _ int) {
		turned <- who
		l.Close()
	})
	if c, err := only.Accept(); err == nil {
		c.Close()
		l.Close()
		t.Fatal("a connection of nobody was served")
	}
	if who := <-turned; who != errUnknown.Error() {
		t.Errorf("turned away %s", who)
	}
}

// Half of a connection may be closed: its owner is there.
func TestHalfClosed(t *testing.T) {
	address, _ := serve(t, "127.0.0.1:0", os.Getuid())
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "welcome" {
		t.Errorf("%q %v", got, err)
	}
}

func credential(uid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}
