package streamable

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// keepBody is the size up to which a body is read into a slice of just its size.
const keepBody = 64 << 10

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read returns the body of a request, which is the caller's for good.
func (h *Handler) read(v *visit) ([]byte, *refusal) {
	r, limit := v.r, h.o.Limits.Body
	if r.ContentLength > limit {
		v.w.Header().Set("Connection", "close")
		return nil, h.tooLarge()
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, what: "unsupported media type", why: "the body is compressed"}
	}
	body, err := h.readAll(v, limit)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		_ = v.conn.SetReadDeadline(time.Time{})
	case errors.As(err, &large):
		return nil, h.tooLarge()
	default:
		v.w.Header().Set("Connection", "close")
		return nil, &refusal{status: http.StatusRequestTimeout, what: "invalid request", why: "the body did not arrive"}
	}
	return body, nil
}

func (h *Handler) readAll(v *visit, limit int64) ([]byte, error) {
	if n := v.r.ContentLength; n >= 0 && n <= keepBody {
		body := make([]byte, n)
		_, err := io.ReadFull(v.r.Body, body)
		return body, err
	}
	// What a client announces is not believed until it has come.
	b := bodies.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= 1<<20 {
			bodies.Put(b)
		}
	}()
	b.Reset()
	if _, err := b.ReadFrom(http.MaxBytesReader(v.w, v.r.Body, limit)); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil
}

func (h *Handler) tooLarge() *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, what: "limit", why: "the body is larger than " + strconv.FormatInt(h.o.Limits.Body, 10) + " bytes"}
}
