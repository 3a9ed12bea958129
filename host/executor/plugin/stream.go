package plugin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/skillhost/skill/sdk/plugin/wire"
)

// A stream is one of a process's, for one call after another: to open one costs
// more than all else of a short call.
type stream struct {
	grpc.ClientStream
	end   context.CancelFunc // also tells the plugin that its call is over
	most  int                // bytes of a message
	calls uint32             // begun on it
}

// stream returns one for the next call, whose messages have at most so many
// bytes. It waits until ctx is done for a plugin that allows of no more.
func (p *process) stream(ctx context.Context, most int) (*stream, error) {
	if s := p.kept(most); s != nil {
		s.calls++
		return s, nil
	}
	own, cancel := context.WithCancel(context.Background()) // the connection ends it, if nobody else does
	defer context.AfterFunc(ctx, cancel)()
	s, err := p.conn.NewStream(own, &wire.Service.Streams[0], wire.RunMethod, grpc.MaxCallRecvMsgSize(most))
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{ClientStream: s, end: cancel, most: most, calls: 1}, nil
}

// kept takes out the stream that was used last. One of other limits is ended.
func (p *process) kept(most int) *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.streams) > 0 {
		s := p.streams[len(p.streams)-1]
		p.streams = p.streams[:len(p.streams)-1]
		if s.most == most {
			return s
		}
		s.end()
	}
	return nil
}

// keep takes back a stream whose call is over.
func (p *process) keep(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = append(p.streams, s)
}
