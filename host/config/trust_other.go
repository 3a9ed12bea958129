//go:build !unix && !windows

package config

import (
	"io/fs"
	"os"
)

// distrust distrusts everything: who may write a file is not known here.
func distrust(*os.File, fs.FileMode) string {
	return "who can write to it is not known on this platform"
}

// exposed distrusts everything, too.
func exposed(*os.File) string { return "who can read it is not known on this platform" }
