//go:build !unix

package codedir

import "io/fs"

// Checked is false because who else could write to a directory cannot be told
// from its mode here: no code may be kept.
const Checked = false

// exposed refuses every directory.
func exposed(fs.FileInfo) string { return "cannot be checked on this platform" }
