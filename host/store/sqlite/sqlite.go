// Package sqlite keeps a store in an SQLite file, which all hosts of a user
// share. It knows nothing of what is kept.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// schema is the first and so far only version of the tables. user_version
// counts them.
const (
	version = 1
	schema  = `
CREATE TABLE kv (
	bucket  BLOB NOT NULL,
	key     BLOB NOT NULL,
	value   BLOB NOT NULL,
	version INTEGER NOT NULL,
	PRIMARY KEY (bucket, key)
) WITHOUT ROWID;
CREATE TABLE counter (n INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
PRAGMA user_version = 1;`
)

// A Store is a store.Store in a file.
type Store struct {
	file string

	mu     sync.Mutex
	db     *sql.DB
	closed bool
}

var _ store.Store = (*Store)(nil)

// Open returns the Store in file. The file is opened, and made if need be, at
// the first use, so that a host which needs no state does not wait for it.
func Open(file string) *Store { return &Store{file: file} }

// open returns the database. A failure is tried again at the next use.
func (s *Store) open(ctx context.Context) (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.Closed()
	}
	if s.db != nil {
		return s.db, nil
	}
	// SQLite would make the file readable by others.
	f, err := os.OpenFile(s.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, s.unavailable(err)
	}
	if err := f.Close(); err != nil {
		return nil, s.unavailable(err)
	}
	name := "file:" + (&url.URL{Path: s.file}).EscapedPath() + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, s.unavailable(err)
	}
	db.SetMaxOpenConns(4)
	if err := s.migrate(ctx, db); err != nil {
		return nil, errors.Join(s.unavailable(err), db.Close())
	}
	s.db = db
	return db, nil
}

// migrate brings the tables up to date, one process at a time.
func (s *Store) migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a Commit it has nothing to do
	var have int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	switch {
	case have > version:
		return fmt.Errorf("it was written by a newer version of skill (tables %d, known %d)", have, version)
	case have == version:
		return nil
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	return tx.Commit()
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, bucket, key string) (value []byte, version int64, err error) {
	if err := store.Check(bucket, key, nil); err != nil {
		return nil, 0, err
	}
	db, err := s.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT value, version FROM kv WHERE bucket = ? AND key = ?", []byte(bucket), []byte(key)).Scan(&value, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, store.ErrAbsent
	}
	return value, version, s.wrap(ctx, err)
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, bucket, key string, value []byte, old int64) (now int64, err error) {
	if err := store.Check(bucket, key, value); err != nil {
		return 0, err
	}
	if value == nil {
		value = []byte{}
	}
	err = s.change(ctx, bucket, key, old, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "UPDATE counter SET n = n + 1 RETURNING n").Scan(&now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO kv VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value, version = excluded.version",
			[]byte(bucket), []byte(key), value, now)
		return err
	})
	if err != nil {
		return 0, err
	}
	return now, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, bucket, key string, old int64) error {
	if err := store.Check(bucket, key, nil); err != nil {
		return err
	}
	if old == 0 {
		return store.ErrConflict // what is absent cannot be deleted
	}
	return s.change(ctx, bucket, key, old, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM kv WHERE bucket = ? AND key = ?", []byte(bucket), []byte(key))
		return err
	})
}

// change runs do in a transaction if the key's version is still old.
func (s *Store) change(ctx context.Context, bucket, key string, old int64, do func(*sql.Tx) error) error {
	db, err := s.open(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // takes the write lock at once
	if err != nil {
		return s.wrap(ctx, err)
	}
	defer tx.Rollback() //nolint:errcheck // after a Commit it has nothing to do
	if old != store.Any {
		var now int64
		err := tx.QueryRowContext(ctx, "SELECT version FROM kv WHERE bucket = ? AND key = ?", []byte(bucket), []byte(key)).Scan(&now)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return s.wrap(ctx, err)
		}
		if now != old {
			return store.ErrConflict
		}
	}
	if err := do(tx); err != nil {
		return s.wrap(ctx, err)
	}
	return s.wrap(ctx, tx.Commit())
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, bucket, prefix, after string, n int) (items []store.Item, err error) {
	db, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT key, value, version FROM kv WHERE bucket = ? AND key >= ? AND key > ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?",
		[]byte(bucket), []byte(prefix), []byte(after), len(prefix), []byte(prefix), max(n, 0))
	if err != nil {
		return nil, s.wrap(ctx, err)
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		var i store.Item
		if err := rows.Scan(&key, &i.Value, &i.Version); err != nil {
			return nil, s.wrap(ctx, err)
		}
		i.Key = string(key)
		items = append(items, i)
	}
	return items, s.wrap(ctx, rows.Err())
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}

// wrap gives err a kind. A context's error stays what it is.
func (s *Store) wrap(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.unavailable(err)
}

func (s *Store) unavailable(err error) error {
	hint := ""
	var se *sqlite.Error
	if errors.As(err, &se) && (se.Code()&0xff == lib.SQLITE_CORRUPT || se.Code()&0xff == lib.SQLITE_NOTADB) {
		hint = "the file is damaged: move it away to start afresh, or restore it"
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: "store", What: s.file, Err: err, Hint: hint}
}
