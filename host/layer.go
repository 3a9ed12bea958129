package host

import (
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/session"
	"github.com/skillhost/skill/sdk"
)

// newLayers makes the room of what skills lay over sessions.
func (h *Host) newLayers() *session.Layers {
	return session.NewLayers(session.LayerOptions{
		Store:    h.store,
		Realpath: realpath,
		Vars:     capability.Vars{Home: realDir(h.Config.Paths.Home), Account: realDir(session.AccountHome())},
	})
}

// EndSession forgets what lies over a session of a transport that has ended.
func (h *Host) EndSession(scope sdk.Scope) { h.Dispatcher.Laid.End(scope) }

// TaskScope is the scope of the calls that a client makes with that task_id.
func (h *Host) TaskScope(id string) (sdk.Scope, error) {
	name, err := session.Task(id)
	return h.session.Scope(name), err
}
