// Probe is the guest that misbehaves on request. It is built once for each
// runtime and ABI, so that every executor meets the same attacks. Its
// arguments are {"do": [[verb, argument …] …]}; its result is one line of text
// for each verb.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A task is the arguments of one call.
type task struct {
	Do [][]string `json:"do"`
}

// perform does everything that is asked for.
func perform(t task) string {
	var out []string
	for _, step := range t.Do {
		out = append(out, one(step[0], append(step[1:], "", "", "", "")))
	}
	return strings.Join(out, "\n")
}

func one(verb string, a []string) string {
	for _, try := range []func(string, []string) (string, bool){files, links, process, resources, imports} {
		if s, ok := try(verb, a); ok {
			return s
		}
	}
	return "unknown verb " + verb
}

// said is what became of an access, in words that are the same everywhere.
func said(text string, err error) (string, bool) {
	switch {
	case err == nil:
		return text, true
	case errors.Is(err, fs.ErrPermission):
		return "denied", true
	case errors.Is(err, fs.ErrNotExist):
		return "absent", true
	case errors.Is(err, fs.ErrExist):
		return "exists", true
	}
	return "refused: " + err.Error(), true
}

func files(verb string, a []string) (string, bool) {
	switch verb {
	case "read":
		b, err := os.ReadFile(a[0])
		return said(string(b), err)
	case "open":
		return open(a[0], a[1], a[2])
	case "list":
		entries, err := os.ReadDir(a[0])
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		sort.Strings(names)
		return said(strings.Join(names, " "), err)
	case "stat":
		info, err := os.Stat(a[0])
		if err != nil {
			return said("", err)
		}
		return fmt.Sprintf("dir=%v size=%d", info.IsDir(), info.Size()), true
	case "mkdir":
		return said("ok", os.Mkdir(a[0], 0o755))
	case "remove":
		return said("ok", os.Remove(a[0]))
	case "chmod":
		mode, _ := strconv.ParseUint(a[1], 8, 32)
		return said("ok", os.Chmod(a[0], fs.FileMode(mode)))
	case "touch":
		return said("ok", os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)))
	}
	return "", false
}

// open opens path with flags such as "wct" and writes text, if there is any.
func open(path, flags, text string) (string, bool) {
	mode := os.O_RDONLY
	for _, f := range flags {
		mode |= map[rune]int{'w': os.O_WRONLY, 'u': os.O_RDWR, 'c': os.O_CREATE, 't': os.O_TRUNC, 'a': os.O_APPEND, 'x': os.O_EXCL}[f]
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return said("", err)
	}
	defer f.Close()
	if text != "" {
		_, err = f.WriteString(text)
	}
	return said("ok", err)
}

func links(verb string, a []string) (string, bool) {
	switch verb {
	case "rename":
		return said("ok", os.Rename(a[0], a[1]))
	case "symlink":
		return said("ok", os.Symlink(a[0], a[1]))
	case "link":
		return said("ok", os.Link(a[0], a[1]))
	case "readlink":
		return said(os.Readlink(a[0]))
	}
	return "", false
}

var counter int

func process(verb string, a []string) (string, bool) {
	switch verb {
	case "environ":
		env := os.Environ()
		sort.Strings(env)
		return strings.Join(env, " "), true
	case "args":
		return strings.Join(os.Args, " "), true
	case "pwd":
		return said(os.Getwd())
	case "count":
		counter++
		return strconv.Itoa(counter), true
	case "random":
		b := make([]byte, 16)
		_, err := rand.Read(b)
		return said(hex.EncodeToString(b), err)
	case "clock":
		return strconv.FormatBool(time.Now().Year() > 2024), true
	case "say":
		return a[0], true
	case "big":
		n, _ := strconv.Atoi(a[0])
		return strings.Repeat("x", n), true
	case "stderr":
		fmt.Fprintln(os.Stderr, a[0])
		return "ok", true
	case "stdout":
		fmt.Println(a[0])
		return "ok", true
	case "exit":
		n, _ := strconv.Atoi(a[0])
		os.Exit(n)
	case "panic":
		panic(a[0])
	}
	return "", false
}

func resources(verb string, a []string) (string, bool) {
	switch verb {
	case "spin":
		for n := 0; ; n++ {
			counter += n
		}
	case "tree":
		n, _ := strconv.Atoi(a[0])
		return strconv.Itoa(tree(n)), true
	case "sleep":
		d, _ := time.ParseDuration(a[0])
		time.Sleep(d)
		return "awake", true
	case "eat":
		var kept [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
			counter += len(kept)
		}
	case "flood":
		f := map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[a[0]]
		for line := []byte(strings.Repeat("flood ", 1000) + "\n"); ; {
			if _, err := f.Write(line); err != nil {
				return said("", err)
			}
		}
	case "files":
		return hoard(a[0])
	}
	return "", false
}

// tree recurses 2^n times without a loop.
//
//go:noinline
func tree(n int) int {
	if n == 0 {
		return 1
	}
	return tree(n-1) + tree(n-1)
}

// hoard opens path until it cannot, at most 10,000 times.
func hoard(path string) (string, bool) {
	var kept []*os.File
	for range 10_000 {
		f, err := os.Open(path)
		if err != nil {
			for _, f := range kept {
				f.Close()
			}
			return "stopped", true
		}
		kept = append(kept, f)
	}
	return fmt.Sprintf("opened %d", len(kept)), true
}
