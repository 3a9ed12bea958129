package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"time"
)

// maxHeads is how many files one boot line names; older boots name the rest.
const maxHeads = 8192

// A Head is the last line of a file, as another file remembers it.
type Head struct {
	File string `json:"file"`
	Hash string `json:"hash,omitempty"` // of the line; "" if there is none
	Seq  int64  `json:"seq"`            // of the line; 0 if there is none, -1 if it cannot be read
	Live bool   `json:"live,omitempty"` // the file was still being written
}

// Heads returns the heads of the newest files of dir. It cuts off the unused
// space of files whose writer died. What it cannot read it names without a
// promise. The caller holds the directory's lock.
func Heads(dir string) ([]Head, error) {
	files, _, err := List(dir)
	if err != nil {
		return nil, err
	}
	files = files[max(0, len(files)-maxHeads):]
	heads := make([]Head, 0, len(files))
	for _, e := range files {
		h, err := headOf(e)
		if err != nil {
			h = Head{File: e.Name, Seq: -1}
		}
		heads = append(heads, h)
	}
	return heads, nil
}

func headOf(e Entry) (Head, error) {
	f, err := os.OpenFile(e.Path, os.O_RDWR, 0)
	if err != nil {
		return Head{}, err
	}
	defer func() { _ = f.Close() }() // and the lock with it
	dead, err := tryLock(f, true)
	if err != nil {
		return Head{}, err
	}
	end, err := FindEnd(f)
	if err != nil {
		return Head{}, err
	}
	if dead && end.Size > end.data {
		if err := f.Truncate(end.data); err != nil {
			return Head{}, err
		}
	}
	return end.Head(e.Name, !dead), nil
}

// An End is what the end of a file says.
type End struct {
	Size  int64  // of the file
	Lines int64  // where the last whole line ends
	Line  []byte // the last whole line, without newline; nil if there is none
	Seq   int64  // of Line
	Time  time.Time
	Err   error // why Seq and Time are not known

	data int64 // where the bytes that are not NUL end
}

// Head returns the head that the end makes.
func (d End) Head(name string, live bool) Head {
	h := Head{File: name, Seq: d.Seq, Live: live}
	if d.Err != nil {
		h.Seq = -1
	}
	if d.Line != nil {
		sum := sha256.Sum256(d.Line)
		h.Hash = hex.EncodeToString(sum[:])
	}
	return h
}

// FindEnd reads the end of a file, backwards. A last line that is damaged is
// told by End.Err.
func FindEnd(f *os.File) (d End, err error) {
	if d.Size, _, err = stat(f); err != nil {
		return d, err
	}
	buf := make([]byte, 16<<10)
	for d.data = d.Size; d.data > 0; {
		from := max(0, d.data-int64(len(buf)))
		n, err := f.ReadAt(buf[:d.data-from], from)
		if n < int(d.data-from) {
			return d, err
		}
		n = len(bytes.TrimRight(buf[:n], "\x00"))
		d.data = from + int64(n)
		if n > 0 {
			break
		}
	}
	for want := int64(len(buf)); d.data > 0; want *= 4 {
		from := max(0, d.data-want)
		b := make([]byte, d.data-from)
		if n, err := f.ReadAt(b, from); n < len(b) {
			return d, err
		}
		last := bytes.LastIndexByte(b, '\n')
		first := bytes.LastIndexByte(b[:max(0, last)], '\n')
		if last >= 0 && (first >= 0 || from == 0) {
			d.Line, d.Lines = b[first+1:last], from+int64(last)+1
			d.Seq, d.Time, d.Err = place(d.Line)
			return d, nil
		}
		if from == 0 {
			return d, nil
		}
		if want > maxLine {
			d.Err = ErrLong
			return d, nil
		}
	}
	return d, nil
}

// place returns where a line says that it stands.
func place(line []byte) (seq int64, at time.Time, err error) {
	if err := Check(line); err != nil {
		return 0, at, err
	}
	var p struct {
		Seq  int64     `json:"seq"`
		Time time.Time `json:"time"`
	}
	err = json.Unmarshal(line, &p)
	return p.Seq, p.Time, err
}
