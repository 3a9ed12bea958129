package wire

import "sync"

// An Outlet takes what is said about one request, or to one client: messages
// without a line end, which it takes over. It may block while the client is far
// behind.
type Outlet interface {
	// Send takes a notification, or a request of the server's own.
	Send(b *Buffer)

	// End takes the answer, or nil if there is none because the client has
	// cancelled the request, or sent a notification. f is what the answer
	// reports, if that is an error. It is called once for each message.
	End(b *Buffer, f *Fault)
}

// A Batch gathers the answers to an array of requests.
type Batch struct {
	under Outlet
	mu    sync.Mutex
	left  int
	out   []*Buffer
}

// NewBatch returns the Outlet of n messages, whose answers become one of under.
func NewBatch(under Outlet, n int) *Batch { return &Batch{under: under, left: n} }

// Send passes b on.
func (b *Batch) Send(m *Buffer) { b.under.Send(m) }

// End adds an answer, and ends the Outlet below with the array when that is
// complete.
func (b *Batch) End(answer *Buffer, _ *Fault) {
	b.mu.Lock()
	if answer != nil {
		b.out = append(b.out, answer)
	}
	b.left--
	complete := b.left == 0
	b.mu.Unlock()
	if !complete {
		return
	}
	if len(b.out) == 0 {
		b.under.End(nil, nil)
		return
	}
	whole := NewBuffer()
	whole.B = append(whole.B, '[')
	for i, a := range b.out {
		if i > 0 {
			whole.B = append(whole.B, ',')
		}
		whole.B = append(whole.B, a.B...)
		if written := a.Written; written != nil {
			before := whole.Written
			whole.Written = func(ok bool) {
				if before != nil {
					before(ok)
				}
				written(ok)
			}
		}
		a.Free()
	}
	whole.B = append(whole.B, ']')
	b.under.End(whole, nil)
}
