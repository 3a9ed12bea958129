package message

import "testing"

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello world"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		var r Request
		if flt := Parse(line, &r); flt != nil {
			b.Fatal(flt)
		}
	}
}
