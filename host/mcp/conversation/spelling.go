package conversation

import (
	"encoding/json"

	"github.com/skillhost/skill/sdk"
)

// A Speller is a Backend whose tools may be called by more names than they are
// listed by.
type Speller interface {
	// Means returns the name by which the tool is listed that a call means, and
	// the arguments that it gets. direct is false if these are not the call's own,
	// but something in them. A call that means nothing is returned as it is.
	Means(scope sdk.Scope, tool string, args json.RawMessage) (listed string, given json.RawMessage, direct bool)
}

// Means is that of the Backend, or what a call says where that has but one name
// for each tool.
func (r *Room) Means(scope sdk.Scope, tool string, args json.RawMessage) (listed string, given json.RawMessage, direct bool) {
	if s, ok := r.b.(Speller); ok {
		return s.Means(scope, tool, args)
	}
	return tool, args, true
}
