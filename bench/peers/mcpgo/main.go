// Mcpgo is an echo server on mark3labs/mcp-go as its documentation writes it:
// what skill is measured against. With -http it serves streamable HTTP. It is
// in a module of its own, so that the product does not depend on its peers.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// schema is that of every tool.
var schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"What is to be said again, in the language that it is in."}},"required":["text"]}`)

func main() {
	addr := flag.String("http", "", "serve streamable HTTP on this address, else stdio")
	stateless := flag.Bool("stateless", false, "keep no sessions")
	tools := flag.Int("tools", 1, "how many tools there are")
	flag.Parse()
	s := server.NewMCPServer("mcpgo", "1", server.WithToolCapabilities(false))
	for i := range *tools {
		name := "echo"
		if i > 0 {
			name = fmt.Sprintf("echo_%04d", i)
		}
		s.AddTool(mcp.NewToolWithRawSchema(name, "Answers with its text, as it is, whatever it may be, once and at once.", schema), echo)
	}
	if *addr == "" {
		if err := server.ServeStdio(s); err != nil {
			log.Fatal(err)
		}
		return
	}
	log.Fatal(server.NewStreamableHTTPServer(s, server.WithStateLess(*stateless), server.WithStateful(!*stateless)).Start(*addr))
}

func echo(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := r.RequireString("text")
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(text), nil
}
