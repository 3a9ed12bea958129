// Stock is an echo server on the official MCP SDK as its documentation writes
// it: what skill is measured against. With -http it serves streamable HTTP.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// schema is that of every tool.
var schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"What is to be said again, in the language that it is in."}},"required":["text"]}`)

func main() {
	addr := flag.String("http", "", "serve streamable HTTP on this address, else stdio")
	stateless := flag.Bool("stateless", false, "keep no sessions; revision 2026-07-28 is spoken only so")
	tools := flag.Int("tools", 1, "how many tools there are")
	flag.Parse()
	s := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "1"}, nil)
	for i := range *tools {
		name := "echo"
		if i > 0 {
			name = fmt.Sprintf("echo_%04d", i)
		}
		s.AddTool(&mcp.Tool{Name: name, Description: "Answers with its text, as it is, whatever it may be, once and at once.", InputSchema: schema}, echo)
	}
	if *addr == "" {
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: *stateless, JSONResponse: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	log.Fatal(http.ListenAndServe(*addr, mux))
}

func echo(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil
}
