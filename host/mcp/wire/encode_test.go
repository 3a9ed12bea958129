package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzAppendString holds AppendString against encoding/json.
func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\n\r\t\"\\/\x7f\u2028\u2029é\U0001F600")
	f.Add("bad \xff\xed\xa0\x80 end")
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString([]byte("x"), s)
		var back string
		if err := json.Unmarshal(b[1:], &back); err != nil || b[0] != 'x' {
			t.Fatalf("%v: %q", err, b)
		}
		if bytes.ContainsAny(b, "\n\r\u2028\u2029") || !utf8.Valid(b) {
			t.Fatalf("not one line of UTF-8: %q", b)
		}
		if want := string([]rune(s)); back != want { // each bad byte becomes U+FFFD
			t.Fatalf("got %q, want %q", back, want)
		}
	})
}

func TestList(t *testing.T) {
	l := NewList([]byte("{"))
	l.Text("a", `"`)
	l.Optional("no", "")
	l.Optional("b", "c")
	l.Raw("d", json.RawMessage("[1]"))
	l.Base64("e", []byte{0xff})
	l.Comma()
	if got := string(l.B); got != `{"a":"\"","b":"c","d":[1],"e":"/w==",` {
		t.Errorf("got %s", got)
	}
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`:         `{"a": 1}`,
		"{\"a\":\r\n [1]}": `{"a":[1]}`,
		"\"\xff\"":         "\"\uFFFD\"",
		`{`:                ``,
		``:                 ``,
		`1 2`:              ``,
	} {
		if got := string(Compact(json.RawMessage(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFault(t *testing.T) {
	for want, f := range map[string]*Fault{
		`"error":{"code":-32600,"message":"invalid request","data":{"details":"why"}}`: BadRequest("why"),
		`"error":{"code":-32602,"message":"invalid params"}`:                           BadParams(""),
		`"error":{"code":1,"message":"m","data":[2]}`:                                  {Code: 1, Message: "m", Details: "not said", Data: json.RawMessage("[2]")},
	} {
		if got := string(f.Append(nil)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (&Fault{Details: strings.Repeat("x", 1<<20)}).Append(nil); len(got) > 2*maxDetails {
		t.Errorf("%d bytes", len(got))
	}
}

func TestIDKey(t *testing.T) {
	for id, want := range map[string]string{`1`: `1`, `"1"`: `"1"`, `"\u0061"`: `"a"`, `1.0`: `1.0`} {
		if got := IDKey(json.RawMessage(id)); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}
