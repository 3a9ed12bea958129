package shell

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// A sink takes the output of one command as it comes, on both streams. It
// keeps what a result may show, and the raw bytes until it is clear that they
// all fit; if they do not, they go to the log. Its memory is bounded.
type sink struct {
	log   io.Writer
	limit int64         // bytes of output
	full  chan struct{} // closed when they are written
	job   bool          // everything is in the log, and nothing is kept here

	mu      sync.Mutex
	streams [2]stream // stdout, stderr
	both    clip      // what they say, line by line as it was completed
	raw     []byte    // not in the log
	logging bool
	logErr  error
	total   int64
	fresh   []byte // lines that nobody was shown yet, the last of them
	skipped bool   // there were more
}

// A stream is one of the two outputs of a command.
type stream struct {
	plain  plain
	text   clip
	bytes  int64
	binary bool
}

// maxRaw is how much output that can be shown is kept out of the log, bytes.
// Escape sequences can be many times what they decorate.
const maxRaw = 512 << 10

// newSink makes a sink. All output goes to the log at once if it is that of a
// job, and then none is kept.
func newSink(log io.Writer, limit int64, job bool) *sink {
	s := &sink{log: log, limit: limit, full: make(chan struct{}), job: job, logging: job}
	for i := range s.streams {
		t := &s.streams[i]
		t.plain.emit = func(line []byte) {
			if !job {
				t.text.write(line)
				s.both.write(line)
				s.news(line)
			}
		}
	}
	return s
}

// maxFresh is how much of what a command writes is shown at once while it runs.
const maxFresh = 4 << 10

// news keeps the last lines. The caller holds mu.
func (s *sink) news(line []byte) {
	s.fresh = append(s.fresh, line...)
	if len(s.fresh) > 2*maxFresh {
		s.fresh, s.skipped = append(s.fresh[:0], s.fresh[len(s.fresh)-maxFresh:]...), true
	}
}

// unseen returns the last lines since it was asked before, whole ones if not
// all are there.
func (s *sink) unseen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, cut := s.fresh, s.skipped
	if len(text) > maxFresh {
		text, cut = text[len(text)-maxFresh:], true
	}
	mark := ""
	if cut {
		mark = "[…]\n"
		if i := bytes.IndexByte(text, '\n'); i >= 0 && i+1 < len(text) {
			text = text[i+1:]
		}
	}
	out := mark + strings.ToValidUTF8(string(text), "\ufffd")
	if len(s.fresh) == 0 {
		out = ""
	}
	s.fresh, s.skipped = s.fresh[:0], false
	return out
}

// write takes output of stream i, 0 or 1.
func (s *sink) write(i int, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.streams[i]
	t.see(p)
	if t.bytes += int64(len(p)); !t.binary {
		t.plain.write(p)
	}
	if !s.logging && (s.both.over || s.streams[0].binary || s.streams[1].binary || len(s.raw)+len(p) > maxRaw) {
		s.logging = true
		s.keep(s.raw)
		s.raw = nil
	}
	if s.logging {
		s.keep(p)
	} else {
		s.raw = append(s.raw, p...)
	}
	before := s.total
	if s.total += int64(len(p)); before < s.limit && s.total >= s.limit {
		close(s.full)
	}
}

// see finds out whether the stream that goes on with p is binary.
func (t *stream) see(p []byte) {
	if left := sniff - t.bytes; left > 0 {
		t.binary = t.binary || isBinary(p[:min(int64(len(p)), left)])
	}
}

// keep writes to the log. A command does not stop because its log cannot be
// written: its result says so.
func (s *sink) keep(p []byte) {
	if s.logErr == nil && len(p) > 0 {
		_, s.logErr = s.log.Write(p)
	}
}

// written returns how many bytes the command has written so far.
func (s *sink) written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// A shown is what a result says of a command's output.
type shown struct {
	text, stdout, stderr string
	omitted              int64 // bytes left out of text
	kept                 bool  // all of it is in the log
}

// finish returns what there was. Nothing is written afterwards.
func (s *sink) finish() (shown, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.streams {
		if i > 0 && s.streams[i].plain.pending() {
			s.endLine()
		}
		s.streams[i].plain.flush()
	}
	if !s.logging && s.both.over { // by the last line
		s.logging = true
		s.keep(s.raw)
	}
	out := shown{kept: s.logging && s.logErr == nil}
	out.text, out.omitted = s.both.show(maxRunes, maxLines)
	stdout, stderr := &s.streams[0].text, &s.streams[1].text
	runes, lines := [2]int{maxRunes, maxRunes}, [2]int{maxLines, maxLines}
	if s.both.over {
		runes = share(stdout.size(), stderr.size(), maxRunes)
		lines = share(stdout.lines(), stderr.lines(), maxLines)
	}
	out.stdout, _ = stdout.show(runes[0], lines[0])
	out.stderr, _ = stderr.show(runes[1], lines[1])
	for i, name := range []string{"stdout", "stderr"} {
		if t := &s.streams[i]; t.binary {
			out.text += fmt.Sprintf("[binary output on %s, %d bytes]\n", name, t.bytes)
			*[]*string{&out.stdout, &out.stderr}[i] = fmt.Sprintf("[binary output, %d bytes]", t.bytes)
			out.omitted += t.bytes
		}
	}
	return out, s.logErr
}

// share divides what there is between two that want a and b: half for each, and
// what one does not want for the other.
func share(a, b, all int) [2]int {
	b = min(b, max(all/2, all-a))
	return [2]int{all - b, b}
}

// endLine ends the line that the text stops in.
func (s *sink) endLine() {
	for _, b := range [][]byte{s.both.tail, s.both.head} {
		if len(b) > 0 {
			if !bytes.HasSuffix(b, []byte("\n")) {
				s.both.write([]byte("\n"))
			}
			return
		}
	}
}
