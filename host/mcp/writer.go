package mcp

import (
	"io"
	"sync"
)

const (
	writeChunk  = 64 << 10 // what is gathered for one write
	maxPending  = 8 << 20  // bytes that wait for the client before senders wait too
	keepPending = 64 << 10 // a larger buffer is not kept for reuse
)

// A buffer holds one line on its way out.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 1024)} }}

func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.b = b.b[:0]
	return b
}

func (b *buffer) free() {
	if cap(b.b) <= keepPending {
		buffers.Put(b)
	}
}

// A lineWriter writes lines for many senders: whoever finds it idle writes, and
// takes along in one write what others hand over meanwhile. While corked, lines
// gather instead, because more are about to come.
type lineWriter struct {
	w      io.Writer
	broken chan struct{} // closed when w failed

	mu      sync.Mutex
	moved   *sync.Cond // the queue got shorter, or the writer failed or is idle
	queue   []*buffer
	size    int // bytes in queue
	busy    bool
	corked  bool
	closed  bool
	err     error
	scratch []byte // of whoever is writing
}

func newLineWriter(w io.Writer) *lineWriter {
	lw := &lineWriter{w: w, broken: make(chan struct{})}
	lw.moved = sync.NewCond(&lw.mu)
	return lw
}

// send hands b over; b ends with a newline. It blocks while the client is far
// behind. What is sent after a failure is dropped.
func (w *lineWriter) send(b *buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > maxPending && w.busy && !w.closed {
		w.moved.Wait()
	}
	if w.err != nil || w.closed {
		b.free()
		return
	}
	w.queue = append(w.queue, b)
	w.size += len(b.b)
	if !w.busy && (!w.corked || w.size >= writeChunk) {
		w.flush()
	}
}

func (w *lineWriter) cork() {
	w.mu.Lock()
	w.corked = true
	w.mu.Unlock()
}

func (w *lineWriter) uncork() {
	w.mu.Lock()
	w.corked = false
	if !w.busy && len(w.queue) > 0 {
		w.flush()
	}
	w.mu.Unlock()
}

// flush writes until the queue is empty. The caller holds mu, which is free
// during writes.
func (w *lineWriter) flush() {
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
func (w *lineWriter) write(lines []*buffer) error {
	var err error
	put := func(b []byte) {
		if err == nil && len(b) > 0 {
			_, err = w.w.Write(b)
		}
	}
	if len(lines) == 1 {
		put(lines[0].b)
	} else {
		w.scratch = w.scratch[:0]
		for _, l := range lines {
			if len(w.scratch)+len(l.b) > writeChunk {
				put(w.scratch)
				w.scratch = w.scratch[:0]
			}
			if len(l.b) >= writeChunk/2 { // not worth a copy
				put(w.scratch)
				w.scratch = w.scratch[:0]
				put(l.b)
				continue
			}
			w.scratch = append(w.scratch, l.b...)
		}
		put(w.scratch)
	}
	for i, l := range lines {
		l.free()
		lines[i] = nil
	}
	return err
}

// idle returns a channel that is closed once everything sent was written, or
// the writer has failed.
func (w *lineWriter) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.uncork()
		w.mu.Lock()
		defer w.mu.Unlock()
		for w.err == nil && (w.busy || len(w.queue) > 0) {
			w.moved.Wait()
		}
	}()
	return done
}

// shut drops whatever is sent from now on and returns the write error, if any.
func (w *lineWriter) shut() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.moved.Broadcast()
	return w.err
}
