//go:build !linux

package main

import "errors"

func limitFiles(int, *house) (func(full bool), error) {
	return nil, errors.New("prlimit is a call of Linux")
}
