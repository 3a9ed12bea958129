package sandbox

import (
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/sandbox/view"
)

// seatbelt returns the profile, in the language of macOS's sandbox-exec(1),
// that a cage of level landlock comes to there. program is the path of what is
// executed, port that of the proxy on 127.0.0.1, or 0 for no network.
//
// The rule sets are intersected as Landlock does it: an access passes if each
// set that handles it has a rule for it. The names of files are not hidden.
func seatbelt(c Cage, program string, port int) string {
	var b strings.Builder
	b.WriteString(`(version 1)
(deny default)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read-data file-ioctl (literal "/"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.notification_center"))
`)
	for _, a := range []struct {
		right view.Rights
		ops   string
	}{
		{view.Read, "file-read* file-map-executable"},
		{view.Write, "file-write* file-ioctl"},
		{view.Exec, "process-exec*"},
	} {
		if f, ok := passes(c, a.right, program); ok {
			b.WriteString("(allow " + a.ops + f + ")\n")
		}
	}
	if c.Serves != "" {
		b.WriteString("(allow network-bind network-inbound (local unix-socket (subpath " + quote(c.Serves) + ")))\n")
		b.WriteString("(allow file-write* file-read* (subpath " + quote(c.Serves) + "))\n")
	}
	if port != 0 {
		b.WriteString("(allow network-outbound (remote ip " + quote("localhost:"+strconv.Itoa(port)) + "))\n")
	}
	return b.String()
}

// passes returns the filter of what a right covers, which is empty if nothing
// restricts it; ok is false if nothing is covered at all.
func passes(c Cage, right view.Rights, program string) (filter string, ok bool) {
	for _, s := range c.View.Rulesets {
		if s.Handles&right == 0 {
			continue
		}
		var any string
		if right != view.Write {
			any = " (literal " + quote(program) + ")"
		}
		for _, r := range s.Rules {
			if r.Rights&right != 0 {
				any += " (subpath " + quote(r.Path) + ")"
			}
		}
		if any == "" {
			return "", false
		}
		filter += " (require-any" + any + ")"
	}
	if filter == "" {
		return "", true
	}
	return " (require-all" + filter + ")", true
}

// quote returns s as a string of the profile language.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
