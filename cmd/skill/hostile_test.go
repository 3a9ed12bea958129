package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHostileShell: shell scripts that try to get out of the cage. Each prints
// ESCAPED if it did; what is outside is looked at afterwards. The host runs as
// root, if that is who tests, and as an ordinary user, at level strict.
func TestHostileShell(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("LEFT OUT: the shell tools need Linux")
	}
	for _, need := range []string{"bash", "curl", "setpriv", "python3"} {
		if _, err := exec.LookPath(need); err != nil {
			leftOut(t, "there is no "+need)
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\n\r\nESCAPED\r\n"))
			c.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	outside, err := os.MkdirTemp("/var/tmp", "skill-outside-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(outside)
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	unix, err := net.Listen("unix", filepath.Join(outside, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	if err := os.Chmod(filepath.Join(outside, "socket"), 0o777); err != nil {
		t.Fatal(err)
	}
	python := func(code string) string {
		return "python3 - <<'X'\nimport os,socket,ctypes\n" + code + "\nprint('ESCAPED')\nX"
	}
	scripts := map[string]string{
		"net_dev_tcp":           fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && cat <&3", port),
		"net_dev_udp":           fmt.Sprintf("echo x > /dev/udp/127.0.0.1/%d && echo ESCAPED", port),
		"net_curl":              fmt.Sprintf("curl -s -m 5 http://127.0.0.1:%d", port),
		"net_curl_noproxy":      fmt.Sprintf("curl -s -m 5 --noproxy '*' http://127.0.0.1:%d", port),
		"net_decimal_ip":        fmt.Sprintf("curl -s -m 5 http://2130706433:%d || curl -s -m 5 http://0x7f.1:%d || curl -s -m 5 http://0177.0.0.1:%d", port, port, port),
		"net_metadata":          "curl -s -m 2 http://169.254.169.254/ && echo ESCAPED",
		"net_mptcp":             python(fmt.Sprintf("s=socket.socket(socket.AF_INET,socket.SOCK_STREAM,262); s.connect(('127.0.0.1',%d))", port)),
		"net_udp":               python("socket.socket(socket.AF_INET,socket.SOCK_DGRAM)"),
		"net_raw":               python("socket.socket(socket.AF_INET,socket.SOCK_RAW,1)"),
		"net_netlink":           python("socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,0)"),
		"net_vsock":             python("socket.socket(40,socket.SOCK_STREAM)"),
		"net_unix_path":         python("s=socket.socket(socket.AF_UNIX); s.connect('" + outside + "/socket')"),
		"net_unix_abstract":     python("s=socket.socket(socket.AF_UNIX); s.connect('\\0skill-test')"),
		"write_outside":         "echo x > " + outside + "/made && echo ESCAPED",
		"write_link_out":        "ln -s " + outside + " out; echo x > out/made && echo ESCAPED",
		"write_proc_sys":        "p=$(cat /proc/sys/kernel/core_pattern); echo \"$p\" > /proc/sys/kernel/core_pattern && echo ESCAPED",
		"write_sysrq":           "echo h > /proc/sysrq-trigger && echo ESCAPED",
		"write_host_home":       "touch ~root/made && echo ESCAPED; touch /root/made && echo ESCAPED",
		"read_host_environ":     fmt.Sprintf("grep -az HOST_SECRET /proc/*/environ && echo ESCAPED; cat /proc/%d/environ && echo ESCAPED", os.Getpid()),
		"read_shadow":           "cat /etc/shadow /proc/1/root/etc/shadow /proc/self/root/etc/shadow && echo ESCAPED",
		"kill_host":             fmt.Sprintf("kill -0 %d && echo ESCAPED; kill -0 %d && echo ESCAPED", os.Getpid(), os.Getppid()),
		"ns_unshare":            "unshare -Ur true && echo ESCAPED; unshare -n true && echo ESCAPED",
		"ns_mount":              "mount -t tmpfs none /tmp && echo ESCAPED; mount --bind / /tmp && echo ESCAPED",
		"ns_chroot":             "chroot / true && echo ESCAPED",
		"ns_setns":              python("r=ctypes.CDLL(None).setns(os.open('/proc/1/ns/net',0),0); assert r==0"),
		"priv_setuid":           "su -c true root </dev/null && [ \"$(id -u)\" != 0 ] && echo ESCAPED; grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESCAPED; grep -q 'CapBnd:.0000000000000000' /proc/self/status || echo ESCAPED",
		"priv_device":           "mknod disk b 8 0 && echo ESCAPED; mknod kmsg c 1 11 && echo ESCAPED",
		"sys_io_uring":          python("r=ctypes.CDLL(None,use_errno=True).syscall(425,8,ctypes.create_string_buffer(256)); assert r>=0"),
		"sys_ptrace":            python("r=ctypes.CDLL(None).ptrace(16,1,0,0); assert r==0"),
		"sys_bpf":               python("r=ctypes.CDLL(None).syscall(321,0,ctypes.create_string_buffer(128),128); assert r>=0"),
		"sys_keyctl":            python("r=ctypes.CDLL(None).syscall(250,0,-3,1); assert r>=0"),
		"flood_processes":       "for i in $(seq 1 2000); do sleep 20 & done 2>/dev/null; [ $(jobs -p | wc -l) -lt 1900 ] || echo ESCAPED",
		"flood_memory":          "python3 -c 'x=bytearray(6<<30); print(\"ESCAPED\")'",
		"flood_file":            "head -c 1200M /dev/zero > big; [ $(stat -c %s big) -le 1073741824 ] || echo ESCAPED; rm -f big",
		"flood_output":          "timeout 2 yes | head -c 200000000; echo",
		"outlive_setsid_nohup":  "(setsid nohup bash -c 'sleep 1; echo x > late' &) ; echo started",
		"git_hooks":             "mkdir -p .git/hooks && echo x > .git/hooks/post-checkout && echo ESCAPED; mv .git/hooks .git/h && echo ESCAPED; mv .git g && echo ESCAPED; rm -rf .git && echo ESCAPED",
		"environment_is_hidden": "env | grep -q HOST_SECRET && echo ESCAPED",
		"stdin_is_null":         "[ -z \"$(cat)\" ] || echo ESCAPED",
	}
	// Without a cage these get out, or else the test could not fail.
	for _, name := range []string{"net_dev_tcp", "net_curl_noproxy", "net_udp", "net_unix_path", "write_outside"} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", scripts[name])
		cmd.Dir = outside
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "ESCAPED") { // curl may complain, and yet
			t.Errorf("%s does nothing without a cage: %s", name, out)
		}
	}
	_ = os.Remove(filepath.Join(outside, "made"))
	users := []int{os.Getuid()}
	if os.Getuid() == 0 {
		users = append(users, ordinary)
	}
	for _, uid := range users {
		t.Run("user "+strconv.Itoa(uid), func(t *testing.T) {
			h, skill := newHouse(t), built.skill
			var prefix []string
			if uid != os.Getuid() {
				h, skill = houseOf(t, uid)
				prefix = []string{"setpriv", "--reuid", strconv.Itoa(uid), "--regid", strconv.Itoa(uid), "--clear-groups"}
			}
			git(t, h.work, uid)
			if err := os.Chmod(filepath.Dir(h.work), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, script := range scripts {
				t.Run(name, func(t *testing.T) {
					args, err := json.Marshal(map[string]any{"command": script, "timeout": 60_000})
					if err != nil {
						t.Fatal(err)
					}
					line := append(prefix, skill, "call", "--workspace", h.work, "Bash", string(args))
					cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
					cmd.Dir, cmd.Env = h.work, append(h.env(), "HOST_SECRET=do not show")
					out, err := cmd.CombinedOutput()
					if code := cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
						t.Fatalf("the host: %v\n%s", err, out)
					}
					if strings.Contains(strings.ReplaceAll(string(out), script, ""), "ESCAPED") {
						t.Errorf("%s", out)
					}
					if len(out) > 200_000 {
						t.Errorf("%d bytes of output", len(out))
					}
				})
			}
			time.Sleep(2 * time.Second) // what would outlive its call would show by then
			for _, path := range []string{outside + "/made", "/root/made", h.work + "/late", h.work + "/.git/hooks/post-checkout"} {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("there is %s", path)
				}
			}
		})
	}
}
