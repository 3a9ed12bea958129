package wire

import (
	"encoding/json"
	"io"
	"sync"
)

const (
	writeChunk  = 64 << 10 // what is gathered for one write
	maxPending  = 8 << 20  // bytes that wait for the client before senders wait too
	keepPending = 64 << 10 // a larger buffer is not kept for reuse
)

// A Buffer holds one line on its way out.
type Buffer struct {
	B []byte

	// Written, if it is set, is told once whether the client was written to. It
	// is not told of what was dropped, or may still be fetched.
	Written func(ok bool)
}

// Told tells Written what has become of b.
func (b *Buffer) Told(ok bool) {
	if written := b.Written; written != nil {
		b.Written = nil
		written(ok)
	}
}

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 1024)} }}

// NewBuffer returns an empty Buffer, which Send takes over.
func NewBuffer() *Buffer {
	b := buffers.Get().(*Buffer)
	b.B, b.Written = b.B[:0], nil
	return b
}

// NewAnswer returns a Buffer with the start of the answer to the request of that
// id, up to its result or error; nil stands for an id that nobody could read.
func NewAnswer(id json.RawMessage) *Buffer {
	if id == nil {
		id = json.RawMessage("null")
	}
	b := NewBuffer()
	b.B = append(append(append(b.B, `{"jsonrpc":"2.0","id":`...), id...), ',')
	return b
}

// Free gives b back, if nobody else took it over.
func (b *Buffer) Free() {
	if cap(b.B) <= keepPending {
		buffers.Put(b)
	}
}

// A Writer writes lines for many senders: whoever finds it idle writes, and
// takes along in one write what others hand over meanwhile. While corked, lines
// gather instead, because more are about to come.
type Writer struct {
	w      io.Writer
	broken chan struct{}

	mu      sync.Mutex
	moved   *sync.Cond // the queue got shorter, or the writer failed or is idle
	queue   []*Buffer
	size    int // bytes in queue
	busy    bool
	corked  bool
	closed  bool
	err     error
	scratch []byte // of whoever is writing
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer {
	lw := &Writer{w: w, broken: make(chan struct{})}
	lw.moved = sync.NewCond(&lw.mu)
	return lw
}

// Broken returns a channel that is closed when a write has failed.
func (w *Writer) Broken() <-chan struct{} { return w.broken }

// Send hands b over; b ends with a newline. It blocks while the client is far
// behind. What is sent after a failure is dropped.
func (w *Writer) Send(b *Buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > maxPending && w.busy && !w.closed {
		w.moved.Wait()
	}
	if w.err != nil || w.closed {
		b.Free()
		return
	}
	w.queue = append(w.queue, b)
	w.size += len(b.B)
	if !w.busy && (!w.corked || w.size >= writeChunk) {
		w.flush()
	}
}

// Cork lets lines gather until Uncork, or until they are many.
func (w *Writer) Cork() {
	w.mu.Lock()
	w.corked = true
	w.mu.Unlock()
}

// Uncork writes what has gathered.
func (w *Writer) Uncork() {
	w.mu.Lock()
	w.corked = false
	if !w.busy && len(w.queue) > 0 {
		w.flush()
	}
	w.mu.Unlock()
}

// flush writes until the queue is empty. The caller holds mu, which is free
// during writes.
func (w *Writer) flush() {
	w.busy = true
	for len(w.queue) > 0 && w.err == nil {
		lines := w.queue
		w.queue, w.size = nil, 0
		w.mu.Unlock()
		err := w.write(lines)
		w.mu.Lock()
		if w.queue == nil {
			w.queue = lines[:0]
		}
		if err != nil {
			w.err, w.queue, w.size = err, nil, 0
			close(w.broken)
		}
		w.moved.Broadcast()
	}
	w.busy = false
	w.moved.Broadcast()
}

// write writes the lines in as few writes as their sizes allow and frees them.
func (w *Writer) write(lines []*Buffer) error {
	var err error
	put := func(b []byte) {
		if err == nil && len(b) > 0 {
			_, err = w.w.Write(b)
		}
	}
	if len(lines) == 1 {
		put(lines[0].B)
	} else {
		w.scratch = w.scratch[:0]
		for _, l := range lines {
			if len(w.scratch)+len(l.B) > writeChunk {
				put(w.scratch)
				w.scratch = w.scratch[:0]
			}
			if len(l.B) >= writeChunk/2 { // not worth a copy
				put(w.scratch)
				w.scratch = w.scratch[:0]
				put(l.B)
				continue
			}
			w.scratch = append(w.scratch, l.B...)
		}
		put(w.scratch)
	}
	for i, l := range lines {
		l.Told(err == nil)
		l.Free()
		lines[i] = nil
	}
	return err
}

// Idle returns a channel that is closed once everything sent was written, or
// the writer has failed.
func (w *Writer) Idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Uncork()
		w.mu.Lock()
		defer w.mu.Unlock()
		for w.err == nil && (w.busy || len(w.queue) > 0) {
			w.moved.Wait()
		}
	}()
	return done
}

// Shut drops whatever is sent from now on and returns the write error, if any.
func (w *Writer) Shut() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.moved.Broadcast()
	return w.err
}
