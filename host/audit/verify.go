package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/skillhost/skill/host/audit/journal"
	"io"
	"io/fs"
	"os"
	"time"
)

// A Report is what Verify found.
type Report struct {
	Files       []FileReport `json:"files"`
	Records     int          `json:"records"`
	Calls       int          `json:"calls"` // that started
	Refused     int          `json:"refused"`
	Running     int          `json:"running"`     // started, not ended, and their host lives
	Interrupted int          `json:"interrupted"` // started, not ended, and their host is gone
	Removed     int          `json:"removed"`     // files that retention took away, as far as remembered
	Problems    []Problem    `json:"problems"`
}

// A FileReport is one file of a Report.
type FileReport struct {
	File    string    `json:"file"`
	State   string    `json:"state"` // "live", "closed", or "unclosed": its host died
	Records int       `json:"records"`
	First   time.Time `json:"first,omitzero"`
	Last    time.Time `json:"last,omitzero"`
}

// A Problem is one thing that is not as it should be. Its Class is one of
//
//	tampered     a line was changed, added, removed or moved
//	deleted      a file is gone that another one remembers
//	torn         the host died while it wrote the last line (a warning)
//	interrupted  the host died while a call ran (a warning)
//	foreign      a file that is not the log's (a warning)
type Problem struct {
	Class string `json:"class"`
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`
	What  string `json:"what"`
}

// Intact reports whether nothing was tampered with or deleted.
func (r Report) Intact() bool {
	for _, p := range r.Problems {
		if p.Class == classTampered || p.Class == classDeleted {
			return false
		}
	}
	return true
}

const (
	classTampered    = "tampered"
	classDeleted     = "deleted"
	classTorn        = "torn"
	classInterrupted = "interrupted"
	classForeign     = "foreign"

	maxProblems = 1000
	maxPerFile  = 20
)

// Verify reads every file of dir and checks each line against its checksum,
// its predecessor and what other files remember. It sees any change but one
// that rewrites the log from some line to its end, later files included:
// against that only a copy of a head that is kept elsewhere helps. Files that
// are being written may be verified. The error, of kind sdk.Unavailable, says
// that the log could not be read; what is wrong with the log is in the Report.
func Verify(dir string) (Report, error) {
	var v verifier
	for range 2 { // a file may have come or gone the first time
		v = verifier{dir: dir, mentions: map[string]map[Head]string{}, removed: map[string]Head{}}
		if err := v.run(); err != nil {
			return Report{}, unavailable("audit.Verify", fmt.Sprintf("directory %q", dir), err)
		}
		if v.report.Intact() {
			break
		}
	}
	return v.report, nil
}

type verifier struct {
	dir      string
	report   Report
	mentions map[string]map[Head]string // what others remember of a file, and one that does
	removed  map[string]Head
	open     map[string]Problem // calls of the current boot that have not ended
	last     Head               // of the file before, if it is of the same boot
}

func (v *verifier) problem(class, file string, line int, format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, Problem{Class: class, File: file, Line: line, What: fmt.Sprintf(format, args...)})
	}
}

func (v *verifier) run() error {
	files, foreign, err := journal.List(v.dir)
	if err != nil {
		return err
	}
	for _, name := range foreign {
		v.problem(classForeign, name, 0, "not a name that the log gives")
	}
	if err := v.remember(files); err != nil {
		return err
	}
	v.missing(files)
	for i, e := range files {
		if i == 0 || files[i-1].Boot != e.Boot {
			v.open, v.last = map[string]Problem{}, Head{}
		}
		alive, err := v.file(e)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if i+1 == len(files) || files[i+1].Boot != e.Boot {
			v.unended(alive)
		}
	}
	return nil
}

// remember collects what the boot lines say of other files.
func (v *verifier) remember(files []journal.Entry) error {
	for _, e := range files {
		origin, err := originOf(e.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		for _, h := range origin.Heads {
			if v.mentions[h.File] == nil {
				v.mentions[h.File] = map[Head]string{}
			}
			v.mentions[h.File][h] = e.Name
		}
		for _, h := range origin.Removed {
			v.removed[h.File] = h
		}
	}
	waiting, err := journal.Removed(v.dir)
	if err != nil {
		v.problem(classTampered, journal.RemovedName, 0, "%v", err)
	}
	for _, h := range waiting {
		v.removed[h.File] = h
	}
	v.report.Removed = len(v.removed)
	return nil
}

// originOf returns what the boot line of a file says, or nothing if the line
// is damaged, which the walk over the file will tell.
func originOf(path string) (Origin, error) {
	f, err := os.Open(path)
	if err != nil {
		return Origin{}, err
	}
	defer func() { _ = f.Close() }()
	line, err := journal.NewLineReader(f).Next()
	if err != nil {
		return Origin{}, nil
	}
	if r, err := decode(line); err == nil && r.Origin != nil {
		return *r.Origin, nil
	}
	return Origin{}, nil
}

// missing reports files that are remembered and neither there nor removed by
// retention.
func (v *verifier) missing(files []journal.Entry) {
	there := map[string]bool{}
	for _, e := range files {
		there[e.Name] = true
	}
	for name, heads := range v.mentions {
		if there[name] {
			continue
		}
		for h, by := range heads {
			r, ok := v.removed[name]
			if !ok {
				v.problem(classDeleted, name, 0, "%s remembers this file", by)
				break
			}
			if h.Seq > r.Seq && r.Seq >= 0 || !h.Live && h.Seq == r.Seq && h.Hash != r.Hash {
				v.problem(classTampered, name, 0, "it was not what %s remembers when it was removed", by)
				break
			}
		}
	}
}

// A walk is the state between two lines of a file.
type walk struct {
	journal.Entry
	prev    string
	seq     int64
	broken  int  // lines found wrong
	resync  bool // the line before was wrong: take this one's word for its place
	closed  bool
	promise map[int64][]Head // what others remember, by line
}

// file checks one file and reports whether it is being written.
func (v *verifier) file(e journal.Entry) (alive bool, err error) {
	if alive, err = journal.Live(e.Path); err != nil {
		return false, err
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	w := walk{Entry: e, promise: map[int64][]Head{}}
	for h := range v.mentions[e.Name] {
		w.promise[h.Seq] = append(w.promise[h.Seq], h)
	}
	report := FileReport{File: e.Name, State: "unclosed"}
	if e.Part > 1 {
		w.prev, w.seq, w.resync = v.last.Hash, v.last.Seq, v.last.File == ""
	}
	lines := journal.NewLineReader(f)
	line, err := lines.Next()
	for ; err == nil; line, err = lines.Next() {
		v.line(&w, line, lines.Line, &report)
	}
	switch {
	case errors.Is(err, journal.ErrTorn) && !alive:
		v.problem(classTorn, e.Name, lines.Line+1, "the host died while it wrote this line")
	case errors.Is(err, journal.ErrLong):
		v.problem(classTampered, e.Name, lines.Line+1, "%v", err)
	case !errors.Is(err, io.EOF) && !errors.Is(err, journal.ErrTorn):
		return alive, err
	}
	v.kept(&w)
	switch {
	case alive:
		report.State = "live"
	case w.closed:
		report.State = "closed"
	}
	v.last = Head{File: e.Name, Hash: w.prev, Seq: w.seq}
	v.report.Files = append(v.report.Files, report)
	return alive, nil
}

// line checks one line and moves w behind it.
func (v *verifier) line(w *walk, line []byte, n int, report *FileReport) {
	sum := sha256.Sum256(line)
	r, err := decode(line)
	if err == nil {
		err = w.check(r, n)
	}
	if err != nil {
		if w.broken++; w.broken <= maxPerFile {
			v.problem(classTampered, w.Name, n, "%v", err)
		}
	}
	w.resync = err != nil
	w.prev, w.seq = hex.EncodeToString(sum[:]), w.seq+1
	if r.Version == 0 {
		return
	}
	w.seq, w.closed = r.Seq, r.Type == TypeClose
	for _, h := range w.promise[r.Seq] {
		if h.Hash != w.prev && w.broken == 0 {
			w.broken++
			v.problem(classTampered, w.Name, n, "it is not the line that %s remembers", v.mentions[w.Name][h])
		}
	}
	v.report.Records++
	report.Records++
	if report.First.IsZero() {
		report.First = r.Time
	}
	report.Last = r.Time
	v.count(r, w.Name, n)
}

// check compares a line with its place.
func (w *walk) check(r Record, n int) error {
	switch {
	case w.closed:
		return errors.New("a line behind the close line")
	case r.Boot != w.Boot:
		return fmt.Errorf("a line of boot %q", r.Boot)
	case (n == 1) != (r.Type == TypeBoot):
		return fmt.Errorf("a line of type %q in this place", r.Type)
	case w.resync:
		return nil
	case r.Seq != w.seq+1:
		return fmt.Errorf("line %d of the boot follows line %d", r.Seq, w.seq)
	case r.Prev != w.prev:
		return errors.New("the line before it is not the one it was written behind")
	}
	return nil
}

// kept checks that the file still ends where others saw it end, or later if it
// was being written.
func (v *verifier) kept(w *walk) {
	for h, by := range v.mentions[w.Name] {
		switch {
		case w.broken > 0 || h.Seq <= 0:
		case h.Seq > w.seq:
			v.problem(classTampered, w.Name, 0, "it ends at line %d of its boot, but %s remembers line %d", w.seq, by, h.Seq)
			return
		case !h.Live && h.Seq < w.seq:
			v.problem(classTampered, w.Name, 0, "lines were added: %s remembers that it ended at line %d of its boot", by, h.Seq)
			return
		}
	}
}

func (v *verifier) count(r Record, file string, line int) {
	switch r.Type {
	case TypeStart:
		v.report.Calls++
		v.open[r.Call] = Problem{Class: classInterrupted, File: file, Line: line, What: fmt.Sprintf("call %q of tool %q has no end", r.Call, r.Tool)}
	case TypeEnd:
		delete(v.open, r.Call)
	case TypeRefuse:
		v.report.Refused++
	}
}

// unended counts the calls of a boot that have not ended.
func (v *verifier) unended(alive bool) {
	if alive {
		v.report.Running += len(v.open)
		return
	}
	v.report.Interrupted += len(v.open)
	for _, p := range v.open {
		if len(v.report.Problems) < maxProblems {
			v.report.Problems = append(v.report.Problems, p)
		}
	}
}
