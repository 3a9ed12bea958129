package audit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/skillhost/skill/host/audit/journal"
	"github.com/skillhost/skill/sdk"
)

// A Record is one line as it was read. Its JSON form is that of the line, and
// where it was found.
type Record struct {
	Version  int           `json:"v"`
	Seq      int64         `json:"seq"`  // from 1, through all files of a boot
	Prev     string        `json:"prev"` // SHA-256 of the line before, in hex; "" in the first
	Time     time.Time     `json:"time"`
	Boot     string        `json:"boot"`
	Type     Type          `json:"type"`
	Call     string        `json:"call,omitempty"`
	Parent   string        `json:"parent,omitempty"`
	Trace    string        `json:"trace,omitempty"`
	Caller   string        `json:"caller,omitempty"`
	Client   string        `json:"client,omitempty"`
	Session  string        `json:"session,omitempty"`
	Skill    string        `json:"skill,omitempty"`
	Digest   string        `json:"digest,omitempty"`
	Tool     string        `json:"tool,omitempty"`
	Runtime  string        `json:"runtime,omitempty"`
	Level    string        `json:"level,omitempty"`
	Decision string        `json:"decision,omitempty"`
	Kind     sdk.Kind      `json:"kind,omitempty"`
	Error    string        `json:"error,omitempty"`
	Denied   *sdk.Denial   `json:"denied,omitempty"`
	Access   string        `json:"access,omitempty"`
	Target   string        `json:"target,omitempty"`
	Count    int           `json:"count,omitempty"`
	Params   *Params       `json:"params,omitempty"`
	Duration time.Duration `json:"duration,omitempty"` // ns
	Bytes    int64         `json:"bytes,omitempty"`
	Note     string        `json:"note,omitempty"`
	Origin   *Origin       `json:"origin,omitempty"` // boot lines
	CRC      string        `json:"crc"`              // CRC-32C of the line up to this member, in hex
	File     string        `json:"file,omitempty"`
	Line     int           `json:"line,omitempty"`
}

// Params is what is known of a call's arguments.
type Params struct {
	Shape   []string        `json:"shape,omitempty"`  // "PATH:TYPE:SIZE", mode "shape"
	Values  json.RawMessage `json:"values,omitempty"` // mode "redacted"
	Partial bool            `json:"partial,omitempty"`
	Size    int             `json:"size,omitempty"` // of the arguments' JSON, in bytes
	Digest  string          `json:"digest"`         // HMAC-SHA256 of it under the user's key, first 16 bytes in hex
}

// A Head is the last line of a file, as another file remembers it.
type Head = journal.Head

// An Origin is what a boot line says of its writer and of the other files.
type Origin struct {
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid"`
	User    string `json:"user,omitempty"`
	Heads   []Head `json:"heads,omitempty"`   // of the files that were there
	Removed []Head `json:"removed,omitempty"` // of files that Retain removed
}

// decode reads a line and checks that it is whole.
func decode(line []byte) (r Record, err error) {
	if err := journal.Check(line); err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("not a line of the log: %w", err)
	}
	if r.Version != 1 {
		return Record{}, fmt.Errorf("a line of version %d, but this program knows version 1", r.Version)
	}
	return r, nil
}
