package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/sandbox/stage"
	"github.com/skillhost/skill/host/sandbox/view"
)

// Which sockets there are in each mode: the one way out, the sockets of the
// host in a directory that was granted, and all other families.
func TestSocketModes(t *testing.T) {
	port := fmt.Sprint(stage.ProxyPort)
	type mode struct {
		name          string
		serves, proxy bool
	}
	for _, m := range []mode{{"none", false, false}, {"serves", true, false}, {"proxy", false, true}, {"both", true, true}} {
		for _, level := range levels(t) {
			if m.proxy && level != Strict {
				continue
			}
			for _, init := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/init=%v", m.name, level, init), func(t *testing.T) {
					w := newTarget(t)
					tcp, pipe, connected := "EACCES", "EACCES", "EACCES"
					if m.proxy {
						tcp = "OK"
					}
					if m.serves {
						pipe = "OK"
					}
					if m.proxy && !m.serves {
						connected = "EISCONN"
					}
					table := [][2]string{
						{"tcp " + port, tcp},
						{"tcpblocking " + port, tcp},
						{"tcpfamily " + port, map[bool]string{true: "EAFNOSUPPORT", false: "EACCES"}[m.proxy]},
						{fmt.Sprintf("tcp %d", w.tcp), map[bool]string{true: "ECONNREFUSED", false: "EACCES"}[m.proxy]}, // of the host: not here
						{"mptcp " + port, "EACCES"}, {"udp " + port, "EACCES"},
						{"unix " + w.stream, "EACCES"}, {"unixgram " + w.gram, "EACCES"}, {"unix " + w.abstract, "EACCES"},
						{"unixshort " + w.stream, "EACCES"}, {"unixrace " + w.stream, "EACCES"},
						{"pairgram " + w.gram, "EACCES"}, {"pairconnect " + w.stream, connected},
						{"sendstream " + w.stream, map[bool]string{true: "ENOTSUP", false: "EACCES"}[m.serves]},
						{fmt.Sprintf("socket %d %d 0", unix.AF_UNIX, unix.SOCK_STREAM), pipe},
						{fmt.Sprintf("socket %d %d 0", unix.AF_UNIX, unix.SOCK_DGRAM), "EACCES"},
						{fmt.Sprintf("socket %d %d 0", unix.AF_UNIX, unix.SOCK_SEQPACKET), "EACCES"},
						{fmt.Sprintf("socket %d %d 0", unix.AF_INET6, unix.SOCK_STREAM), tcp},
						{fmt.Sprintf("socket %d %d 0", unix.AF_NETLINK, unix.SOCK_RAW), "EACCES"},
						{fmt.Sprintf("socket %d %d 0", unix.AF_VSOCK, unix.SOCK_STREAM), "EACCES"},
						{fmt.Sprintf("socket %d %d 1", unix.AF_INET, unix.SOCK_RAW), "EACCES"},
					}
					var list []string
					for _, row := range table {
						list = append(list, row[0])
					}
					c := w.cage(level)
					if m.proxy {
						c.Network = Proxy
					}
					if m.serves {
						c.Serves = w.write
					}
					p := program(t, list...)
					p.Init = init
					proc, read := w.begin(t, c, p)
					late := time.AfterFunc(maxRun, proc.Kill)
					defer late.Stop()
					if l := proc.Listener(); (l != nil) != m.proxy {
						t.Fatalf("the listener is %v", l)
					} else if l != nil {
						go discard(l)
					}
					out := read()
					got := answers(out)
					for _, row := range table {
						judge(t, row[0], got[row[0]], row[1])
					}
					if s, _ := proc.Wait(); s.Exit != 0 {
						t.Errorf("ended with %+v\n%s", s, out)
					}
				})
			}
		}
	}
}

func discard(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// A program may accept on a socket of its own, which the host connects to.
func TestServes(t *testing.T) {
	for _, level := range levels(t) {
		for _, network := range []Network{NoNetwork, Proxy} {
			if network == Proxy && level != Strict {
				continue
			}
			t.Run(fmt.Sprintf("%s/network=%d", level, network), func(t *testing.T) {
				w := newWorld(t)
				dir := filepath.Join(filepath.Dir(w.write), "s")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				c := w.cage(level)
				c.Serves, c.Network = dir, network
				c.View.Mounts = append(c.View.Mounts, view.Mount{Path: dir, Kind: view.Writable})
				p := program(t, "serve "+dir+"/p")
				r, wr, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				p.Out, p.Err = wr, wr
				proc, err := w.Start(t.Context(), c, p)
				wr.Close()
				if err != nil {
					t.Fatal(err)
				}
				late := time.AfterFunc(maxRun, proc.Kill)
				defer late.Stop()
				lines := bufio.NewScanner(r)
				if lines.Scan(); lines.Text() != "listening" {
					t.Fatalf("the program said %q", lines.Text())
				}
				conn, err := net.Dial("unix", dir+"/p")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				raw, _ := conn.(*net.UnixConn).SyscallConn()
				_ = raw.Control(func(fd uintptr) {
					peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
					if err != nil || int(peer.Pid) != proc.Pid() {
						t.Errorf("the peer is %+v, %v, want process %d", peer, err, proc.Pid())
					}
				})
				b := make([]byte, 4)
				if _, err := conn.Write([]byte("ping")); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(conn, b); err != nil || string(b) != "ping" {
					t.Errorf("got %q, %v", b, err)
				}
			})
		}
	}
}

// Programs of the system find their way through the proxy, and no other.
func TestProxyForPrograms(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("LEFT OUT: no curl")
	}
	for _, serves := range []bool{false, true} {
		t.Run(fmt.Sprintf("serves=%v", serves), func(t *testing.T) {
			w := newTarget(t)
			c := w.cage(need(t, Strict))
			c.Network = Proxy
			if serves {
				c.Serves = w.write
			}
			get := func(args ...string) (string, State) {
				p := command(t, append([]string{curl, "-sS", "-m", "5"}, args...)...)
				proc, read := w.begin(t, c, p)
				go answer(proc.Listener())
				out := read()
				s, _ := proc.Wait()
				return out, s
			}
			if out, s := get("-x", fmt.Sprintf("http://127.0.0.1:%d", stage.ProxyPort), "http://example.com/"); s.Exit != 0 || out != "http://example.com/" {
				t.Errorf("by the proxy: %q, %+v", out, s)
			}
			for _, direct := range [][]string{{"--noproxy", "*", fmt.Sprintf("http://127.0.0.1:%d/", w.tcp)}, {"http://1.1.1.1/"}, {"--unix-socket", w.stream, "http://x/"}, {"http://2130706433/"}} {
				if out, s := get(direct...); s.Exit == 0 {
					t.Errorf("curl %s succeeded: %q", strings.Join(direct, " "), out)
				}
			}
		})
	}
}

// answer is a proxy that answers each request with its own URL.
func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		url := strings.Fields(line + " - -")[1]
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(url), url)
		c.Close()
	}
}
