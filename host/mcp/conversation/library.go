package conversation

import (
	"context"
	"encoding/json"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// skillsExtension is the Skills Extension (SEP-2640): clients load the skills
// that are texts themselves.
const skillsExtension = "io.modelcontextprotocol/skills"

// Skills are what skills/list lists, if the Backend is a Library.
const Skills Kind = "skills"

// A Library is a Backend whose skills clients can load. Its resources/read
// serves their files.
type Library interface {
	// Skill returns the entry of the skill whose SKILL.md has that URI; kind
	// NotFound if scope has none.
	Skill(ctx context.Context, scope sdk.Scope, uri string) (json.RawMessage, error)

	// Directory returns at most n of what is in a directory of a skill, as
	// List does. Kind Invalid: that is no directory.
	Directory(ctx context.Context, scope sdk.Scope, uri, cursor string, n int) (Page, error)
}

// serveSkill answers skills/get.
func (c *call) serveSkill(l Library) {
	uri, ok := wire.Text(c.msg.Members.URI)
	if !ok {
		c.fail(wire.BadParams("uri is not a string"))
		return
	}
	item, err := func() (item json.RawMessage, err error) {
		defer caught(&err)
		return l.Skill(c.ctx, c.scope, uri)
	}()
	if err != nil {
		c.refused(err, nil)
		return
	}
	c.succeed(func(l *wire.List) {
		c.cacheable(l)
		l.Raw("skill", wire.Compact(item))
	})
}

// serveDirectory answers resources/directory/read.
func (c *call) serveDirectory(l Library) {
	uri, ok := wire.Text(c.msg.Members.URI)
	if !ok {
		c.fail(wire.BadParams("uri is not a string"))
		return
	}
	cursor, flt := c.msg.ListCursor()
	if flt != nil {
		c.fail(flt)
		return
	}
	p, err := func() (p Page, err error) {
		defer caught(&err)
		return l.Directory(c.ctx, c.scope, uri, cursor, pageSize)
	}()
	if err != nil {
		c.refused(err, nil)
		return
	}
	members, _, _ := message.AppendList(nil, string(Resources), p.Items, p.Next)
	c.succeed(func(l *wire.List) {
		c.cacheable(l)
		l.Comma()
		l.B = append(l.B, members...)
	})
}
