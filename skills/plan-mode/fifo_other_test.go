//go:build !linux

package main

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
