// Package wire is the protocol between the host and a native plugin, as
// ../plugin.proto has it, and what both sides have to agree on before the first
// message. It knows neither what is said in a message nor who says it.
package wire

//go:generate protoc --proto_path=.. --go_out=. --go_opt=paths=source_relative ../plugin.proto

import "google.golang.org/grpc"

// The handshake of github.com/hashicorp/go-plugin. A plugin refuses to start
// without the cookie: it was started by a person. docs/plugin.md says how a
// plugin says where it listens.
const (
	Version     = 1
	CookieKey   = "SKILL_PLUGIN"
	CookieValue = "skill-plugin-1"
	Name        = "skill" // of the plugin among those that a process may have

	// SocketDirKey is the variable that names the directory to listen in.
	SocketDirKey = "PLUGIN_UNIX_SOCKET_DIR"
)

// RunMethod is the path of Plugin.Run.
const RunMethod = "/skill.plugin.v1.Plugin/Run"

// A Server serves the calls of a plugin.
type Server interface {
	Run(grpc.BidiStreamingServer[Message, Message]) error
}

// Service describes the service Plugin to gRPC.
var Service = grpc.ServiceDesc{
	ServiceName: "skill.plugin.v1.Plugin",
	HandlerType: (*Server)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName:    "Run",
		ServerStreams: true,
		ClientStreams: true,
		Handler: func(server any, stream grpc.ServerStream) error {
			return server.(Server).Run(&grpc.GenericServerStream[Message, Message]{ServerStream: stream})
		},
	}},
	Metadata: "plugin.proto",
}
