package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	suffix   = ".jsonl"
	lockName = ".lock" // held while files are begun or removed
	nameTime = "20060102T150405.000000000Z"
)

// An Entry is one file of the log by its name, "TIME-BOOT.jsonl" or, from the
// second part of a boot on, "TIME-BOOT.PART.jsonl". All parts carry the time of
// the boot.
type Entry struct {
	Name string
	Path string
	At   time.Time // when the boot began
	Boot string
	Part int // from 1
}

// FileName returns the name of one part of a boot.
func FileName(at time.Time, boot string, part int) string {
	name := at.Format(nameTime) + "-" + boot
	if part > 1 {
		name += "." + strconv.Itoa(part)
	}
	return name + suffix
}

func parseName(name string) (e Entry, ok bool) {
	stem, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return e, false
	}
	at, boot, ok := strings.Cut(stem, "-")
	if !ok {
		return e, false
	}
	e = Entry{Name: name, Part: 1}
	if id, part, ok := strings.Cut(boot, "."); ok {
		e.Part, _ = strconv.Atoi(part)
		boot = id
	}
	e.Boot = boot
	var err error
	e.At, err = time.Parse(nameTime, at)
	return e, err == nil && FileName(e.At, e.Boot, e.Part) == name
}

// List returns the files of the log from the oldest to the newest boot, and
// the other names that end like theirs.
func List(dir string) (files []Entry, foreign []string, err error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range found {
		e, ok := parseName(d.Name())
		switch {
		case ok && d.Type().IsRegular():
			e.Path = filepath.Join(dir, e.Name)
			files = append(files, e)
		case strings.HasSuffix(d.Name(), suffix):
			foreign = append(foreign, d.Name())
		}
	}
	slices.SortFunc(files, func(a, b Entry) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		if c := strings.Compare(a.Boot, b.Boot); c != 0 {
			return c
		}
		return a.Part - b.Part
	})
	return files, foreign, nil
}

// PrivateDir makes dir, for its owner alone.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return private(dir, 0o700)
}

// LockDir keeps others from beginning or removing files.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := acquire(f, true); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// Live reports whether the file's writer still runs.
func Live(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	free, err := tryLock(f, false)
	return !free && err == nil, errors.Join(err, f.Close())
}

// Alive reports whether the process of a boot still runs and writes to dir.
func Alive(dir, boot string) (bool, error) {
	files, _, err := List(dir)
	if err != nil {
		return false, err
	}
	for _, e := range files {
		if e.Boot != boot {
			continue
		}
		alive, err := Live(e.Path)
		if alive || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return alive, err
		}
	}
	return false, nil
}
