package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// HTTPTLS are the files with which the server speaks TLS; none if it does not.
type HTTPTLS struct {
	Cert string
	Key  string
}

// pemFile is the set of a setting that names a file.
func pemFile(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' }) {
			return errors.New("want the name of a file")
		}
		*field(c) = v
		return nil
	}
}

// maxKey is more than any key has, in bytes.
const maxKey = 1 << 20

// ReadKey reads the file of a private key. One that others can read, or that
// another user than root owns, is refused: what is in it is no secret.
func ReadKey(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, Op: "http.tls_key", What: fmt.Sprintf("%q", name), Err: err}
	}
	defer f.Close()
	if why := exposed(f); why != "" {
		return nil, &sdk.Error{Kind: sdk.Denied, Op: "http.tls_key", What: fmt.Sprintf("%q: %s", name, why), Hint: "a key is its server's alone: chmod 600 the file, and make a new key if others may have read it"}
	}
	return io.ReadAll(io.LimitReader(f, maxKey))
}

// openFile opens a regular file: opening a pipe would wait for a writer.
func openFile(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(name)
}
