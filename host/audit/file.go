package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/skillhost/skill/host/audit/journal"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/skillhost/skill/host/audit/redact"
	"github.com/skillhost/skill/sdk"
)

// Options say where and how a File keeps the log.
type Options struct {
	Dir        string          // one file per boot; made with mode 0700
	Key        string          // file of the per-user key of parameter digests; "" means audit.key beside Dir
	Durability string          // "kernel" (default; "" means it) or "disk"
	Params     string          // "shape" (default; "" means it) or "redacted"
	Version    string          // of the host, for the boot line
	MaxSize    int64           // bytes after which a new file is begun; 0 means 64 MiB, at least 16 KiB
	Secrets    func() []string // values that never reach the log, or nil
	Now        func() time.Time
}

// A File is a Log in a directory of JSON lines, chained by SHA-256. It holds a
// lock on its file for as long as it is open, which is how others see that
// this boot lives.
//
// If there is no space, records of calls that start are refused and the next
// one tries again, so that the host recovers by itself; records of calls that
// run have space that was set aside when they started. Any other failure (a
// short write, a lost page, a file that was cut or unlinked under the host) is
// final: no call starts until the host is restarted.
type File struct {
	opts   Options
	pool   sync.Pool // of *encoder
	commit journal.Commit

	mu      sync.Mutex
	boot    bootID
	chain   journal.Chain
	seg     *journal.Segment
	behind  chan error // how the file before this one got to the disk; nil if that is known
	running int        // calls started and not ended
	broken  error      // why no call may start any more
	closed  bool
}

// A bootID names the files of one process.
type bootID struct {
	id   string
	at   time.Time
	part int // of the current file, from 1
}

// Space set aside in a file, in bytes. An end always fits endRoom, because
// every field has a bound (see encode.go).
const (
	bootRoom   = 4 << 10 // the boot line of a part that is not the first
	closeRoom  = 2 << 10
	accessRoom = 32 << 10
	endRoom    = 8 << 10
	maxSize    = 64 << 20
)

const opAppend, opOpen = "audit.Append", "audit.Open"

// Open starts the log of this boot: it makes Options.Dir if need be, lists the
// heads of the files that are there, and writes the boot line. The error has
// kind sdk.Invalid for a bad option and sdk.Unavailable otherwise.
func Open(opts Options) (*File, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	f := &File{opts: opts, boot: bootID{at: opts.Now().UTC(), part: 1}}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	f.boot.id = hex.EncodeToString(id[:])
	f.chain = journal.NewChain(f.boot.id)

	if err := journal.PrivateDir(opts.Dir); err != nil {
		return nil, unavailable(opOpen, fmt.Sprintf("directory %q", opts.Dir), err)
	}
	unlock, err := journal.LockDir(opts.Dir)
	if err != nil {
		return nil, unavailable(opOpen, fmt.Sprintf("directory %q", opts.Dir), err)
	}
	defer unlock()
	key, err := journal.LoadKey(opts.Key)
	if err != nil {
		return nil, unavailable(opOpen, fmt.Sprintf("key %q", opts.Key), err)
	}
	f.pool.New = func() any { return newEncoder(key, opts.Params == "redacted") }

	var origin Origin
	if origin.Heads, err = journal.Heads(opts.Dir); err != nil {
		return nil, unavailable(opOpen, fmt.Sprintf("directory %q", opts.Dir), err)
	}
	if origin.Removed, err = journal.Removed(opts.Dir); err != nil {
		return nil, unavailable(opOpen, "the list of removed files", err)
	}
	if err = f.begin(origin); err != nil {
		return nil, unavailable(opOpen, fmt.Sprintf("file %q", f.path()), err)
	}
	if len(origin.Removed) > 0 {
		if err = journal.Datasync(f.seg.File); err == nil { // the note goes only once its copy is safe
			err = journal.SetRemoved(opts.Dir, nil)
		}
	}
	if err == nil && opts.Durability == "disk" {
		err = errors.Join(journal.Datasync(f.seg.File), journal.SyncDir(opts.Dir))
	}
	if err != nil {
		_ = f.Close()
		return nil, unavailable(opOpen, fmt.Sprintf("directory %q", opts.Dir), err)
	}
	return f, nil
}

// complete checks o and fills in what is not said.
func (o *Options) complete() error {
	invalid := func(what, hint string) error {
		return &sdk.Error{Kind: sdk.Invalid, Op: opOpen, What: what, Hint: hint}
	}
	if o.Dir == "" {
		return invalid("no directory", "")
	}
	if o.Durability != "" && o.Durability != "kernel" && o.Durability != "disk" {
		return invalid(fmt.Sprintf("durability %q", o.Durability), `"kernel" or "disk"`)
	}
	if o.Params != "" && o.Params != "shape" && o.Params != "redacted" {
		return invalid(fmt.Sprintf("params %q", o.Params), `"shape" or "redacted"`)
	}
	if o.Key == "" {
		o.Key = filepath.Join(filepath.Dir(filepath.Clean(o.Dir)), "audit.key")
	}
	if o.MaxSize <= 0 {
		o.MaxSize = maxSize
	}
	o.MaxSize = max(o.MaxSize, 4*bootRoom)
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// userName returns who runs the host, as the system knows them.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// Boot returns the id of this boot, which every line of its files carries.
func (f *File) Boot() string { return f.boot.id }

// path returns the file of the current part.
func (f *File) path() string {
	return filepath.Join(f.opts.Dir, journal.FileName(f.boot.at, f.boot.id, f.boot.part))
}

// bootLine returns the first line of the current part's file.
func (f *File) bootLine(origin Origin) ([]byte, error) {
	origin.Version, origin.PID, origin.User = f.opts.Version, os.Getpid(), userName()
	b, err := json.Marshal(origin)
	if err != nil {
		return nil, err
	}
	return f.chain.Line(f.opts.Now(), append([]byte(`,"type":"boot","origin":`), b...)), nil
}

// begin makes the first file, with its boot line in it.
func (f *File) begin(origin Origin) error {
	line, err := f.bootLine(origin)
	if err != nil {
		return err
	}
	f.seg, err = journal.NewSegment(f.path(), int64(len(line))+f.reserve(TypeStart))
	if err != nil {
		return err
	}
	if err := f.seg.Put(line); err != nil {
		_ = f.seg.Finish()
		return err
	}
	f.chain.Advance(line)
	return nil
}

// Append adds e to the log. It returns nil once the record is with the kernel
// or, with durability "disk", once it is on disk; records of type TypeAccess
// do not wait for the disk, as the end of their call does. Only the start of a
// call heeds ctx. The error has kind sdk.Unavailable if the log cannot be
// written, sdk.Canceled for ctx, and sdk.Internal for a type that callers do
// not write.
func (f *File) Append(ctx context.Context, e Event) error {
	switch e.Type {
	case TypeStart:
		if err := ctx.Err(); err != nil {
			return &sdk.Error{Kind: sdk.Canceled, Op: opAppend, What: "the call is over", Err: err}
		}
	case TypeRefuse, TypeAccess, TypeEnd, TypeAnswer, TypePolicy:
	default:
		return &sdk.Error{Kind: sdk.Internal, Op: opAppend, What: fmt.Sprintf("type %q is not for callers", e.Type)}
	}
	enc := f.pool.Get().(*encoder)
	if f.opts.Secrets != nil {
		enc.redactor = redact.Redactor{Secrets: f.opts.Secrets()}
	}
	body := enc.encode(&e)
	f.mu.Lock()
	seq, err := f.write(e.Type, body)
	f.mu.Unlock()
	if cap(body) <= 64<<10 {
		f.pool.Put(enc)
	}
	if err == nil && f.opts.Durability == "disk" && e.Type != TypeAccess {
		if err = f.commit.Wait(seq, f.flush); err != nil {
			return unavailable(opAppend, "the record is not on disk", err)
		}
	}
	return err
}

// write adds one line to the file and returns its sequence number.
func (f *File) write(t Type, body []byte) (int64, error) {
	if f.closed {
		return 0, &sdk.Error{Kind: sdk.Unavailable, Op: opAppend, What: "the log is closed"}
	}
	starts := t != TypeEnd && t != TypeAccess && t != TypeClose
	now := f.opts.Now()
	if f.chain.NewSecond(now) && f.broken == nil {
		f.broken = f.seg.Intact()
		if len(f.behind) > 0 {
			f.settle()
		}
	}
	if starts && f.broken != nil {
		return 0, f.refusal()
	}
	line := f.chain.Line(now, body)
	if starts && f.seg.Off+int64(len(line)) > f.opts.MaxSize {
		f.rotate(now)
		if f.broken != nil {
			return 0, f.refusal()
		}
		line = f.chain.Line(now, body)
	}
	if err := f.seg.Grow(int64(len(line)) + f.reserve(t)); err != nil {
		return 0, &sdk.Error{Kind: sdk.Unavailable, Op: opAppend, What: "no space for the record", Err: err,
			Hint: fmt.Sprintf("free space in %q; calls are refused until then", f.opts.Dir)}
	}
	if err := f.seg.Put(line); err != nil {
		f.broken = err
		if starts || f.seg.Put(line) != nil { // what runs already is recorded by all means
			return 0, f.refusal()
		}
	}
	f.chain.Advance(line)
	switch t {
	case TypeStart:
		f.running++
	case TypeEnd:
		f.running = max(0, f.running-1)
	}
	return f.chain.Seq, nil
}

// reserve returns how much space must be left behind a record of type t.
func (f *File) reserve(t Type) int64 {
	ends := int64(f.running) * endRoom
	switch t {
	case TypeClose:
		return 0
	case TypeEnd:
		return closeRoom + max(0, ends-endRoom)
	case TypeAccess:
		return closeRoom + ends
	case TypeStart:
		return closeRoom + ends + endRoom + accessRoom
	}
	return closeRoom + ends + accessRoom
}

func (f *File) refusal() error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: opAppend, What: "the log is broken", Err: f.broken,
		Hint: "no call runs until the host is restarted; see `skill audit verify`"}
}

// rotate begins the next file of this boot. If there is no space for that, the
// log goes on in the old file.
func (f *File) rotate(now time.Time) {
	f.boot.part++
	old, next := f.seg, f.path()
	seg, err := journal.NewSegment(next, bootRoom+f.reserve(TypeStart))
	if err != nil {
		f.boot.part--
		return
	}
	line := f.chain.Line(now, closing("continued in "+filepath.Base(next)))
	if f.broken = old.Put(line); f.broken != nil {
		f.boot.part--
		_ = seg.Finish()
		_ = os.Remove(next)
		return
	}
	f.chain.Advance(line)
	f.seg = seg
	head := Head{File: filepath.Base(old.File.Name()), Hash: f.chain.Prev(), Seq: f.chain.Seq}
	if line, f.broken = f.bootLine(Origin{Heads: []Head{head}}); f.broken == nil {
		f.broken = seg.Put(line)
		f.chain.Advance(line)
	}
	f.settle()
	f.behind = make(chan error, 1)
	done := f.behind
	finish := func() { done <- old.Finish() }
	if f.opts.Durability == "disk" {
		finish()
		f.settle()
	} else { // no record waits for the disk
		go finish()
	}
}

// settle waits until the file before the current one is on disk, and takes note
// if it is not.
func (f *File) settle() {
	if f.behind == nil {
		return
	}
	if err := <-f.behind; f.broken == nil {
		f.broken = err
	}
	f.behind = nil
}

// flush brings every record so far to disk and says up to which. A file that
// was closed meanwhile was brought there, or f is broken.
func (f *File) flush() (int64, error) {
	f.mu.Lock()
	seq, file := f.chain.Seq, f.seg.File
	f.mu.Unlock()
	err := journal.Datasync(file)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrClosed):
		err = f.broken
	case err != nil && f.broken == nil:
		f.broken = err
	}
	return seq, err
}

// Close writes the close line, gives back the space set aside, and brings the
// file to disk. Calls after the first return nil.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	_, err := f.write(TypeClose, closing(""))
	f.closed = true
	ferr := f.seg.Finish()
	if f.behind != nil {
		ferr = errors.Join(ferr, <-f.behind)
		f.behind = nil
	}
	if ferr != nil {
		f.broken = ferr
		if err == nil {
			err = unavailable("audit.Close", fmt.Sprintf("file %q", f.path()), ferr)
		}
	}
	return err
}

// Alive reports whether the process of a boot still runs and writes to dir.
// The error has kind sdk.Unavailable.
func Alive(dir, boot string) (bool, error) {
	alive, err := journal.Alive(dir, boot)
	if err != nil {
		return false, unavailable("audit.Alive", fmt.Sprintf("directory %q", dir), err)
	}
	return alive, nil
}

func unavailable(op, what string, err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: op, What: what, Err: err}
}
