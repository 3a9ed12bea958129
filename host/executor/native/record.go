package native

import (
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/sandbox/view"
)

// Record asks g about everything that a process of p may touch, so that the
// audit log has the rules that the kernel is given: it reports none of the
// process's accesses. The error is that of the first rule which today's policy
// refuses; the process must not be used for the call then.
func Record(g capability.Grant, p Plan) error {
	for _, r := range view.Granted(p.layers) {
		a := capability.Access{Kind: capability.Filesystem, Verb: capability.Read, Target: r.Path}
		switch {
		case r.Name != "":
			a = capability.Access{Kind: capability.Exec, Verb: capability.Run, Target: r.Name}
		case r.Rights&view.Write != 0:
			a.Verb = capability.Write
		}
		if err := g.Check(a); err != nil {
			return err
		}
	}
	return nil
}
