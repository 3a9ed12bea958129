package wasm

import (
	"bytes"
	"strings"

	"github.com/skillhost/skill/sdk"
)

const (
	maxTail   = 2 << 10 // bytes of stderr in an error
	maxLine   = 8 << 10 // bytes of one log message; longer lines are split
	maxEvents = 1 << 16 // progress, partial content and logs of one call
)

// A stream is a guest's stdout or stderr. Each line becomes a log event, and
// none of it ever reaches the protocol.
type stream struct {
	call  *call
	level string
	line  []byte // not yet ended
	tail  []byte // at most maxTail
}

// Write never fails: it stops the guest if there is too much output.
func (s *stream) Write(p []byte) (int, error) {
	s.call.check()
	s.call.spend(len(p))
	s.tail = append(s.tail, p[max(0, len(p)-maxTail):]...)
	s.tail = s.tail[max(0, len(s.tail)-maxTail):]
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxLine-len(s.line))
		end := bytes.IndexByte(rest[:n], '\n')
		if end < 0 {
			s.line = append(s.line, rest[:n]...)
			if rest = rest[n:]; len(s.line) == maxLine {
				s.flush()
			}
			continue
		}
		s.line = append(s.line, rest[:end]...)
		s.flush()
		rest = rest[end+1:]
	}
	return len(p), nil
}

// flush logs the line so far. Beyond the events that a call may emit, nothing
// more is logged.
func (s *stream) flush() {
	if len(s.line) > 0 && s.call.count() {
		s.call.job.Emit(sdk.Event{Kind: sdk.EventLog, Level: s.level, Message: strings.ToValidUTF8(string(s.line), "\uFFFD")})
	}
	s.line = s.line[:0]
}

// last returns the end of what was written.
func (s *stream) last() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(s.tail), ""))
}

// count counts an event, and says whether it may still be emitted.
func (c *call) count() bool {
	c.output.events++
	return c.output.events <= maxEvents
}
