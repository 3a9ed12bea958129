// Package view turns the layers of a grant into what a native process sees of
// the file system: the mounts of a private root, and one Landlock rule set per
// layer, which the kernel intersects. It is pure but for the functions that it
// is given to look at the file system. It knows no tools and starts nothing.
package view

// Rights are what a process may do beneath a path.
type Rights uint8

// The rights. Write is everything that changes files or directories; it does
// not include Read.
const (
	Read Rights = 1 << iota
	Write
	Exec
	Socket // make sockets
)

// A View is what a process sees. The zero View shows nothing: not even the
// loader that a program needs.
type View struct {
	Mounts   []Mount   // parents before what is beneath them
	Rulesets []Ruleset // one per layer that speaks of files or programs, then one of the host's own
	Links    []Link    // made in the private root where nothing else is
	Roots    []Root    // what was granted, for messages and the record
}

// A Kind of mount.
type Kind uint8

// The kinds of Mount.
const (
	ReadOnly Kind = iota + 1 // Source, with everything mounted beneath it, without writing
	Writable                 // the same, with writing
	Hidden                   // an empty directory or file without any permission
	Pinned                   // what is there already, as a mount point of its own, so that it cannot be renamed away
)

// A Mount puts a directory or a file of the host at a path of the private root.
type Mount struct {
	Path   string // in the private root: absolute and clean
	Source string // on the host; "" means Path. A real path: no part of it is a link
	Kind   Kind
	Maybe  bool // leave it out if Source is not there; Hidden: if nothing is at Path
}

// A Link is a symbolic link in the private root.
type Link struct{ Path, Target string }

// A Rule gives rights beneath a path of the private root.
type Rule struct {
	Path   string
	Rights Rights
	Maybe  bool // leave it out if the path is not there
}

// A Ruleset is one Landlock rule set. Rights that it does not handle it does
// not restrict.
type Ruleset struct {
	Name    string // the layer, for messages
	Handles Rights
	Rules   []Rule
}

// A Root is a directory, file or program that the process was granted.
type Root struct {
	Path   string // as a capability.Access names it; of a program where it was found, or ""
	Rights Rights
	Name   string // of a program, as the lists spell it; "*" is whatever may be read; else ""
}
