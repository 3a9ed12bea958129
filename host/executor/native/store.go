package native

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/skillhost/skill/sdk"
)

// A store is the directory of one host's private directories. It is locked as
// long as the host lives, so that the next host can tell which ones nobody
// will ever remove.
type store struct {
	root string
	lock *os.File
	n    atomic.Int64
}

const (
	storePrefix   = "skill-native-"
	lockName      = "lock"
	socketsPrefix = "sk-"
	socketsName   = "sockets" // of a guest: a link to its directory for sockets, which is elsewhere
)

// newStore makes a store in dir, "" being os.TempDir(), and removes those of
// hosts that were killed.
func newStore(dir string) (*store, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the root of a view is a real path
		return nil, err
	}
	sweep(dir)
	s := new(store)
	if s.root, err = os.MkdirTemp(dir, storePrefix); err != nil { // mode 0700
		return nil, err
	}
	// The lock gets its name when it is held: whoever finds the name and can
	// take the lock knows that its owner is gone.
	fresh := filepath.Join(s.root, lockName+".new")
	if s.lock, err = os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_, err = tryLock(s.lock)
	}
	if err == nil {
		err = os.Rename(fresh, filepath.Join(s.root, lockName))
	}
	if err != nil {
		_ = s.close() // the error that matters is the first
		return nil, err
	}
	return s, nil
}

// sweep removes the stores in dir whose hosts are gone. It is only tidying up:
// what fails is left for the next time.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), storePrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !ours(path) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if free, err := tryLock(lock); err == nil && free {
			sweepSockets(path)
			_ = removeTree(path)
		}
		_ = lock.Close()
	}
}

// sweepSockets removes the directories for sockets of a store's guests. Of a
// store whose path reads like a pattern it finds none.
func sweepSockets(store string) {
	links, _ := filepath.Glob(filepath.Join(store, "*", socketsName))
	for _, link := range links {
		dir, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(filepath.Base(dir), socketsPrefix) && ours(dir) {
			_ = removeTree(dir)
		}
	}
}

// dir makes a guest's directory: "tmp" in it, and with etc the files that stand
// in for the host's in "etc".
func (s *store) dir(etc bool) (string, error) {
	base := filepath.Join(s.root, strconv.FormatInt(s.n.Add(1), 36))
	err := os.Mkdir(base, 0o700)
	if err == nil {
		err = os.Mkdir(filepath.Join(base, "tmp"), 0o700)
	}
	if err == nil && etc {
		err = writeEtc(filepath.Join(base, "etc"))
	}
	if err != nil {
		_ = removeTree(base)
		return "", &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "private directory", Err: err}
	}
	return base, nil
}

// writeEtc makes dir with the little that programs ask about their user and
// their machine. The host's own files would name everybody who has an account.
func writeEtc(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	for name, text := range map[string]string{
		"passwd": "user:x:" + uid + ":" + gid + "::" + tmpPath + ":/bin/sh\n",
		"group":  "user:x:" + gid + ":\n",
		"hosts":  "127.0.0.1 localhost\n::1 localhost\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o444); err != nil {
			return err
		}
	}
	return nil
}

// close removes the store and all that is in it.
func (s *store) close() error {
	err := removeTree(s.root)
	if s.lock != nil {
		_ = s.lock.Close() // it was never written to
	}
	return err
}
