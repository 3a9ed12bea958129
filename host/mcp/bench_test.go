package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// The benchmarks compare three servers in processes of their own, over real
// pipes: this front, a stock server of the official SDK, and a bare loop that
// knows no MCP at all. The test binary is each of them when asked to.
func TestMain(m *testing.M) {
	switch os.Getenv("MCP_BENCH_SERVER") {
	case "front":
		if err := Serve(context.Background(), echoHouse{}, os.Stdin, os.Stdout, Options{}); err != nil {
			panic(err)
		}
	case "stock":
		s := gosdk.NewServer(&gosdk.Implementation{Name: "stock", Version: "1"}, nil)
		s.AddTool(&gosdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *gosdk.CallToolRequest) (*gosdk.CallToolResult, error) {
			return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: "hello world"}}}, nil
		})
		_ = s.Run(context.Background(), &gosdk.StdioTransport{}) // ends with its input
	case "bare":
		in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var q struct {
				ID json.RawMessage `json:"id"`
			}
			if json.Unmarshal(line, &q) == nil && q.ID != nil {
				out.WriteString(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"content":[{"type":"text","text":"hello world"}]}}` + "\n")
			}
			if in.Buffered() == 0 {
				out.Flush()
			}
		}
	default:
		os.Exit(m.Run())
	}
}

type echoHouse struct{}

func (echoHouse) List(context.Context, sdk.Scope, conversation.Kind, string, int) (conversation.Page, error) {
	return conversation.Page{}, nil
}

func (echoHouse) Call(context.Context, sdk.Call, func(sdk.Event)) (sdk.Result, error) {
	return sdk.Text("hello world"), nil
}

func (echoHouse) Watch(context.Context, sdk.Scope) iter.Seq[conversation.Change] {
	return func(func(conversation.Change) bool) {}
}

// startServer starts this binary as one of the servers and introduces itself.
func startServer(b *testing.B, which string) (io.WriteCloser, *bufio.Reader) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCP_BENCH_SERVER="+which)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	r := bufio.NewReaderSize(out, 1<<16)
	if _, err := io.WriteString(in, initialize(`{}`)+"\n"); err != nil {
		b.Fatal(err)
	}
	if _, err := r.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
	if _, err := io.WriteString(in, initialized+"\n"); err != nil {
		b.Fatal(err)
	}
	return in, r
}

func benchCalls(b *testing.B, which string, outstanding int) {
	in, out := startServer(b, which)
	var buf []byte
	next := 0
	send := func(n int) {
		buf = buf[:0]
		for range n {
			next++
			buf = append(buf, `{"jsonrpc":"2.0","id":`...)
			buf = strconv.AppendInt(buf, int64(next), 10)
			buf = append(buf, `,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello world"}}}`+"\n"...)
		}
		if _, err := in.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	took := make([]time.Duration, 0, b.N) // each round trip, if there is one at a time
	b.ResetTimer()
	at := time.Now()
	send(min(outstanding, b.N))
	for got := 0; got < b.N; {
		line, err := out.ReadSlice('\n')
		if err != nil || !bytes.Contains(line, []byte("hello world")) {
			b.Fatalf("%s %v", line, err)
		}
		n := 1
		for ; out.Buffered() > 0; n++ { // answers come whole
			if _, err := out.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		got += n
		if outstanding == 1 {
			now := time.Now()
			took, at = append(took, now.Sub(at)), now
		}
		if more := min(n, b.N-next); more > 0 {
			send(more)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	if len(took) > 0 {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
	}
}

func BenchmarkCallsPiped(b *testing.B) {
	for _, which := range []string{"front", "stock", "bare"} {
		b.Run(which, func(b *testing.B) { benchCalls(b, which, 32) })
	}
}

func BenchmarkCallsOneByOne(b *testing.B) {
	for _, which := range []string{"front", "stock", "bare"} {
		b.Run(which, func(b *testing.B) { benchCalls(b, which, 1) })
	}
}

// BenchmarkCall is the front alone: no pipe, no client.
func BenchmarkCall(b *testing.B) {
	line := []byte(callLine(`12345`, "echo", `{"message":"hello world"}`))
	t := conversation.NewRoom(echoHouse{}, conversation.Options{}).Open(context.Background(), sdk.Scope{}, nowhere{})
	b.ReportAllocs()
	for b.Loop() {
		t.Accept(bytes.Clone(line), conversation.Via{Out: nowhere{}})
	}
}

// nowhere is an Outlet that hears all and says nothing.
type nowhere struct{}

func (nowhere) Send(b *wire.Buffer) { b.Free() }

func (nowhere) End(b *wire.Buffer, _ *wire.Fault) { b.Free() }
