// Package journal keeps lines in files of a directory: one file for each boot
// of a process, every line chained to the one before it, and each file locked
// for as long as its writer lives. It knows the place of a line (its number,
// time, boot and hashes) and nothing of what else the line says.
package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// chunk is the step in which space is set aside, in bytes. In larger ones it
// costs a little less, and all at once: the record that comes just then waits.
const chunk = 256 << 10

// patience is how long a lock that is held for moments only is waited for.
const patience = 10 * time.Second

// A Segment is one file of the log and the space set aside in it: NUL bytes
// behind the last record, which Finish gives back. Where the system allows,
// records are copied into a shared mapping of that space. Such a copy is with
// the kernel like a written one, for a third of the time, and it cannot meet a
// full disk.
type Segment struct {
	File   *os.File
	Off    int64 // where the records end
	size   int64 // where the space ends
	base   int64 // where window starts
	window []byte
	direct bool // write with pwrite only
}

// NewSegment makes and locks the file, with room bytes of space.
func NewSegment(path string, room int64) (*Segment, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s := &Segment{File: file}
	if err = acquire(file, true); err == nil {
		err = s.Grow(room)
	}
	if err != nil {
		s.unmap()
		_ = file.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return s, nil
}

// acquire locks file, which others lock for moments only.
func acquire(file *os.File, exclusive bool) error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		ok, err := tryLock(file, exclusive)
		if ok || err != nil {
			return err
		}
		if time.Since(start) > patience {
			return errors.New("it is locked by another process")
		}
	}
}

// Grow sees to it that n bytes fit behind the records.
func (s *Segment) Grow(n int64) error {
	if s.Off+n <= s.size {
		return nil
	}
	size := (s.Off + n + chunk - 1) / chunk * chunk
	mappable, err := allocate(s.File, s.size, size)
	if err != nil {
		_ = s.File.Truncate(s.size) // give back what was had of it
		return err
	}
	s.size = size
	s.direct = s.direct || !mappable
	s.unmap()
	if !s.direct {
		s.base = s.Off &^ int64(os.Getpagesize()-1)
		if s.window, err = mapSpace(s.File, s.base, int(s.size-s.base)); err != nil {
			s.direct = true
		}
	}
	return nil
}

// zeroFill sets space aside by writing to it.
func zeroFill(file *os.File, from, to int64) error {
	for zeros := make([]byte, min(to-from, chunk)); from < to; {
		n, err := file.WriteAt(zeros[:min(to-from, int64(len(zeros)))], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// Put writes line, for which there must be space. After an error the record is
// not in the file.
func (s *Segment) Put(line []byte) error {
	if s.Off+int64(len(line)) > s.size {
		return fmt.Errorf("no space was set aside at byte %d", s.Off)
	}
	if s.window != nil {
		if err := copyMapped(s.window[s.Off-s.base:], line); err != nil {
			s.unmap()
			s.direct = true
			return err
		}
	} else if _, err := s.File.WriteAt(line, s.Off); err != nil {
		if zerr := zeroFill(s.File, s.Off, s.Off+int64(len(line))); zerr != nil {
			_ = s.File.Truncate(s.Off)
			s.size = s.Off
		}
		return err
	}
	s.Off += int64(len(line))
	return nil
}

// copyMapped copies line into a mapping. The newline comes last, so that a
// process killed in between leaves a torn line and no false one. A page that
// the file has lost makes it fail instead of ending the process.
func copyMapped(to, line []byte) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
			err = errors.New("the file was cut or its storage failed")
		}
	}()
	last := copy(to, line[:len(line)-1])
	to[last] = '\n'
	return nil
}

// Intact returns an error if the file is no longer what records are written
// to: cut or unlinked.
func (s *Segment) Intact() error {
	size, links, err := stat(s.File)
	switch {
	case err != nil:
		return err
	case size < s.size:
		return fmt.Errorf("the file was cut to %d bytes by another program", size)
	case links == 0:
		return errors.New("the file was removed by another program")
	}
	return nil
}

// Finish gives back the space, brings the file to disk and unlocks it.
func (s *Segment) Finish() error {
	s.unmap()
	return errors.Join(s.File.Truncate(s.Off), s.File.Sync(), s.File.Close())
}

func (s *Segment) unmap() {
	if s.window != nil {
		unmapSpace(s.window)
		s.window = nil
	}
}
