package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/audit/redact"
)

// Bounds of the fields of a line, in bytes as encoded. The line of an end
// stays below endRoom with all of its fields full.
const (
	maxID     = 128
	maxCaller = 512
	maxText   = 1024 // Error, Target
	maxPlace  = 256  // the file and the rule of a denial
	maxNote   = 512
	maxValues = 4096 // parameters in mode "redacted"
)

// An encoder turns Events into the part of a line that does not depend on the
// lines before it. Its buffers are reused.
type encoder struct {
	buf      []byte
	mac      hash.Hash
	sum      [sha256.Size]byte
	values   bool
	redactor redact.Redactor
}

func newEncoder(key []byte, values bool) *encoder {
	return &encoder{buf: make([]byte, 0, 1024), mac: hmac.New(sha256.New, key), values: values}
}

// encode returns `,"type":…` and all that follows but the closing brace. The
// result is valid until the next encode.
func (n *encoder) encode(e *Event) []byte {
	n.buf = n.buf[:0]
	n.field(`,"type":`, string(e.Type), maxID)
	n.field(`,"call":`, e.Call, maxID)
	n.field(`,"parent":`, e.Parent, maxID)
	if isTrace(e.Trace) {
		n.field(`,"trace":`, e.Trace, maxID)
	} else {
		n.text(`,"trace":`, e.Trace, maxID)
	}
	n.field(`,"caller":`, e.Caller, maxCaller)
	n.text(`,"client":`, e.Client, maxID)
	n.field(`,"session":`, e.Session, maxID)
	n.field(`,"skill":`, e.Skill, maxID)
	n.field(`,"digest":`, e.Digest, maxID)
	n.text(`,"tool":`, e.Tool, maxID)
	n.field(`,"runtime":`, e.Runtime, maxID)
	n.field(`,"level":`, e.Level, maxID)
	n.field(`,"decision":`, e.Decision, maxID)
	n.field(`,"kind":`, string(e.Kind), maxID)
	n.text(`,"error":`, e.Error, maxText)
	n.denied(e)
	n.field(`,"access":`, e.Access, maxID)
	n.text(`,"target":`, e.Target, maxText)
	if e.Count > 1 {
		n.number(`,"count":`, int64(e.Count))
	}
	if e.Params != nil {
		n.params(e.Params)
	}
	n.number(`,"duration":`, int64(e.Duration))
	n.number(`,"bytes":`, e.Bytes)
	n.text(`,"note":`, e.Note, maxNote)
	return n.buf
}

// field writes a string that the host chose. name is the member's, with what
// encloses it: `,"call":`.
func (n *encoder) field(name, value string, limit int) {
	if value != "" {
		n.buf = append(n.buf, name...)
		n.buf = redact.AppendQuoted(n.buf, value, limit)
	}
}

// text writes a string that a guest or a client had a hand in.
func (n *encoder) text(name, value string, limit int) {
	if value != "" {
		n.field(name, n.redactor.Text(value, limit), limit)
	}
}

// isTrace reports whether s is made as a traceparent is, which saves looking
// for secrets in it on every call.
func isTrace(s string) bool {
	return len(s) == 55 && strings.Trim(s, "0123456789abcdef-") == ""
}

func (n *encoder) number(name string, value int64) {
	if value != 0 {
		n.buf = append(n.buf, name...)
		n.buf = strconv.AppendInt(n.buf, value, 10)
	}
}

// denied writes who refused, in the form of sdk.Denial.
func (n *encoder) denied(e *Event) {
	d := e.Denied
	if d == nil {
		return
	}
	n.buf = append(n.buf, `,"denied":{"capability":`...)
	n.buf = redact.AppendQuoted(n.buf, d.Capability, maxID)
	n.text(`,"resource":`, d.Resource, maxNote)
	n.field(`,"layer":`, d.Layer, maxID)
	n.field(`,"file":`, d.File, maxPlace)
	n.number(`,"line":`, int64(d.Line))
	n.text(`,"allow":`, d.Allow, maxPlace)
	n.buf = append(n.buf, '}')
}

// params writes what may be known of the arguments: their shape, or their
// values without secrets, and a digest that tells equal arguments without
// giving short ones away to who guesses.
func (n *encoder) params(raw []byte) {
	var whole bool
	if n.values {
		n.buf = append(n.buf, `,"params":{"values":`...)
		n.buf, whole = n.redactor.AppendValues(n.buf, raw, maxValues)
	} else {
		n.buf = append(n.buf, `,"params":{"shape":`...)
		n.buf, whole = n.redactor.AppendShape(n.buf, raw)
	}
	if !whole {
		n.buf = append(n.buf, `,"partial":true`...)
	}
	n.number(`,"size":`, int64(len(raw)))
	n.buf = append(n.buf, `,"digest":"`...)
	n.mac.Reset()
	n.mac.Write(raw)
	n.buf = hex.AppendEncode(n.buf, n.mac.Sum(n.sum[:0])[:16])
	n.buf = append(n.buf, '"', '}')
}

// closing returns the body of a close line.
func closing(note string) []byte {
	n := encoder{}
	n.field(`,"type":`, string(TypeClose), maxID)
	n.field(`,"note":`, note, maxNote)
	return n.buf
}
