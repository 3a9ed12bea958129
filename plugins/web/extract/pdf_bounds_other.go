//go:build !linux

package extract

import "runtime/debug"

// bindPDF bounds what this process may use as far as that can be done here.
func bindPDF(uint64) error {
	debug.SetMemoryLimit(pdfMemory)
	return nil
}
