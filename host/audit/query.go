package audit

import (
	"context"
	"errors"
	"fmt"
	"github.com/skillhost/skill/host/audit/journal"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Filter chooses records. Zero fields choose all.
type Filter struct {
	Since    time.Time // inclusive
	Until    time.Time // exclusive
	Type     Type
	Tool     string
	Skill    string // with or without "@VERSION"
	Caller   string
	Call     string // also finds the calls that it invoked
	Decision string
	Kind     sdk.Kind
	Limit    int // of records
}

func (q Filter) match(r Record) bool {
	name, _, _ := strings.Cut(r.Skill, "@")
	return (q.Since.IsZero() || !r.Time.Before(q.Since)) &&
		(q.Until.IsZero() || r.Time.Before(q.Until)) &&
		(q.Type == "" || q.Type == r.Type) &&
		(q.Tool == "" || q.Tool == r.Tool) &&
		(q.Skill == "" || q.Skill == r.Skill || q.Skill == name) &&
		(q.Caller == "" || q.Caller == r.Caller) &&
		(q.Call == "" || q.Call == r.Call || q.Call == r.Parent) &&
		(q.Decision == "" || q.Decision == r.Decision) &&
		(q.Kind == "" || q.Kind == r.Kind)
}

// Query yields the records of dir that q chooses, merged by time. A line that
// cannot be read comes as an error of kind sdk.Invalid with its place in the
// Record, and the lines after it follow; a file that cannot be read comes as
// one of kind sdk.Unavailable.
func Query(dir string, q Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files, _, err := journal.List(dir)
		if err != nil {
			yield(Record{}, unavailable("audit.Query", fmt.Sprintf("directory %q", dir), err))
			return
		}
		m := merge{files: files, filter: q}
		defer m.close()
		for n := 0; q.Limit <= 0 || n < q.Limit; {
			r, err, ok := m.next()
			if !ok {
				return
			}
			if err == nil && !q.match(r) {
				continue
			}
			n++
			if !yield(r, err) {
				return
			}
		}
	}
}

// A merge reads files whose times overlap.
type merge struct {
	files  []journal.Entry // not opened yet, by time
	active []*stream
	filter Filter
}

// next returns the oldest record that is left.
func (m *merge) next() (Record, error, bool) {
	for {
		best := m.oldest()
		if len(m.files) > 0 && (best < 0 || !m.files[0].At.After(m.active[best].record.Time)) {
			m.open(m.files[0])
			m.files = m.files[1:]
			continue
		}
		if best < 0 {
			return Record{}, nil, false
		}
		s := m.active[best]
		r, err := s.record, s.err
		if !s.advance() {
			s.close()
			m.active = slices.Delete(m.active, best, best+1)
		}
		return r, err, true
	}
}

// oldest returns which active stream is next, or -1.
func (m *merge) oldest() int {
	best := -1
	for i, s := range m.active {
		if best < 0 || s.record.Time.Before(m.active[best].record.Time) {
			best = i
		}
	}
	return best
}

// open adds a file unless all of it lies outside of the filter's time.
func (m *merge) open(e journal.Entry) {
	if !m.filter.Until.IsZero() && !e.At.Before(m.filter.Until) {
		return
	}
	s, err := openStream(e, 0)
	if err == nil && !m.filter.Since.IsZero() {
		if d, err := journal.FindEnd(s.file); err == nil && d.Err == nil && d.Time.Before(m.filter.Since) {
			s.close()
			return
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed by retention meanwhile
	case err != nil:
		m.active = append(m.active, &stream{Entry: e, record: Record{Time: e.At, File: e.Name}, err: unavailable("audit.Query", e.Name, err), ended: true})
	case s.advance():
		m.active = append(m.active, s)
	default:
		s.close()
	}
}

func (m *merge) close() {
	for _, s := range m.active {
		s.close()
	}
}

// A stream reads the records of one file. It has ended if no more can be read.
type stream struct {
	journal.Entry
	file   *os.File
	lines  *journal.LineReader
	record Record
	err    error
	ended  bool
}

// openStream starts at byte off.
func openStream(e journal.Entry, off int64) (*stream, error) {
	f, err := os.Open(e.Path)
	if err != nil {
		return nil, err
	}
	s := &stream{Entry: e, file: f, record: Record{Time: e.At}}
	s.seek(off)
	return s, nil
}

// seek goes on at byte off, which is behind a newline or in a line that the
// caller passes over.
func (s *stream) seek(off int64) {
	s.lines = journal.NewLineReader(io.NewSectionReader(s.file, off, 1<<62))
	s.ended = false
}

// advance reads the next record. A line without an end is none yet.
func (s *stream) advance() bool {
	if s.ended {
		return false
	}
	at := s.record.Time // of a line that cannot be read: that of the line before
	line, err := s.lines.Next()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn):
		return false
	case err != nil:
		s.ended = true
		s.record, s.err = Record{Time: at, File: s.Name}, unavailable("audit.Query", s.Name, err)
		return true
	}
	s.record, s.err = decode(line)
	if s.err != nil {
		s.record = Record{Time: at}
		s.err = &sdk.Error{Kind: sdk.Invalid, Op: "audit.Query", What: fmt.Sprintf("%s:%d", s.Name, s.lines.Line), Err: s.err}
	}
	s.record.File, s.record.Line = s.Name, s.lines.Line
	return true
}

func (s *stream) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// poll is how often a followed log is looked at.
const poll = 200 * time.Millisecond

// Tail yields the last n records of dir, merged by time, and then, if follow
// is set, those that are added by any host until ctx is done. Followed records
// are merged by time as far as they come within a fifth of a second. Errors
// are those of Query; Record.Line is not known here, and 0.
func Tail(ctx context.Context, dir string, n int, follow bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		t := tail{dir: dir, seen: map[string]int64{}}
		batch, err := t.last(n)
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for {
			if err != nil {
				yield(Record{}, unavailable("audit.Tail", fmt.Sprintf("directory %q", dir), err))
				return
			}
			for _, f := range batch {
				if !yield(f.record, f.err) {
					return
				}
			}
			if !follow {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			batch, err = t.added()
		}
	}
}

// A tail knows how far each file was read; gone files are at -1.
type tail struct {
	dir  string
	seen map[string]int64
}

// A found is a record or why there is none.
type found struct {
	record Record
	err    error
}

// found returns the current record. Its line number is that since seek.
func (s *stream) found() found {
	s.record.Line = 0
	return found{s.record, s.err}
}

func byTime(a, b found) int { return a.record.Time.Compare(b.record.Time) }

// last returns the last n records and notes where the files end.
func (t *tail) last(n int) ([]found, error) {
	files, _, err := journal.List(t.dir)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, e := range slices.Backward(files) {
		recs, end, err := lastOf(e, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		t.seen[e.Name] = end
		all = append(all, recs...)
	}
	slices.SortStableFunc(all, byTime)
	return all[max(0, len(all)-max(0, n)):], nil
}

// lastOf returns up to n records from the end of a file, and where it ends.
func lastOf(e journal.Entry, n int) (recs []found, end int64, err error) {
	s, err := openStream(e, 0)
	if err != nil {
		return nil, 0, err
	}
	defer s.close()
	d, err := journal.FindEnd(s.file)
	if err != nil || n <= 0 {
		return nil, d.Lines, err
	}
	for want := int64(64 << 10); ; want *= 4 {
		from := max(0, d.Lines-want)
		s.seek(from)
		if from > 0 { // somewhere in a line
			_, _ = s.lines.Next()
		}
		recs = recs[:0]
		for s.advance() {
			recs = append(recs, s.found())
		}
		if from == 0 || len(recs) >= n {
			return recs[max(0, len(recs)-n):], from + s.lines.Off, nil
		}
	}
}

// added returns the records that came since. A file whose writer has gone is
// not looked at again.
func (t *tail) added() ([]found, error) {
	files, _, err := journal.List(t.dir)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, e := range files {
		off := t.seen[e.Name]
		if off < 0 {
			continue
		}
		alive, err := journal.Live(e.Path) // before reading: what is written after will be read next time
		if err != nil {
			continue // retention took it
		}
		s, err := openStream(e, off)
		if err != nil {
			continue
		}
		for s.advance() {
			all = append(all, s.found())
		}
		t.seen[e.Name] = off + s.lines.Off
		if !alive {
			t.seen[e.Name] = -1
		}
		s.close()
	}
	slices.SortStableFunc(all, byTime)
	return all, nil
}
