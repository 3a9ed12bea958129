package guest

// finally does an operation. A call that is being stopped can start none.
func (p *port) finally(request []byte) ([]byte, error) {
	h := p.start(request)
	if h < 0 {
		return nil, misuse("output", h)
	}
	defer p.drop(h)
	if _, n := p.wait([]int32{h}, -1); n < 0 {
		return nil, misuse("output", n)
	}
	b, n := p.take(h)
	return b, misuse("output", min(n, 0))
}
