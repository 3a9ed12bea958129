//go:build !wasip1

package guest

import (
	"context"
	"errors"
	"time"

	"github.com/skillhost/skill/sdk"
)

// lastWords is how long an operation may take that a call does after it was
// told to stop.
const lastWords = 5 * time.Second

// finally does an operation also when the call is being stopped: what a tool
// writes while it finishes is output like any other.
func (p *port) finally(request []byte) ([]byte, error) {
	f, err := sdk.ParseFrame(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(p.ctx), lastWords, errOver)
	defer cancel()
	reply, err := p.host.Do(ctx, f)
	var e *sdk.Error
	switch {
	case err == nil || errors.As(err, &e):
		return reply, err
	default:
		return nil, &sdk.Error{Kind: sdk.Internal, What: err.Error()}
	}
}
