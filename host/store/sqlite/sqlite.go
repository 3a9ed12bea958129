// Package sqlite keeps state in one SQLite file that all processes of a user
// share. It survives their being killed. It knows nothing of what the keys
// mean.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// A Store is a store.Store in a file. A write that is canceled while it is
// under way may or may not have been done.
type Store struct {
	path    string
	writing chan struct{} // held by whoever writes: waiting here is fairer than in the file

	mu     sync.Mutex
	db     *database // nil until it is needed
	closed bool
}

// Open returns the Store in the file at path. The file is not touched before
// the first use, which makes it if it is not there and reports what is wrong
// with it. A file that is damaged is never replaced.
func Open(path string) *Store {
	return &Store{path: path, writing: make(chan struct{}, 1)}
}

// use returns the database, opened.
func (s *Store) use(ctx context.Context, op string) (*database, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(op, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: op, What: "the store is closed"}
	}
	if s.db == nil {
		db, err := openDatabase(ctx, s.path)
		if err != nil {
			return nil, s.failed(ctx, op, err)
		}
		s.db = db
	}
	return s.db, nil
}

// Get is store.Store's.
func (s *Store) Get(ctx context.Context, bucket, key string) (value []byte, version int64, err error) {
	const op = "sqlite.Get"
	if err := store.Check(op, bucket, key, nil); err != nil {
		return nil, 0, err
	}
	db, err := s.use(ctx, op)
	if err != nil {
		return nil, 0, err
	}
	err = retry(ctx, func() error {
		return db.get.QueryRowContext(ctx, []byte(bucket), []byte(key)).Scan(&value, &version)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, fmt.Errorf("%s: %w", op, store.ErrAbsent)
	}
	if err != nil {
		return nil, 0, s.failed(ctx, op, err)
	}
	return value, version, nil
}

// Put is store.Store's.
func (s *Store) Put(ctx context.Context, bucket, key string, value []byte, old int64) (int64, error) {
	const op = "sqlite.Put"
	if err := store.Check(op, bucket, key, value); err != nil {
		return 0, err
	}
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	r, err := s.write(ctx, op, func(db *database) (sql.Result, error) {
		switch old {
		case store.Any:
			return db.putAny.ExecContext(ctx, []byte(bucket), []byte(key), value)
		case 0:
			return db.putNew.ExecContext(ctx, []byte(bucket), []byte(key), value)
		}
		return db.putOver.ExecContext(ctx, value, []byte(bucket), []byte(key), old)
	})
	if err != nil {
		return 0, err
	}
	version, err := r.LastInsertId()
	if err != nil {
		return 0, s.failed(ctx, op, err)
	}
	return version, nil
}

// Delete is store.Store's.
func (s *Store) Delete(ctx context.Context, bucket, key string, old int64) error {
	const op = "sqlite.Delete"
	if err := store.Check(op, bucket, key, nil); err != nil {
		return err
	}
	_, err := s.write(ctx, op, func(db *database) (sql.Result, error) {
		if old == store.Any {
			return db.deleteAny.ExecContext(ctx, []byte(bucket), []byte(key))
		}
		return db.deleteOver.ExecContext(ctx, []byte(bucket), []byte(key), old)
	})
	if old == store.Any && errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// write runs one statement. It fails with store.ErrConflict if no row was
// changed.
func (s *Store) write(ctx context.Context, op string, do func(*database) (sql.Result, error)) (sql.Result, error) {
	db, err := s.use(ctx, op)
	if err != nil {
		return nil, err
	}
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return nil, canceled(op, ctx.Err())
	}
	var r sql.Result
	err = retry(ctx, func() (err error) {
		r, err = do(db)
		return err
	})
	if err != nil {
		return nil, s.failed(ctx, op, err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		return nil, s.failed(ctx, op, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: %w", op, store.ErrConflict)
	}
	return r, nil
}

// List is store.Store's.
func (s *Store) List(ctx context.Context, bucket, prefix, after string, n int) ([]store.Item, error) {
	const op = "sqlite.List"
	db, err := s.use(ctx, op)
	if err != nil {
		return nil, err
	}
	var items []store.Item
	err = retry(ctx, func() error {
		items = nil
		return db.scan(ctx, &items, bucket, prefix, after, max(0, n)) // a negative LIMIT is none
	})
	if err != nil {
		return nil, s.failed(ctx, op, err)
	}
	return items, nil
}

// Close gives the file back.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	err := s.db.Close()
	s.db = nil
	if err != nil {
		return s.failed(context.Background(), "sqlite.Close", err)
	}
	return nil
}

// failed says what an error of the database means to its reader.
func (s *Store) failed(ctx context.Context, op string, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return canceled(op, cerr)
	}
	return &sdk.Error{Kind: sdk.Unavailable, Op: op, What: fmt.Sprintf("store %q", s.path), Err: err, Hint: hintFor(err)}
}

func canceled(op string, err error) error {
	return &sdk.Error{Kind: sdk.Canceled, Op: op, What: "the caller went away", Err: err}
}
