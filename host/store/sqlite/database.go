package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/skillhost/skill/host/store"
)

// appID marks the file as ours ("skil").
const appID = 0x736b696c

// migrations lead from each version of the schema to the next; the number of
// those that were done is the file's user_version. They are never edited.
//
// Names are blobs, because the order of keys is that of their bytes. A version
// is a row id that SQLite never gives out twice.
var migrations = []string{
	`CREATE TABLE item (
		version INTEGER PRIMARY KEY AUTOINCREMENT,
		bucket  BLOB NOT NULL,
		key     BLOB NOT NULL,
		value   BLOB NOT NULL,
		UNIQUE (bucket, key)
	) STRICT`,
}

// Waiting for other processes.
const (
	patience    = 10 * time.Second
	busyTimeout = 100 // ms, after which SQLite asks back whether to go on
)

// A database is the open file with the statements that are used on it.
type database struct {
	*sql.DB
	get, list               *sql.Stmt
	putAny, putNew, putOver *sql.Stmt
	deleteAny, deleteOver   *sql.Stmt
}

// openDatabase opens the file, and makes it if neither it nor a trace of it is
// there.
func openDatabase(ctx context.Context, path string) (*database, error) {
	if err := prepareFile(ctx, path); err != nil {
		return nil, err
	}
	db, err := connect(path)
	if err != nil {
		return nil, err
	}
	d := &database{DB: db}
	if err := retry(ctx, func() error { return check(ctx, db) }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for stmt, query := range map[**sql.Stmt]string{
		&d.get:  `SELECT value, version FROM item WHERE bucket = ? AND key = ?`,
		&d.list: `SELECT key, value, version FROM item WHERE bucket = ?1 AND key >= ?2 AND key > ?3 AND (?4 IS NULL OR key < ?4) ORDER BY key LIMIT ?5`,

		&d.putAny:     `REPLACE INTO item (bucket, key, value) VALUES (?, ?, ?)`,
		&d.putNew:     `INSERT INTO item (bucket, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
		&d.putOver:    `REPLACE INTO item (value, bucket, key) SELECT ?, bucket, key FROM item WHERE bucket = ? AND key = ? AND version = ?`,
		&d.deleteAny:  `DELETE FROM item WHERE bucket = ? AND key = ?`,
		&d.deleteOver: `DELETE FROM item WHERE bucket = ? AND key = ? AND version = ?`,
	} {
		if err := retry(ctx, func() (err error) { *stmt, err = db.PrepareContext(ctx, query); return err }); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return d, nil
}

// connect returns connections to a file that is there. They never make one.
func connect(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: fmt.Sprintf(
		"mode=rw&_pragma=busy_timeout(%d)&_pragma=synchronous(NORMAL)&_pragma=trusted_schema(0)", busyTimeout)}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path // C:/…
	}
	c, err := sqlite.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(4)
	return db, nil
}

// prepareFile sees to it that the file is there, is its owner's alone and is
// not empty. It does not open a file that is there: closing it again would
// drop the locks that this process holds on it elsewhere.
func prepareFile(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path + "-wal"); err == nil {
			return errors.New("the file is gone, but its journal is still there")
		}
		if err := create(ctx, path); err != nil {
			return fmt.Errorf("cannot be made: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	if info.Size() == 0 {
		return errors.New("the file is empty, which it never is by itself")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(path, 0o600)
	}
	return nil
}

// create makes the file under another name and puts it in place whole, so that
// nobody ever sees half of one. Whoever comes first wins.
func create(ctx context.Context, path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*.db") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Close(); err != nil {
		return err
	}
	db, err := connect(f.Name())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA journal_mode = WAL", appID))
	if err == nil {
		err = check(ctx, db)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// check makes sure that the file is ours and brings its schema up to date.
func check(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var app int
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if app != appID {
		return errors.New("it is the database of another program")
	}
	version, err := schemaVersion(ctx, conn)
	if err != nil || version == len(migrations) {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := migrate(ctx, conn); err != nil {
		_, rerr := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rerr)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// migrate does the migrations that are missing, in a transaction.
func migrate(ctx context.Context, conn *sql.Conn) error {
	version, err := schemaVersion(ctx, conn) // another process may have been faster
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if _, err := conn.ExecContext(ctx, migrations[version]); err != nil {
			return fmt.Errorf("migration %d: %w", version+1, err)
		}
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1)); err != nil {
			return fmt.Errorf("migration %d: %w", version+1, err)
		}
	}
	return nil
}

func schemaVersion(ctx context.Context, conn *sql.Conn) (version int, err error) {
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	if version > len(migrations) {
		return 0, fmt.Errorf("its format %d is of a newer version of this program, which knows format %d", version, len(migrations))
	}
	return version, nil
}

// scan appends the keys of a List to items.
func (d *database) scan(ctx context.Context, items *[]store.Item, bucket, prefix, after string, n int) error {
	rows, err := d.list.QueryContext(ctx, []byte(bucket), []byte(prefix), []byte(after), beyond(prefix), n)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var it store.Item
		var key []byte
		if err := rows.Scan(&key, &it.Value, &it.Version); err != nil {
			return err
		}
		it.Key = string(key)
		*items = append(*items, it)
	}
	return rows.Err()
}

// beyond returns the least key that sorts after all keys with the prefix, or
// nil if there is none.
func beyond(prefix string) []byte {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return nil
	}
	end[len(end)-1]++
	return end
}

// retry does it again for as long as another process holds the file.
func retry(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		if code(err) != codes.SQLITE_BUSY || ctx.Err() != nil || time.Since(start) > patience {
			return err
		}
	}
}

// code returns SQLite's primary result code of err, or 0.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// hintFor says what helps against an error.
func hintFor(err error) string {
	switch code(err) {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return "the file is damaged: restore it from a backup, or move it away to begin with an empty store"
	case codes.SQLITE_BUSY:
		return "another process holds it: retry later"
	case codes.SQLITE_FULL:
		return "the disk is full"
	case codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_READONLY:
		return "the file and its folder must be writable by this user"
	}
	return ""
}
