// Package plugin is for authors of native skills in Go: the tools that
// guest.Tool registered are served to the host that started the program.
//
//	package main
//
//	import (
//		"github.com/skillhost/skill/sdk/guest"
//		"github.com/skillhost/skill/sdk/plugin"
//	)
//
//	var _ = guest.Tool("greet", "Greet somebody", greet)
//
//	func greet(c *guest.Call, in struct{ Name string }) (string, error) { return "hello, " + in.Name, nil }
//
//	func main() { plugin.Serve() }
//
// The same file, built with GOOS=wasip1 GOARCH=wasm, is a WASM skill: Serve
// does nothing there. What the tools print to stdout and stderr is logged.
//
// The package speaks the protocol of docs/plugin.md, that is: the handshake of
// github.com/hashicorp/go-plugin and one method over gRPC. It does not use that
// library, which brings net/rpc, logging, reflection and a broker that no
// plugin of this host needs, and with them memory and time to start.
package plugin
