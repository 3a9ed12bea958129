package plugin

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestInterpreters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no scripts of this kind")
	}
	real := func(path string) string {
		p, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.WriteFile(loop, []byte("#!"+loop+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	both := func(path string) []string { return slices.Compact([]string{path, real(path)}) }
	env, named := both("/usr/bin/env"), both("/bin/sh")
	searched, err := find("sh")
	if err != nil {
		t.Fatal(err)
	}
	found, self := both(searched), both(script)
	for text, want := range map[string][]string{
		"\x7fELF":                            nil,
		"":                                   nil,
		"#!":                                 nil,
		"#!\n":                               nil,
		"#!/bin/sh":                          nil, // not a line
		"#!/bin/sh\nexit":                    named,
		"#! /bin/sh -e\nexit":                named,
		"#!/usr/bin/env sh\n":                slices.Concat(env, found),
		"#!/usr/bin/env -S A=b sh -e\n":      slices.Concat(env, found),
		"#!/usr/bin/env\n":                   env,
		"#!/usr/bin/env no-such-program\n":   env,
		"#!/no/such/program\n":               nil,
		"#!relative\n":                       nil,
		"#!" + script + "\n":                 slices.Concat(self, named),
		"#!" + loop + "\n":                   both(loop),
		"#!" + strings.Repeat("x", 1<<20):    nil,
		"#!/usr/bin/env " + script + "\n":    slices.Concat(env, self, named),
		"#!/usr/bin/env ../../bin/sh\n":      env,
		"#!/usr/bin/env env env env env x\n": env,
	} {
		got := interpreters(strings.NewReader(text))
		if !slices.Equal(got, want) {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
}
