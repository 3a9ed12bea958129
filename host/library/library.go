// Package library is what the files of skills look like to clients that load
// skills themselves: which there are, with their digests, and what is in a
// directory (Skills Extension, SEP-2640: skills/list, skills/get,
// resources/directory/read). It names files; it does not read them out, and it
// does not know who may see which skill.
package library

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a skill whose files are listed; a larger one is "dynamic".
const (
	maxFiles = 512
	maxBytes = 16 << 20
)

// Scheme is that of the URIs of skills' files.
const Scheme = "skill://"

// URI returns the URI of a file of a skill, or of its folder if file is ".".
func URI(skill, file string) string {
	if file == "." {
		return Scheme + skill
	}
	parts := strings.Split(file, "/")
	for i, p := range parts {
		parts[i] = escape(p)
	}
	return Scheme + skill + "/" + strings.Join(parts, "/")
}

// Parse returns the skill and the path of a URI. It is strict: one file has one
// URI.
func Parse(uri string) (skill, file string, ok bool) {
	rest, ok := strings.CutPrefix(uri, Scheme)
	if !ok {
		return "", "", false
	}
	skill, escaped, sub := strings.Cut(rest, "/")
	if !Named(skill) {
		return "", "", false
	}
	if !sub {
		return skill, ".", true
	}
	parts := strings.Split(escaped, "/")
	for i, p := range parts {
		if parts[i], ok = unescape(p); !ok {
			return "", "", false
		}
	}
	file = strings.Join(parts, "/")
	if !fs.ValidPath(file) || file == "." || URI(skill, file) != uri {
		return "", "", false
	}
	return skill, file, true
}

var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// Named reports whether a skill of that name can be listed.
func Named(skill string) bool { return name.MatchString(skill) && !strings.Contains(skill, "--") }

// escape writes a segment of a path as RFC 3986 has it, and no other way.
func escape(s string) string {
	const plain = "-._~!$&'()*+,;=:@"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		c, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b = append(b, c[0])
		i += 2
	}
	out := string(b)
	return out, !strings.ContainsAny(out, "/\x00")
}

// Holds reports whether s is a skill that clients can load: one with a SKILL.md
// and a name that the extension allows.
func Holds(s *manifest.Skill) bool { return s.HasInstructions() && Named(s.Name) }

// An entry is a skill as skills/list has it.
type entry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   any             `json:"resources"` // []file or "dynamic"
}

type file struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Entry returns the entry of a skill that Holds, a JSON object.
func Entry(s *manifest.Skill) (json.RawMessage, error) {
	front, _, err := manifest.Instructions(s)
	if err != nil {
		return nil, err
	}
	head, err := named(s, json.RawMessage(front))
	if err != nil {
		return nil, err
	}
	e := entry{URI: URI(s.Name, manifest.InstructionsName), Frontmatter: head, Resources: "dynamic"}
	files, err := files(s)
	switch {
	case err == nil:
		e.Resources = files
	case !errors.Is(err, errLarge):
		return nil, err
	}
	return json.Marshal(e)
}

// named makes sure that a frontmatter has the name under which the skill is
// installed, and a description, which clients require.
func named(s *manifest.Skill, front json.RawMessage) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(front, &m); err != nil {
		return nil, err
	}
	var was, about string
	_ = json.Unmarshal(m["name"], &was) // another type is no name
	_ = json.Unmarshal(m["description"], &about)
	if was == s.Name && about != "" {
		return front, nil
	}
	var err error
	if m["name"], err = json.Marshal(s.Name); err != nil {
		return nil, err
	}
	if about == "" {
		if m["description"], err = json.Marshal(s.Description); err != nil {
			return nil, err
		}
	}
	return json.Marshal(m)
}

var errLarge = errors.New("more than is listed")

// files returns the files of a skill with their digests.
func files(s *manifest.Skill) (out []file, err error) {
	var total int64
	err = fs.WalkDir(s.Home.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := s.Home.Files.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		n, err := io.Copy(h, io.LimitReader(f, maxBytes-total+1))
		if err != nil {
			return err
		}
		if total += n; total > maxBytes || len(out) == maxFiles {
			return errLarge
		}
		out = append(out, file{URI(s.Name, p), "sha256:" + hex.EncodeToString(h.Sum(nil)), n})
		return nil
	})
	return out, err
}

// A Listed is one thing in a directory, as resources/directory/read and
// resources/list have it.
type Listed struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mimeType,omitempty"`
	Size        int64  `json:"size,omitempty"`
}

// Directory returns what is in a directory of s, sorted by name.
func Directory(s *manifest.Skill, dir string) ([]Listed, error) {
	entries, err := fs.ReadDir(s.Home.Files, dir)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s is not a directory of the skill", URI(s.Name, dir))}
	}
	var out []Listed
	for _, d := range entries {
		l := Listed{URI: URI(s.Name, path.Join(dir, d.Name())), Name: d.Name()}
		switch {
		case d.IsDir():
			l.MIME = "inode/directory"
		case d.Type().IsRegular():
			l.MIME = Type(d.Name())
			if info, err := d.Info(); err == nil {
				l.Size = info.Size()
			}
		default:
			continue
		}
		out = append(out, l)
	}
	return out, nil
}

// Instructions is the SKILL.md of s as resources/list has it: called and
// described as it does itself.
func Instructions(s *manifest.Skill) Listed {
	l := Listed{URI: URI(s.Name, manifest.InstructionsName), Name: s.Name, Description: s.Description, MIME: "text/markdown"}
	if front, _, err := manifest.Instructions(s); err == nil {
		var head struct{ Description string }
		if json.Unmarshal(front, &head) == nil && head.Description != "" {
			l.Description = head.Description
		}
	}
	if info, err := fs.Stat(s.Home.Files, manifest.InstructionsName); err == nil {
		l.Size = info.Size()
	}
	return l
}

// types are the media types of files that skills are made of.
var types = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".html": "text/html", ".css": "text/css", ".csv": "text/csv",
	".json": "application/json", ".toml": "application/toml", ".yaml": "application/yaml", ".yml": "application/yaml", ".xml": "application/xml",
	".js": "text/javascript", ".mjs": "text/javascript", ".ts": "text/x-typescript", ".py": "text/x-python", ".sh": "text/x-shellscript", ".go": "text/x-go",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml",
	".pdf": "application/pdf", ".zip": "application/zip", ".wasm": "application/wasm",
}

// Type guesses the media type of a file by its name, the same on every machine;
// it is empty for what is not known.
func Type(name string) string { return types[strings.ToLower(path.Ext(name))] }
