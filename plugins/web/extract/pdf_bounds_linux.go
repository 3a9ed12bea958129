package extract

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bindPDF bounds what this process may use.
func bindPDF(seconds uint64) error {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(b)) // size, resident, shared, text, lib, data
	if len(fields) < 6 {
		return os.ErrInvalid
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	if err != nil {
		return err
	}
	most := pages*uint64(os.Getpagesize()) + pdfMemory
	for resource, n := range map[int]uint64{unix.RLIMIT_DATA: most, unix.RLIMIT_CPU: seconds} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		n = min(n, now.Max)
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	return nil
}
