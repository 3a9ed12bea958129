package capability

import (
	"fmt"

	"github.com/skillhost/skill/sdk"
)

// The entries of Client are the kinds of question that are not for the user, who
// would see them, but for the client itself: its model answers one (MCP:
// sampling/createMessage), and the other tells its folders (roots/list). There is
// no "*": what clients come to offer later has to be asked for by name.
const (
	sampling = string(sdk.QuestionSampling)
	roots    = string(sdk.QuestionRoots)
)

// Callback is an entry of Client that is no question: a message which the skill
// sets comes before the client's model later, when nobody has asked for it.
const Callback = "callback"

// parseClient reads an entry of Client into c.
func (c *Capability) parseClient(entry string) error {
	c.Verb, c.Pattern = Ask, entry
	if entry != sampling && entry != roots && entry != Callback {
		return fmt.Errorf("want %q, %q or %q", sampling, roots, Callback)
	}
	return nil
}

// Caution says in plain words what whoever allows c should know, which its entry
// alone does not tell; "" of most.
func (c Capability) Caution() string {
	switch {
	case c.Kind != Client:
		return ""
	case c.Pattern == sampling:
		return "it may have the client's model answer whatever it writes, in the user's name and at the user's cost, and reads the answers"
	case c.Pattern == roots:
		return "it may learn which folders of this machine the client works in"
	case c.Pattern == Callback:
		return "it may put messages before the client's model later, beside the results of other tools, when nobody has asked it for anything"
	}
	return ""
}
