package sdk

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// A Frame carries a JSON header and raw blobs, so that bytes such as an image
// travel as they are. On the wire it is a little-endian u32 with the header's
// length, the header, and the blobs one after the other. The header's member
// "blobs" lists their lengths; without it there are none.
type Frame struct {
	Header json.RawMessage
	Blobs  [][]byte
}

// Bounds of a frame.
const (
	MaxHeader = 16 << 20 // bytes of the header
	MaxBlobs  = 4096
)

var errFrame = errors.New("malformed frame")

// AppendFrame appends the frame of header and blobs to dst. header must be a
// JSON object without a member "blobs".
func AppendFrame(dst []byte, header []byte, blobs ...[]byte) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if len(blobs) == 0 {
		dst = append(dst, header...)
	} else {
		end := len(header) - 1 // before the closing brace
		dst = append(dst, header[:end]...)
		if end > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"blobs":[`...)
		for i, b := range blobs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = fmt.Appendf(dst, "%d", len(b))
		}
		dst = append(dst, "]}"...)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	for _, b := range blobs {
		dst = append(dst, b...)
	}
	return dst
}

// ParseFrame splits b into its header and blobs, which alias b. It fails on a
// header that is not a JSON object, and unless the blobs fill the rest of b
// exactly.
func ParseFrame(b []byte) (Frame, error) {
	if len(b) < 4 {
		return Frame{}, errFrame
	}
	n, rest := uint64(binary.LittleEndian.Uint32(b)), b[4:]
	if n > uint64(len(rest)) || n > MaxHeader {
		return Frame{}, errFrame
	}
	f := Frame{Header: rest[:n:n]}
	rest = rest[n:]
	var h struct {
		Blobs []uint32 `json:"blobs"`
	}
	if n == 0 || f.Header[0] != '{' {
		return Frame{}, errFrame
	}
	if err := json.Unmarshal(f.Header, &h); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", errFrame, err)
	}
	if len(h.Blobs) > MaxBlobs {
		return Frame{}, errFrame
	}
	for _, l := range h.Blobs {
		if uint64(l) > uint64(len(rest)) {
			return Frame{}, errFrame
		}
		f.Blobs = append(f.Blobs, rest[:l:l])
		rest = rest[l:]
	}
	if len(rest) != 0 {
		return Frame{}, errFrame
	}
	return f, nil
}

// AppendResult appends the frame of r to dst.
func AppendResult(dst []byte, r Result) ([]byte, error) {
	var blobs [][]byte
	if len(r.Content) > 0 {
		content := make([]Content, len(r.Content))
		copy(content, r.Content)
		for i := range content {
			content[i], blobs = content[i].toBlob(blobs)
		}
		r.Content = content
	}
	h, err := json.Marshal(r)
	if err != nil {
		return dst, err
	}
	return AppendFrame(dst, h, blobs...), nil
}

// AppendContent appends the frame of c to dst, as EmitPartial carries it.
func AppendContent(dst []byte, c Content) ([]byte, error) {
	c, blobs := c.toBlob(nil)
	h, err := json.Marshal(c)
	if err != nil {
		return dst, err
	}
	return AppendFrame(dst, h, blobs...), nil
}

func (c Content) toBlob(blobs [][]byte) (Content, [][]byte) {
	c.Blob = nil
	if c.Data != nil {
		n := len(blobs)
		c.Blob, blobs = &n, append(blobs, c.Data)
	}
	return c, blobs
}

// AppendError appends the frame of a reply that is an error.
func AppendError(dst []byte, e *Error) []byte {
	h, err := json.Marshal(struct {
		Error *Error `json:"error"`
	}{e})
	if err != nil { // strings only: cannot happen
		h = []byte(`{"error":{"kind":"internal","what":"unencodable error"}}`)
	}
	return AppendFrame(dst, h)
}

// ParseResult reads the frame of a Result. A frame whose header has a member
// "error" gives that *Error. Each blob may be the Data of one Content only,
// which aliases b.
func ParseResult(b []byte) (Result, error) {
	f, err := ParseFrame(b)
	if err != nil {
		return Result{}, err
	}
	var w struct {
		Result
		Error *Error `json:"error"`
	}
	if err := json.Unmarshal(f.Header, &w); err != nil {
		return Result{}, fmt.Errorf("%w: %w", errFrame, err)
	}
	if w.Error != nil {
		return Result{}, w.Error
	}
	for i := range w.Content {
		if err := w.Content[i].fromBlob(f.Blobs); err != nil {
			return Result{}, err
		}
	}
	return w.Result, nil
}

// ParseContent reads the frame of a Content.
func ParseContent(b []byte) (Content, error) {
	f, err := ParseFrame(b)
	if err != nil {
		return Content{}, err
	}
	var c Content
	if err := json.Unmarshal(f.Header, &c); err != nil {
		return Content{}, fmt.Errorf("%w: %w", errFrame, err)
	}
	return c, c.fromBlob(f.Blobs)
}

func (c *Content) fromBlob(blobs [][]byte) error {
	if c.Blob == nil {
		return nil
	}
	if *c.Blob < 0 || *c.Blob >= len(blobs) || blobs[*c.Blob] == nil {
		return fmt.Errorf("%w: no blob %d left", errFrame, *c.Blob)
	}
	// Each blob is used once: otherwise a small frame names one large blob many
	// times, and grows past every limit when it is written out.
	c.Data, blobs[*c.Blob], c.Blob = blobs[*c.Blob], nil, nil
	return nil
}
