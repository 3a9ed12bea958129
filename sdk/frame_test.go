package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// raw builds a frame from its parts, right or wrong.
func raw(n uint32, rest string) []byte {
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, rest...)
}

func TestParseFrame(t *testing.T) {
	for name, c := range map[string]struct {
		in     []byte
		header string // "" means that the frame is refused
		blobs  []string
	}{
		"empty":                   {nil, "", nil},
		"short_length":            {[]byte{1, 0, 0}, "", nil},
		"no_header":               {raw(0, ""), "", nil},
		"length_past_end":         {raw(3, "{}"), "", nil},
		"length_all_ones":         {raw(0xffffffff, "{}"), "", nil},
		"not_an_object":           {raw(2, "[]"), "", nil},
		"not_json":                {raw(2, "{]"), "", nil},
		"two_values":              {raw(4, "{}{}"), "", nil},
		"leading_space":           {raw(3, " {}"), "", nil},
		"object":                  {raw(2, "{}"), "{}", nil},
		"trailing_bytes":          {raw(2, "{}x"), "", nil},
		"blobs":                   {raw(15, `{"blobs":[1,2]}abb`), `{"blobs":[1,2]}`, []string{"a", "bb"}},
		"blobs_empty":             {raw(15, `{"blobs":[0,0]}`), `{"blobs":[0,0]}`, []string{"", ""}},
		"blobs_too_short":         {raw(15, `{"blobs":[1,2]}ab`), "", nil},
		"blobs_too_long":          {raw(15, `{"blobs":[1,2]}abbb`), "", nil},
		"blobs_negative":          {raw(14, `{"blobs":[-1]}`), "", nil},
		"blobs_fraction":          {raw(15, `{"blobs":[1.5]}a`), "", nil},
		"blobs_over_u32":          {raw(22, `{"blobs":[4294967297]}a`), "", nil},
		"blobs_sum_wraps_u32":     {raw(34, `{"blobs":[4294967295, 2, 0, 0, 0]}a`), "", nil},
		"blobs_not_a_list":        {raw(11, `{"blobs":1}a`), "", nil},
		"blobs_inside_is_content": {raw(22, `{"inner":{"blobs":[1]}}`), "", nil}, // one byte too many
	} {
		t.Run(name, func(t *testing.T) {
			f, err := ParseFrame(c.in)
			if c.header == "" {
				if err == nil {
					t.Fatalf("accepted: header %s, %d blobs", f.Header, len(f.Blobs))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var blobs []string
			for _, b := range f.Blobs {
				blobs = append(blobs, string(b))
			}
			if string(f.Header) != c.header || !reflect.DeepEqual(blobs, c.blobs) {
				t.Errorf("got %s %q", f.Header, blobs)
			}
		})
	}
}

func TestParseFrameRefusesHugeHeader(t *testing.T) {
	h := append([]byte(`{"a":"`), bytes.Repeat([]byte("x"), MaxHeader)...)
	if _, err := ParseFrame(AppendFrame(nil, append(h, `"}`...))); err == nil {
		t.Error("a header over MaxHeader was accepted")
	}
}

func TestAppendFrame(t *testing.T) {
	for header, want := range map[string]string{
		`{}`:      `{"blobs":[1,0]}`,
		`{"a":1}`: `{"a":1,"blobs":[1,0]}`,
	} {
		f, err := ParseFrame(AppendFrame(nil, []byte(header), []byte("x"), nil))
		if err != nil || string(f.Header) != want || len(f.Blobs) != 2 {
			t.Errorf("%s: got %s, %v", header, f.Header, err)
		}
	}
	if got := AppendFrame([]byte("before"), []byte(`{}`)); string(got) != "before"+string(raw(2, "{}")) {
		t.Errorf("did not append: %q", got)
	}
	f, err := ParseFrame(AppendFrame([]byte("before"), []byte(`{}`), []byte("x"))[6:])
	if err != nil || string(f.Blobs[0]) != "x" {
		t.Errorf("with a prefix: %v, %v", f, err)
	}
}

var full = Result{
	Content: []Content{
		{Type: TypeText, Text: "a"},
		{Type: TypeImage, MIME: "image/png", Data: []byte{0, 1, 0xff}},
		{Type: TypeAudio, MIME: "audio/wav", Data: []byte{}},
		{Type: TypeResourceLink, URI: "file:///x", Name: "x", Size: 1 << 40, Audience: []string{"user"}},
		{Type: TypeImage, MIME: "image/gif", Data: []byte("GIF")},
	},
	Structured: json.RawMessage(`{"n":1}`),
	Failed:     true,
	Questions:  map[string]Question{"q": {Kind: QuestionForm, Message: "?", Schema: json.RawMessage(`{}`)}},
	State:      "s",
	Meta:       json.RawMessage(`{"m":2}`),
}

func TestResultRoundTrip(t *testing.T) {
	for name, r := range map[string]Result{"full": full, "zero": {}, "text": Text("<&>\u2028")} {
		b, err := AppendResult(nil, r)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := ParseResult(b); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if full.Content[1].Blob != nil {
		t.Error("AppendResult changed its argument")
	}
	for _, c := range full.Content {
		b, err := AppendContent(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseContent(b); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("content %+v: got %+v, %v", c, got, err)
		}
	}
}

func TestResultBlobs(t *testing.T) {
	for name, header := range map[string]string{
		"blob_absent":   `{"content":[{"type":"image","blob":1}]}`,
		"blob_negative": `{"content":[{"type":"image","blob":-1}]}`,
		"blob_twice":    `{"content":[{"type":"image","blob":0},{"type":"image","blob":0}]}`,
	} {
		if r, err := ParseResult(AppendFrame(nil, []byte(header), []byte("x"))); err == nil {
			t.Errorf("%s: accepted as %+v", name, r)
		}
	}
	// A caller that sets the index by hand gets its data's own.
	one := 1
	b, err := AppendResult(nil, Result{Content: []Content{{Type: TypeText, Text: "a", Blob: &one}}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := ParseResult(b); err != nil || r.Content[0].Data != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := AppendResult(nil, Result{Structured: json.RawMessage("{")}); err == nil {
		t.Error("structured content that is not JSON was encoded")
	}
}

func TestErrorFrame(t *testing.T) {
	cause := errors.New("no such file")
	e := &Error{Kind: Denied, Op: "open", What: "x", Hint: "ask", Err: cause,
		Denial: &Denial{Capability: "filesystem.read", Resource: "/x", Layer: "manifest", File: "skill.toml", Line: 3}}
	_, err := ParseResult(AppendError(nil, e))
	var got *Error
	if !errors.As(err, &got) || got.Kind != Denied || got.Error() != e.Error() || !reflect.DeepEqual(got.Denial, e.Denial) {
		t.Errorf("got %#v", err)
	}
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*Error{
		"what":                   {What: "what"},
		"op: what: cause (hint)": {Op: "op", What: "what", Err: cause, Hint: "hint"},
		"what (hint)":            {What: "what", Hint: "hint"},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
	wrapped := errors.Join(errors.New("a"), &Error{Kind: Limit, Err: cause})
	if KindOf(wrapped) != Limit || !errors.Is(wrapped, cause) || KindOf(cause) != Internal || KindOf(nil) != "" || KindOf(&Error{}) != Internal {
		t.Error("KindOf")
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{`{}`, `{"blobs":[1,2]}abb`, `{"blobs":[4294967295,1]}a`, `{"BLOBS":[1],"blobs":[]}`} {
		n := strings.IndexByte(s, '}') + 1
		f.Add(raw(uint32(n), s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := ParseFrame(b)
		if err != nil {
			return
		}
		total := 4 + len(fr.Header)
		for _, blob := range fr.Blobs {
			total += len(blob)
		}
		if total != len(b) {
			t.Fatalf("%d of %d bytes accounted for", total, len(b))
		}
		if !json.Valid(fr.Header) {
			t.Fatalf("header is not JSON: %q", fr.Header)
		}
	})
}

func FuzzParseResult(f *testing.F) {
	b, err := AppendResult(nil, full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(AppendError(nil, &Error{Kind: Guest, What: "x"}))
	f.Add(AppendFrame(nil, []byte(`{"content":[{"blob":0},{"blob":0}]}`), []byte("xyz")))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseResult(b)
		if err != nil {
			return
		}
		size := 0
		for _, c := range r.Content {
			size += len(c.Data)
			if c.Blob != nil {
				t.Fatal("a blob's index got out")
			}
		}
		if size > len(b) {
			t.Fatalf("%d bytes of data from a frame of %d", size, len(b))
		}
		again, err := AppendResult(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := ParseResult(again); err != nil {
			t.Fatal(err)
		} else if a, _ := json.Marshal(r); true {
			if b, _ := json.Marshal(r2); !bytes.Equal(a, b) {
				t.Fatalf("%s became %s", a, b)
			}
		}
	})
}
