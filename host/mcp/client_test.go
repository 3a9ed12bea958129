package mcp

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/message"
)

// connect connects the official client to a served house.
func connect(t *testing.T, h *house, version string, o *gosdk.ClientOptions) *gosdk.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := Serve(context.Background(), h, inR, outW, Options{Options: conversation.Options{Name: "skill", Version: "1"}})
		outW.Close()
		done <- err
	}()
	client := gosdk.NewClient(&gosdk.Implementation{Name: "tester", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), &gosdk.IOTransport{Reader: outR, Writer: inW}, &gosdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		inW.Close()
		outR.Close()
		<-done
	})
	return cs
}

func TestOfficialClientInEveryRevision(t *testing.T) {
	for _, version := range gosdk.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			h := newHouse()
			progress := make(chan float64, 16)
			changed := make(chan struct{}, 8)
			cs := connect(t, h, version, &gosdk.ClientOptions{
				ElicitationHandler: func(context.Context, *gosdk.ElicitRequest) (*gosdk.ElicitResult, error) {
					return &gosdk.ElicitResult{Action: "accept", Content: map[string]any{"n": "Ada"}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *gosdk.ProgressNotificationClientRequest) {
					progress <- r.Params.Progress
				},
				ToolListChangedHandler: func(context.Context, *gosdk.ToolListChangedRequest) { changed <- struct{}{} },
			})
			ctx := t.Context()
			if got := cs.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("negotiated %s", got)
			}
			tools, err := cs.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 2 || tools.Tools[0].Name != "echo" {
				t.Fatalf("tools: %+v %v", tools, err)
			}
			r, err := cs.CallTool(ctx, &gosdk.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
			if err != nil || r.IsError || r.Content[0].(*gosdk.TextContent).Text != "hello" {
				t.Fatalf("echo: %+v %v", r, err)
			}
			r, err = cs.CallTool(ctx, &gosdk.CallToolParams{Name: "contents"})
			if err != nil || len(r.Content) != 6 || !r.IsError || string(r.Content[1].(*gosdk.ImageContent).Data) != "\x01\x02\x03" ||
				string(r.Content[4].(*gosdk.EmbeddedResource).Resource.Blob) != "blob" {
				t.Fatalf("contents: %+v %v", r, err)
			}
			r, err = cs.CallTool(ctx, &gosdk.CallToolParams{Name: "ask", Arguments: map[string]any{"rounds": 3}})
			if err != nil || r.Content[0].(*gosdk.TextContent).Text != `accept {"n":"Ada"} after 3` {
				t.Fatalf("ask: %+v %v", r, err)
			}
			events := &gosdk.CallToolParams{Name: "events"}
			events.SetProgressToken("p")
			if _, err = cs.CallTool(ctx, events); err != nil {
				t.Fatal(err)
			}
			for last, i := -1.0, 0; i < 5; i++ {
				if now := <-progress; now <= last {
					t.Errorf("progress %v after %v", now, last)
				} else {
					last = now
				}
			}
			if _, err = cs.CallTool(ctx, &gosdk.CallToolParams{Name: "none"}); err == nil || !strings.Contains(err.Error(), `unknown tool "none"`) {
				t.Errorf("unknown tool: %v", err)
			}
			if version < message.ModernEra {
				if err := cs.Ping(ctx, nil); err != nil {
					t.Errorf("ping: %v", err)
				}
			}
			h.changes <- conversation.Tools
			<-changed
		})
	}
}

func TestOfficialClientCancels(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		h := newHouse()
		cs := connect(t, h, version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := cs.CallTool(ctx, &gosdk.CallToolParams{Name: "wait", Arguments: map[string]any{"gate": "never"}})
			done <- err
		}()
		for len(h.seen()) == 0 {
			runtime.Gosched()
		}
		cancel()
		if err := <-done; err == nil {
			t.Errorf("%s: not cancelled", version)
		}
		if _, err := cs.CallTool(t.Context(), &gosdk.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "x"}}); err != nil {
			t.Errorf("%s: after it: %v", version, err)
		}
	}
}
