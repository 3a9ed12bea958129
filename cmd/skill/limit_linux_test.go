package main

import "golang.org/x/sys/unix"

// limitFiles returns what keeps a running host from making its files larger, and
// takes that back: a disk that is full, and has room again.
func limitFiles(pid int, h *house) (func(full bool), error) {
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		return nil, err
	}
	return func(full bool) {
		h.t.Helper()
		limit := was
		if full {
			limit.Cur = 1
		}
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			h.t.Fatal(err)
		}
	}, nil
}
