package ops

import (
	"context"

	"github.com/skillhost/skill/sdk"
)

var errNoOutput = &sdk.Error{Kind: sdk.Unavailable, What: "this host keeps no output"}

// outputWrite performs "output.write". It costs nothing, because what a call
// writes is bounded by itself (host/tasks).
func outputWrite(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 1); err != nil {
		return nil, err
	}
	if len(f.Blobs) != 1 {
		return nil, invalid("no output", "it is blob 0, which may be empty")
	}
	if j.Output == nil {
		return nil, errNoOutput
	}
	bytes, lost, err := j.Output.Append(ctx, f.Blobs[0])
	if err != nil {
		return nil, kept(err)
	}
	return reply(struct {
		Bytes int64 `json:"bytes"`
		Lost  int64 `json:"lost,omitempty"`
	}{bytes, lost})
}

func outputLink(ctx context.Context, j *job, f sdk.Frame) ([]byte, error) {
	if err := decode(f, &struct{ header }{}, 0); err != nil {
		return nil, err
	}
	if j.Output == nil {
		return nil, errNoOutput
	}
	link, err := j.Output.Link(ctx)
	if err != nil {
		return nil, kept(err)
	}
	return reply(link)
}
