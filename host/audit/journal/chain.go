package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strconv"
	"time"
)

// A Chain gives each line its place: its number, its time, the hash of the
// line before it and a checksum of its own. The checksum is what shows damage
// to the newest line, which no other line vouches for yet.
type Chain struct {
	Seq    int64                 // of the last line
	prev   [2 * sha256.Size]byte // its hash, in hex
	boot   string
	second int64
	stamp  [len("2006-01-02T15:04:05")]byte // of second
	buf    []byte
	table  *crc32.Table
}

// NewChain returns the chain of a boot, without lines.
func NewChain(boot string) Chain {
	return Chain{boot: boot, second: -1 << 62, buf: make([]byte, 0, 2048), table: crc32.MakeTable(crc32.Castagnoli)}
}

// What encloses the checksum at the end of every line.
const (
	crcOpen  = `,"crc":"`
	crcClose = `"}`
)

// NewSecond notes the second of now and reports whether it is another one.
func (c *Chain) NewSecond(now time.Time) bool {
	if now.Unix() == c.second {
		return false
	}
	c.second = now.Unix()
	now.UTC().AppendFormat(c.stamp[:0], "2006-01-02T15:04:05")
	return true
}

// Line returns the next line, with its newline. Only Advance makes it count.
func (c *Chain) Line(now time.Time, body []byte) []byte {
	c.NewSecond(now)
	b := append(c.buf[:0], `{"v":1,"seq":`...)
	b = strconv.AppendInt(b, c.Seq+1, 10)
	b = append(b, `,"prev":"`...)
	if c.Seq > 0 {
		b = append(b, c.prev[:]...)
	}
	b = append(b, `","time":"`...)
	b = append(b, c.stamp[:]...)
	b = append(b, '.')
	for nano, unit := now.Nanosecond(), 100_000_000; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(nano/unit%10))
	}
	b = append(b, `Z","boot":"`...)
	b = append(b, c.boot...)
	b = append(b, '"')
	b = append(b, body...)
	b = appendCRC(b, crc32.Checksum(b, c.table))
	c.buf = append(b, '\n')
	return c.buf
}

func appendCRC(b []byte, sum uint32) []byte {
	b = append(b, crcOpen...)
	b = hex.AppendEncode(b, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return append(b, crcClose...)
}

// Check reports whether a line, without its newline, matches its checksum.
func Check(line []byte) error {
	k := len(line) - len(crcOpen) - 8 - len(crcClose)
	if k <= 0 || line[0] != '{' {
		return errors.New("not a line of the log")
	}
	if !bytes.Equal(line[k:], appendCRC(nil, crc32.Checksum(line[:k], crc32.MakeTable(crc32.Castagnoli)))) {
		return errors.New("the line does not match its checksum")
	}
	return nil
}

// Prev returns the hash of the last line, in hex.
func (c *Chain) Prev() string { return string(c.prev[:]) }

// Advance makes line, which was written, the last one of the chain.
func (c *Chain) Advance(line []byte) {
	sum := sha256.Sum256(line[:len(line)-1])
	hex.Encode(c.prev[:], sum[:])
	c.Seq++
}
