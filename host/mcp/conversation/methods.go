package conversation

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/message"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// legacyLast is the last revision with an initialize.
const legacyLast = "2025-11-25"

const listenMethod = "subscriptions/listen"

// serve answers c by its method.
func (c *call) serve() {
	switch c.method {
	case "tools/call":
		c.run((*call).useTool)
	case "prompts/get":
		c.run(func(c *call) { c.work(&prompt) })
	case "resources/read":
		c.run(func(c *call) { c.work(&resource) })
	case "completion/complete":
		c.run(func(c *call) { c.work(&completion) })
	case "tools/list":
		go c.list(Tools)
	case "prompts/list":
		go c.list(Prompts)
	case "resources/list":
		go c.list(Resources)
	case "resources/templates/list":
		go c.list(Templates)
	default:
		if f := c.room.extra[c.method]; f != nil {
			f(c)
			return
		}
		c.serveEra()
	}
}

// serveEra answers what exists in one era only.
func (c *call) serveEra() {
	modern := map[string]func(*call){"server/discover": (*call).discover, listenMethod: (*call).listen}
	legacy := map[string]func(*call){
		"initialize": (*call).initialize, "ping": (*call).done, "shutdown": (*call).done,
		"logging/setLevel": (*call).setLevel, "resources/subscribe": (*call).subscribe, "resources/unsubscribe": (*call).subscribe,
	}
	here, there, era := legacy, modern, "has no "+wire.Clip(c.method)+" before "+message.ModernEra
	if c.era.Modern {
		here, there, era = modern, legacy, "has no "+wire.Clip(c.method)+" since "+message.ModernEra
	}
	if f := here[c.method]; f != nil {
		f(c)
		return
	}
	flt := &wire.Fault{Code: wire.CodeNoMethod, Message: "method not found: " + strconv.Quote(wire.Clip(c.method)), Details: "this server knows no such request"}
	if there[c.method] != nil {
		flt.Details = "the protocol " + era
	}
	c.fail(flt)
}

func (c *call) done() { c.succeed(nil) }

// initialize introduces a legacy client for good.
func (c *call) initialize() {
	var p gosdk.InitializeParams
	switch {
	case c.via.batch != nil:
		c.fail(wire.BadRequest("initialize cannot be part of a batch"))
		return
	case c.legacy.Load() != nil:
		c.fail(wire.BadRequest("initialize was answered before"))
		return
	case !wire.IsObject(c.msg.Params):
		c.fail(wire.BadParams("params is not an object"))
		return
	}
	if err := json.Unmarshal(c.msg.Params, &p); err != nil {
		c.fail(wire.BadParams(err.Error()))
		return
	}
	version := legacyLast
	if v := p.ProtocolVersion; v <= legacyLast && slices.Contains(gosdk.SupportedProtocolVersions(), v) {
		version = v
	}
	c.version.Store(&version)
	tellRoots(c.msg.Params, &p)
	c.legacy.Store(remembered(message.Initialized(&p)))
	c.succeed(func(l *wire.List) {
		l.Text("protocolVersion", version)
		l.Raw("capabilities", c.room.capabilities(true))
		l.Raw("serverInfo", c.room.server)
		l.Optional("instructions", c.room.o.Instructions)
	})
}

// discover tells a modern client what there is.
func (c *call) discover() {
	c.succeed(func(l *wire.List) {
		c.cacheable(l)
		l.Key("supportedVersions")
		l.B = append(l.B, '[')
		for i, v := range gosdk.SupportedProtocolVersions() {
			if i > 0 {
				l.B = append(l.B, ',')
			}
			l.B = wire.AppendString(l.B, v)
		}
		l.B = append(l.B, ']')
		l.Raw("capabilities", c.room.capabilities(false))
		l.Optional("instructions", c.room.o.Instructions)
	})
}

// capabilities are those of this server. Channels exist for clients that
// introduce themselves for good only.
func (r *Room) capabilities(legacy bool) raw {
	l := wire.NewList([]byte("{"))
	l.Raw("completions", raw("{}"))
	if legacy && r.o.Inbox != nil {
		l.Raw("experimental", raw(`{"`+message.Channel+`":{}}`))
	}
	if len(r.settings) > 0 {
		l.Key("extensions")
		in := wire.NewList(append(l.B, '{'))
		for _, name := range slices.Sorted(maps.Keys(r.settings)) {
			in.Raw(name, r.settings[name])
		}
		l.B = append(in.B, '}')
	}
	l.Raw("logging", raw("{}"))
	l.Raw("prompts", raw(`{"listChanged":true}`))
	l.Raw("resources", raw(`{"listChanged":true,"subscribe":true}`))
	l.Raw("tools", raw(`{"listChanged":true}`))
	return append(l.B, '}')
}

// setLevel notes which log messages a legacy client wants.
func (c *call) setLevel() {
	var p struct {
		Level string `json:"level"`
	}
	if !wire.IsObject(c.msg.Params) || json.Unmarshal(c.msg.Params, &p) != nil {
		c.fail(wire.BadParams("level is not a string"))
		return
	}
	rank := message.LevelRank(p.Level)
	if rank == 0 {
		c.fail(wire.BadParams("unknown log level " + strconv.Quote(wire.Clip(p.Level))))
		return
	}
	c.level.Store(int32(rank))
	c.done()
}

// prompt is the purpose of a prompts/get.
var prompt = purpose{
	read: (*message.Request).PromptGet,
	reply: func(c *call, r *sdk.Result) {
		c.replyOr(r, func(l *wire.List) { message.AppendMessages(l, r) })
	},
	fail: func(c *call, err error, _ *sdk.Call) { c.refused(err, nil) },
}

// resource is the purpose of a resources/read.
var resource = purpose{
	read: (*message.Request).ResourceRead,
	reply: func(c *call, r *sdk.Result) {
		uri, _ := wire.Text(c.msg.Members.URI)
		c.replyOr(r, func(l *wire.List) {
			c.cacheable(l)
			message.AppendContents(l, r, uri)
		})
	},
	fail: func(c *call, err error, sc *sdk.Call) { c.refused(err, sc) },
}

// completion is the purpose of a completion/complete.
var completion = purpose{
	read: (*message.Request).Completion,
	reply: func(c *call, r *sdk.Result) {
		c.replyOr(r, func(l *wire.List) { message.AppendCompletion(l, r) })
	},
	fail: func(c *call, err error, _ *sdk.Call) { c.refused(err, nil) },
}

// replyOr answers with what add makes of a result, or with an error if the tool
// reports failure: these methods have no other way to say so.
func (c *call) replyOr(r *sdk.Result, add func(*wire.List)) {
	if !r.Failed {
		c.succeed(add)
		return
	}
	what := "the tool reports a failure"
	if len(r.Content) > 0 && r.Content[0].Text != "" {
		what = r.Content[0].Text
	}
	c.fail(&wire.Fault{Code: wire.CodeServer, Message: "guest: " + what})
}

// refused answers with the error that err means where there is no result to put
// it in. Of a resource that is not there, read says which.
func (c *call) refused(err error, read *sdk.Call) {
	kind := sdk.KindOf(err)
	if kind == sdk.NotFound && read != nil {
		c.fail(c.era.NoResource(err, read.Tool))
		return
	}
	flt := c.room.protocolFault(err, c.method)
	if flt == nil {
		flt = c.ended(err)
	}
	switch {
	case flt != nil:
	case kind == sdk.Invalid:
		flt = wire.BadParams(err.Error())
	default:
		flt = &wire.Fault{Code: wire.CodeServer, Message: string(kind) + ": " + err.Error()}
	}
	c.fail(flt)
}
