package rootfs

import (
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/capability"
)

// denied yields the paths that some layer denies, and whether reading is.
func (f *FS) denied(yield func(pattern string, read bool) bool) {
	layers := f.grant.Layers()
	for i := range layers {
		for j := range layers[i].Deny {
			if d := &layers[i].Deny[j]; d.Kind == capability.Filesystem && !yield(d.Pattern, d.Verb == capability.Read) {
				return
			}
		}
	}
}

// named returns target, or, if that is another spelling of something denied,
// the name under which it is denied. A name that is to be made is one already
// if it differs in case alone: whether the denied one exists is not looked at,
// and so not told.
func (f *FS) named(target string, create bool) string {
	for pattern := range f.denied {
		if capability.Beneath(target, pattern) {
			return target
		}
		prefix, ok := cut(target, strings.Count(pattern, "/"))
		if ok && mayBe(prefix, pattern) && (create && strings.EqualFold(prefix, pattern) || f.same(prefix, pattern)) {
			return pattern + target[len(prefix):]
		}
	}
	return target
}

// shields reports whether something is denied at or beneath target, so that
// moving or removing target as a whole would reach it, and what. Nor may a
// guest make anything but a directory of that name: whoever looks for what is
// denied would find it beneath a link of the guest's.
func (f *FS) shields(target string) (string, bool) {
	for pattern := range f.denied {
		prefix, ok := cut(pattern, strings.Count(target, "/"))
		if ok && (prefix == target || mayBe(prefix, target) && (strings.EqualFold(prefix, target) || f.same(prefix, target))) {
			return pattern, true
		}
	}
	return "", false
}

// hides returns the names in the directory target that a listing leaves out.
func (f *FS) hides(target string) (names []string) {
	for pattern, read := range f.denied {
		if read && pattern != "/" && parent(pattern) == target {
			names = append(names, last(pattern))
		}
	}
	return names
}

// cut returns the part of target that has n slashes.
func cut(target string, n int) (string, bool) {
	for i := range len(target) {
		if target[i] == '/' {
			if n--; n < 0 {
				return target[:i], true
			}
		}
	}
	return target, n == 0
}

// mayBe reports whether two paths with the same number of names could be one
// on a file system that ignores case, normalisation or invisible characters,
// or that knows short names. Whether they are is for FS.same to say.
func mayBe(a, b string) bool {
	for a != "" || b != "" {
		x, restA, _ := strings.Cut(a, "/")
		y, restB, _ := strings.Cut(b, "/")
		if x != y && !strings.EqualFold(x, y) && isASCII(x) && isASCII(y) &&
			!(runtime.GOOS == "windows" && strings.Contains(x+y, "~")) {
			return false
		}
		a, b = restA, restB
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// same reports whether two targets, one of them granted, exist and are one file. It records nothing, and nothing of it but a refusal is told.
func (f *FS) same(a, b string) bool {
	switch {
	case a == b:
		return true
	case !f.allows(capability.Read, a) && !f.allows(capability.Read, b): // then it does not matter
		return false
	}
	x, errno := f.enter(a)
	if errno != 0 {
		return false
	}
	defer x.leave()
	y, errno := f.enter(b)
	if errno != 0 {
		return false
	}
	defer y.leave()
	return sameFile(x.dir, x.name, y.dir, y.name)
}
