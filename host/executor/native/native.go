// Package native starts the processes of the native runtimes: it turns a job
// into a cage, gives the process its private directories and its way out, and
// takes both away again when it has ended. It explains a refusal by the kernel,
// which says nothing but an errno, in the words of the grant.
//
// It does not know what the process is: neither plugins and their protocol nor
// commands and their arguments. How a cage is made is package sandbox's to
// know, and what it shows is package view's.
package native

import (
	"context"
	"net"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// A Starter starts processes in cages; *sandbox.Launcher is one.
type Starter interface {
	Start(context.Context, sandbox.Cage, sandbox.Program) (sandbox.Process, error)
}

// An Exit is the way out of one cage; *egress.Exit is one.
type Exit interface {
	// Open makes credentials for one call, which end with done. What the
	// call sends and is sent is bounded by 1 GiB each, or by bodyLimit if that is
	// more. No tunnel goes to the hosts of bound.
	Open(call string, g capability.Grant, bodyLimit int64, bound capability.Set) (proxyURL string, done func())
	Close() error
}

// Options are what a Maker needs.
type Options struct {
	Starter Starter
	Report  func() sandbox.Report                               // what this machine offers; sandbox.Probe
	Serve   func(net.Listener) Exit                             // makes the way out of a cage; nil: there is none
	Homes   func(scope sdk.Scope, owner string) (string, error) // the directory of a private home, which it makes if need be; nil: there are none
	Owner   func(*manifest.Skill) string                        // under which name a skill keeps its home; nil: its own
	Tmp     string                                              // where private directories are made, on disk; "" is os.TempDir()
	RunDir  string                                              // where directories for sockets are made; "" is $XDG_RUNTIME_DIR or os.TempDir()
}

// Bound returns the hosts that secrets of s go to. No tunnel leads there: the
// host could not add the secret inside of it.
func Bound(s *manifest.Skill) (hosts capability.Set) {
	for _, secret := range s.Secrets {
		hosts = append(hosts, secret.Reach()...)
	}
	return hosts
}
