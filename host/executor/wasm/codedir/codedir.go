// Package codedir checks the directory that compiled code is kept in and
// executed from: nobody else may be able to write there. It does not know what
// code, or who keeps it.
package codedir

import (
	"fmt"
	"os"

	"github.com/skillhost/skill/sdk"
)

// Secure makes dir with mode 0700, or checks that it is the user's own and
// closed to others. The error has kind Unavailable. It always fails where
// Checked is false.
func Secure(dir string) error {
	fail := func(what string, err error, hint string) error {
		return &sdk.Error{Kind: sdk.Unavailable, Op: "codedir.Secure", What: fmt.Sprintf("cache directory %q: %s", dir, what), Err: err, Hint: hint}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail("cannot be made", err, "")
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fail("cannot be read", err, "")
	case !info.IsDir():
		return fail("is not a directory", nil, "")
	}
	if why := exposed(info); why != "" {
		return fail(why, nil, "compiled code is executed from there: it must be your own with mode 0700")
	}
	return nil
}
