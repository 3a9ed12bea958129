package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

// offering is a house that also serves a prompt and resources.
type offering struct{ *house }

func (o offering) List(ctx context.Context, s sdk.Scope, kind conversation.Kind, cursor string, n int) (conversation.Page, error) {
	items := map[conversation.Kind]string{
		conversation.Prompts:   `{"name":"greet","description":"a greeting","arguments":[{"name":"who","required":true}]}`,
		conversation.Resources: `{"name":"text","uri":"test://text","mimeType":"text/plain"}`,
		conversation.Templates: `{"name":"item","uriTemplate":"test://item/{id}"}`,
	}
	if items[kind] == "" {
		return o.house.List(ctx, s, kind, cursor, n)
	}
	return conversation.Page{Items: []json.RawMessage{json.RawMessage(items[kind])}, Version: 1}, nil
}

func (o offering) Call(ctx context.Context, c sdk.Call, emit func(sdk.Event)) (sdk.Result, error) {
	switch {
	case c.Kind == sdk.CallTool:
		return o.house.Call(ctx, c, emit)
	case c.Kind == sdk.CallCompletion:
		return sdk.Result{Structured: json.RawMessage(`{"values":["Ada","Alan"],"total":2,"hasMore":false}`)}, nil
	case c.Tool == "greet":
		return sdk.Result{Content: []sdk.Content{{Type: sdk.TypeText, Text: "hello"}, {Type: sdk.TypeImage, MIME: "image/png", Data: []byte{1}, Role: "assistant"}},
			Meta: json.RawMessage(`{"description":"a greeting"}`)}, nil
	case c.Tool == "test://text":
		return sdk.Result{Content: []sdk.Content{{Text: "text", MIME: "text/plain"}}}, nil
	case c.Tool == "test://item/1":
		return sdk.Result{Content: []sdk.Content{{Data: []byte{1, 2}, MIME: "application/octet-stream"}}}, nil
	}
	return sdk.Result{}, &sdk.Error{Kind: sdk.NotFound, What: fmt.Sprintf("no %q", c.Tool)}
}

// stock is the official server, with the same things in it.
func stock() *gosdk.Server {
	s := gosdk.NewServer(&gosdk.Implementation{Name: "skill", Version: "1"}, &gosdk.ServerOptions{
		CompletionHandler: func(context.Context, *gosdk.CompleteRequest) (*gosdk.CompleteResult, error) {
			return &gosdk.CompleteResult{Completion: gosdk.CompletionResultDetails{Values: []string{"Ada", "Alan"}, Total: 2}}, nil
		},
		SubscribeHandler:   func(context.Context, *gosdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *gosdk.UnsubscribeRequest) error { return nil },
	})
	s.AddTool(&gosdk.Tool{Name: "echo", Description: "version 1", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
		var in struct{ Message string }
		err := json.Unmarshal(r.Params.Arguments, &in)
		return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: in.Message}}}, err
	})
	s.AddTool(&gosdk.Tool{Name: "shaped", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object","required":["x"]}`)},
		func(context.Context, *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) { return nil, nil })
	s.AddPrompt(&gosdk.Prompt{Name: "greet", Description: "a greeting", Arguments: []*gosdk.PromptArgument{{Name: "who", Required: true}}}, func(context.Context, *gosdk.GetPromptRequest) (*gosdk.GetPromptResult, error) {
		return &gosdk.GetPromptResult{Description: "a greeting", Messages: []*gosdk.PromptMessage{{Role: "user", Content: &gosdk.TextContent{Text: "hello"}}, {Role: "assistant", Content: &gosdk.ImageContent{MIMEType: "image/png", Data: []byte{1}}}}}, nil
	})
	s.AddResource(&gosdk.Resource{Name: "text", URI: "test://text", MIMEType: "text/plain"}, func(_ context.Context, r *gosdk.ReadResourceRequest) (*gosdk.ReadResourceResult, error) {
		return &gosdk.ReadResourceResult{Contents: []*gosdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "text"}}}, nil
	})
	s.AddResourceTemplate(&gosdk.ResourceTemplate{Name: "item", URITemplate: "test://item/{id}"}, func(_ context.Context, r *gosdk.ReadResourceRequest) (*gosdk.ReadResourceResult, error) {
		return &gosdk.ReadResourceResult{Contents: []*gosdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/octet-stream", Blob: []byte{1, 2}}}}, nil
	})
	return s
}

// answers plays lines, one after another, and returns the answer to each.
func answersOf(t *testing.T, serve func(io.Reader, io.WriteCloser), lines []string) (out []map[string]any) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(inR, outW)
	}()
	r := bufio.NewReader(outR)
	for _, l := range lines {
		if _, err := io.WriteString(inW, l+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	inW.Close()
	go io.Copy(io.Discard, outR)
	<-done
	return out
}

// TestAnswersAsTheOfficialServer compares what this front answers with what the
// official SDK's server does, request by request, in both eras.
func TestAnswersAsTheOfficialServer(t *testing.T) {
	requests := []string{
		`"method":"tools/list","params":{}`,
		`"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello \u2028 é"}}`,
		`"method":"tools/call","params":{"name":"none"}`,
		`"method":"tools/call","params":[]`,
		`"method":"prompts/list","params":{}`,
		`"method":"prompts/get","params":{"name":"greet","arguments":{"who":"you"}}`,
		`"method":"prompts/get","params":{"name":"none"}`,
		`"method":"prompts/get","params":{"name":"greet","arguments":{"who":1}}`,
		`"method":"resources/list","params":{}`,
		`"method":"resources/templates/list","params":{}`,
		`"method":"resources/read","params":{"uri":"test://text"}`,
		`"method":"resources/read","params":{"uri":"test://item/1"}`,
		`"method":"resources/read","params":{"uri":"test://none"}`,
		`"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}`,
		`"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"test://item/{id}"},"argument":{"name":"id","value":""}}`,
		`"method":"resources/subscribe","params":{"uri":"test://text"}`,
		`"method":"resources/unsubscribe","params":{"uri":"test://text"}`,
		`"method":"logging/setLevel","params":{"level":"error"}`,
		`"method":"ping","params":{}`,
		`"method":"tools/list","params":{"cursor":"garbage"}`,
		`"method":"server/discover","params":{}`,
		`"method":"tasks/list","params":{}`,
		`"method":"nonsense","params":{}`,
	}
	// Where we differ on purpose: the code that we answer.
	differs := map[string]float64{
		`legacy "method":"resources/read","params":{"uri":"test://none"}`: -32002, // what those revisions say; the SDK has moved to -32602
	}
	for era, meta := range map[string]string{"legacy": "", "modern": modernMeta} {
		lines := []string{initialize(`{}`)}
		if era == "modern" {
			lines = nil
		}
		for i, r := range requests {
			if meta != "" && r[len(r)-1] == '}' {
				inner := r[:len(r)-1]
				if inner[len(inner)-1] != '{' {
					inner += ","
				}
				r = inner + meta + "}"
			}
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, r))
		}
		ours := answersOf(t, func(r io.Reader, w io.WriteCloser) {
			if err := Serve(t.Context(), offering{newHouse()}, r, w, Options{Options: conversation.Options{Name: "skill", Version: "1"}}); err != nil {
				t.Error(err)
			}
			w.Close()
		}, lines)
		theirs := answersOf(t, func(r io.Reader, w io.WriteCloser) {
			_ = stock().Run(t.Context(), &gosdk.IOTransport{Reader: io.NopCloser(r), Writer: w}) // the end of its input is an error to it
			w.Close()
		}, lines)
		for i := range lines {
			a, b := essence(ours[i]), essence(theirs[i])
			name := "initialize"
			if at := i - (len(lines) - len(requests)); at >= 0 {
				name = requests[at]
			}
			if want, ok := differs[era+" "+name]; ok {
				if e, _ := a["error"].(float64); e != want {
					t.Errorf("%s %s: %v, want %v", era, name, a, want)
				}
				continue
			}
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s %s\nours   %v\ntheirs %v", era, name, a, b)
			}
		}
	}
}

// essence is an answer without what may differ: the words of errors, the times
// for caching, what a server can do besides, and empty hints.
func essence(m map[string]any) map[string]any {
	out := maps.Clone(m)
	if e, ok := out["error"].(map[string]any); ok {
		out["error"] = e["code"]
	}
	if r, ok := out["result"].(map[string]any); ok {
		r = maps.Clone(r)
		for _, k := range []string{"ttlMs", "cacheScope", "capabilities"} {
			delete(r, k)
		}
		if r["isError"] == false {
			delete(r, "isError")
		}
		if c, ok := r["completion"].(map[string]any); ok && c["hasMore"] == false {
			delete(c, "hasMore")
		}
		if list, ok := r["tools"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int {
				x, y := a.(map[string]any), b.(map[string]any)
				delete(x, "annotations")
				delete(y, "annotations")
				return 0
			})
		}
		out["result"] = r
	}
	return out
}
