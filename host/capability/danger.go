package capability

import (
	"path"
	"strings"
)

// Danger returns the word for what makes c as good as everything, or "" if
// nothing does: "network:*", "network:0.0.0.0/0", "write:/etc", "read:/",
// "read:${home}", "exec:sh", "exec:*", "invoke:*". The operator must have said
// that word before such an entry counts.
func (c Capability) Danger() string {
	switch c.Kind {
	case Network:
		if c.net != nil && c.net.any {
			return "network:*"
		}
		if c.net != nil && c.net.prefix.IsValid() && c.net.prefix.Bits() < widest {
			return "network:" + c.net.prefix.String()
		}
	case Filesystem:
		if p := c.Pattern; isRootDir(p) || p == VarHome || c.Verb == Write && isSystemDir(p) {
			return string(c.Verb) + ":" + p
		}
	case Exec:
		if base := path.Base(c.Pattern); base == anyProgram || isInterpreter(base) {
			return "exec:" + base
		}
	case Invoke:
		if c.Pattern == "*" {
			return "invoke:*"
		}
	}
	return ""
}

// widest is the number of bits below which a prefix is as good as every
// address. 10.0.0.0/8 and fd00::/8 are the widest private networks.
const widest = 8

// isRootDir reports whether p is "/" or a drive.
func isRootDir(p string) bool { return p == "/" || len(p) == 3 && isAbs(p) }

// isSystemDir reports whether whoever writes to p owns the machine or all of
// its users' files.
func isSystemDir(p string) bool {
	if !isAbs(p) {
		return false // a variable's
	}
	switch p {
	case "/home", "/root", "/var", "/run", "/Users", "/private":
		return true
	}
	if p[0] != '/' && len(p) > 3 {
		p = strings.ToLower(p[2:])
		return p == "/users" || Beneath(p, "/windows") || Beneath(p, "/program files") || Beneath(p, "/program files (x86)") || Beneath(p, "/programdata")
	}
	for _, dir := range []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/boot", "/dev", "/proc", "/sys", "/var/run", "/var/spool", "/System", "/Library", "/private/etc"} {
		if beneathFold(p, dir) {
			return true
		}
	}
	return false
}

// isInterpreter reports whether base runs whatever program its arguments hold
// or name. Versions count too: "python3.12".
func isInterpreter(base string) bool {
	base = strings.TrimSuffix(strings.ToLower(base), ".exe")
	if unversioned := strings.TrimRight(base, "0123456789.-"); unversioned != "" {
		base = unversioned
	}
	switch base {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "busybox", "toybox", "cmd", "powershell", "pwsh",
		"python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "wish", "expect", "guile", "osascript",
		"awk", "gawk", "mawk", "nawk", "env", "xargs", "nohup", "setsid", "timeout", "nice", "parallel", "script", "ld-linux-x86-64.so", "ld.so",
		"sudo", "su", "doas", "pkexec", "runuser", "setpriv", "chroot", "unshare", "nsenter", "ssh", "docker", "podman", "nerdctl", "kubectl",
		"gdb", "lldb", "strace", "make", "npx", "npm", "pip", "uv", "go", "cargo", "java", "vi", "vim", "nvim", "emacs", "ed":
		return true
	}
	return false
}
