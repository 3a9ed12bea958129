// Package certificate reads the certificate of a server and its key, and reads
// them again when their files change: certificates are replaced more often than
// servers are started. It does not know who may read a key, or what is said over
// a connection.
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A Source says where a certificate comes from.
type Source struct {
	Cert    string                            // file with the certificate and those of its issuers, in PEM
	Key     string                            // file with the key, in PEM
	ReadKey func(name string) ([]byte, error) // reads Key, or refuses what is no secret
	Failed  func(error)                       // is told, once, what is wrong with files that have changed
}

// A Pair is a certificate and its key, as they are now.
type Pair struct {
	s     Source
	every time.Duration // how often the files are looked at, while there are connections

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	stamp  stamp
	failed string // what Failed was told last
}

const (
	lookEvery = time.Second
	settled   = 2 * time.Second // after which a file's time tells it from one that is written now
	maxPEM    = 1 << 20         // more than any chain has, in bytes
)

// Open reads the files of s. Later it is enough that they are replaced: until
// both fit together again, the certificate is the old one.
func Open(s Source) (*Pair, error) {
	p := &Pair{s: s, every: lookEvery}
	if err := p.read(); err != nil {
		return nil, err
	}
	p.looked = time.Now()
	return p, nil
}

// Config is for servers: TLS 1.2 or later, HTTP/1.1.
func (p *Pair) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.current(), nil },
	}
}

// current returns the certificate, which it reads again if a file has changed.
func (p *Pair) current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.looked) < p.every {
		return p.pair
	}
	p.looked = now
	if p.stamp.known() && p.stamp == p.s.look() {
		return p.pair
	}
	err := p.read()
	switch {
	case err == nil:
		p.failed = ""
	case err.Error() != p.failed:
		p.failed = err.Error()
		p.s.Failed(err)
	}
	return p.pair
}

// read reads the files. What is wrong with them changes nothing.
func (p *Pair) read() error {
	stamp := p.s.look() // before reading: what is written meanwhile is read the next time
	chain, err := readFile(p.s.Cert)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, Op: "http.tls_cert", What: fmt.Sprintf("%q", p.s.Cert), Err: err}
	}
	key, err := p.s.ReadKey(p.s.Key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return &sdk.Error{Kind: sdk.Invalid, Op: "http.tls_cert", What: fmt.Sprintf("%q and %q", p.s.Cert, p.s.Key), Err: err, Hint: "want a certificate and its own key, both in PEM"}
	}
	p.pair, p.stamp = &pair, stamp
	return nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPEM))
}

// A stamp tells files from what they were.
type stamp [2]struct {
	size int64
	time int64 // of the last change, in nanoseconds since 1970; 0 if that does not tell
}

// look returns the stamp of both files.
func (s *Source) look() (out stamp) {
	for i, name := range []string{s.Cert, s.Key} {
		info, err := os.Stat(name)
		if err != nil || time.Since(info.ModTime()) < settled {
			continue
		}
		out[i].size, out[i].time = info.Size(), info.ModTime().UnixNano()
	}
	return out
}

// known reports whether both files can be told from others.
func (s stamp) known() bool { return s[0].time != 0 && s[1].time != 0 }
