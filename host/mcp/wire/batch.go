package wire

import "sync"

// A Batch gathers the answers to an array of requests.
type Batch struct {
	w    *Writer
	mu   sync.Mutex
	left int
	out  []*Buffer
}

// Batch returns a Batch that goes to w. It waits for one Done besides those that
// Add announces: its creator's, when all of the array is added.
func (w *Writer) Batch() *Batch { return &Batch{w: w, left: 1} }

// Add announces one more Done.
func (b *Batch) Add() {
	b.mu.Lock()
	b.left++
	b.mu.Unlock()
}

// Done adds one answer, or none if it is nil, and sends the array when it is
// complete.
func (b *Batch) Done(answer *Buffer) {
	b.mu.Lock()
	if answer != nil {
		b.out = append(b.out, answer)
	}
	b.left--
	complete := b.left == 0 && len(b.out) > 0
	b.mu.Unlock()
	if !complete {
		return
	}
	whole := NewBuffer()
	whole.B = append(whole.B, '[')
	for i, a := range b.out {
		if i > 0 {
			whole.B = append(whole.B, ',')
		}
		whole.B = append(whole.B, a.B...)
		a.free()
	}
	whole.B = append(whole.B, "]\n"...)
	b.w.Send(whole)
}
