// Raw is the least that answers tools/call: a loop over lines with
// encoding/json, one goroutine, no protocol. It is the floor for latency.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					Text string `json:"text"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			log.Fatal(err)
		}
		if m.ID == nil {
			continue
		}
		type content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{
			"content": []content{{"text", m.Params.Arguments.Text}}, "tools": []any{}, "protocolVersion": "2025-11-25", "capabilities": struct{}{}, "serverInfo": map[string]string{"name": "raw", "version": "1"}}})
		if err != nil {
			log.Fatal(err)
		}
		out.Write(append(b, '\n'))
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				log.Fatal(err)
			}
		}
	}
}
