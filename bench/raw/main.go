// Raw is the least that answers tools/call: encoding/json and no protocol, in
// a loop over lines, or with -http in a handler of net/http. It is the floor
// for latency.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	addr := flag.String("http", "", "serve HTTP on this address, else stdio")
	flag.Parse()
	if *addr != "" {
		log.Fatal(http.ListenAndServe(*addr, http.HandlerFunc(handle)))
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		b, err := answer(line)
		if err != nil {
			log.Fatal(err)
		}
		if b == nil {
			continue
		}
		out.Write(append(b, '\n'))
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				log.Fatal(err)
			}
		}
	}
}

func handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b, err := answer(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

// answer returns nothing for what has no id.
func answer(message []byte) ([]byte, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				Text string `json:"text"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if err := json.Unmarshal(message, &m); err != nil || m.ID == nil {
		return nil, err
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{
		"content": []content{{"text", m.Params.Arguments.Text}}, "tools": []any{}, "protocolVersion": "2025-11-25", "capabilities": struct{}{}, "serverInfo": map[string]string{"name": "raw", "version": "1"}}})
}
