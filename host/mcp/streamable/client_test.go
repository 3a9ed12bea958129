package streamable

import (
	"context"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
)

func TestOfficialClientInEveryRevision(t *testing.T) {
	for _, version := range gosdk.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) { official(t, version, false) })
	}
	t.Run("2024-11-05 over SSE", func(t *testing.T) { official(t, "2024-11-05", true) })
}

func official(t *testing.T, version string, old bool) {
	s := serve(t, Options{})
	progress, changed := make(chan float64, 16), make(chan struct{}, 8)
	client := gosdk.NewClient(&gosdk.Implementation{Name: "tester", Version: "1"}, &gosdk.ClientOptions{
		ElicitationHandler: func(context.Context, *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
			return &gosdk.ElicitResult{Action: "accept", Content: map[string]any{"n": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *gosdk.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
		ToolListChangedHandler:      func(context.Context, *gosdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	var via gosdk.Transport = &gosdk.StreamableClientTransport{Endpoint: s.url}
	if old {
		via = &gosdk.SSEClientTransport{Endpoint: "http://" + s.addr + "/sse"}
	}
	ctx := t.Context()
	cs, err := client.Connect(ctx, via, &gosdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("negotiated %s", got)
	}
	var names []string
	for tool, err := range cs.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if len(names) != 3 {
		t.Errorf("tools: %v", names)
	}
	text := func(p *gosdk.CallToolParams) string {
		t.Helper()
		r, err := cs.CallTool(ctx, p)
		if err != nil || r.IsError || len(r.Content) != 1 {
			t.Fatalf("%s: %+v %v", p.Name, r, err)
		}
		return r.Content[0].(*gosdk.TextContent).Text
	}
	if got := text(&gosdk.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}}); got != "hello" {
		t.Errorf("echo: %s", got)
	}
	if got := text(&gosdk.CallToolParams{Name: "routed", Arguments: map[string]any{"message": "x", "region": "Malmö", "deep": map[string]any{"n": 7}}}); got != "x" {
		t.Errorf("routed: %s", got)
	}
	if got := text(&gosdk.CallToolParams{Name: "ask"}); got != `accept{"n":"Ada"}` {
		t.Errorf("ask: %s", got)
	}
	events := &gosdk.CallToolParams{Name: "events", Arguments: map[string]any{"n": 4}}
	events.SetProgressToken("p")
	if got := text(events); got != "done" {
		t.Errorf("events: %s", got)
	}
	for last, i := -1.0, 0; i < 4; i++ {
		if now := <-progress; now <= last {
			t.Errorf("progress %v after %v", now, last)
		} else {
			last = now
		}
	}
	if _, err := cs.CallTool(ctx, &gosdk.CallToolParams{Name: "none"}); err == nil {
		t.Error("an unknown tool is known")
	}
	if version < message.ModernEra {
		if err := cs.Ping(ctx, nil); err != nil {
			t.Errorf("ping: %v", err)
		}
	}
	s.changes <- conversation.Change{Kind: conversation.Tools}
	<-changed
	slow, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	before := len(s.seen())
	go func() {
		_, err := cs.CallTool(slow, &gosdk.CallToolParams{Name: "wait", Arguments: map[string]any{"gate": "never"}})
		done <- err
	}()
	s.called(t, before+1)
	cancel()
	if err := <-done; err == nil {
		t.Error("not cancelled")
	}
	within(t, func() bool { return s.cancelled() == 1 })
	if got := text(&gosdk.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "after"}}); got != "after" {
		t.Errorf("echo: %s", got)
	}
}

// The official client comes back for an answer that it was sent away from.
func TestOfficialClientPolls(t *testing.T) {
	s := serve(t, Options{PollAfter: 100e6})
	cs, err := gosdk.NewClient(&gosdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(),
		&gosdk.StreamableClientTransport{Endpoint: s.url}, &gosdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	go func() {
		within(t, func() bool { return len(s.seen()) > 0 })
		within(t, func() bool { return s.h.streams.Len() < 2 }) // only the standalone stream
		close(s.gate("g"))
	}()
	r, err := cs.CallTool(t.Context(), &gosdk.CallToolParams{Name: "wait", Arguments: map[string]any{"gate": "g"}})
	if err != nil || r.Content[0].(*gosdk.TextContent).Text != "opened" {
		t.Fatalf("%+v %v", r, err)
	}
}
