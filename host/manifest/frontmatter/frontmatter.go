// Package frontmatter reads the head of a SKILL.md: YAML between two lines of
// dashes, as people and models write it, with the repairs that they need and
// without what YAML can do besides. It does not know what a skill is or where
// the file comes from.
package frontmatter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a frontmatter.
const (
	MaxSize  = 64 << 10 // bytes
	maxDepth = 32
)

// A Head is a frontmatter, and what the host itself needs of it.
type Head struct {
	JSON        json.RawMessage // all of it, with its keys in the order of the file
	Name        string
	Description string
	License     string
	Version     string   // metadata.version
	Warnings    []string // what was let pass, for the operator
}

// Read reads the text of a SKILL.md, which messages call file; body is what
// follows the frontmatter. Without one the Head is empty and JSON is {}. Errors
// have kind Invalid and "file:line" as the Op.
func Read(file string, data []byte) (h Head, body string, err error) {
	pos := capability.Pos{File: file}
	if !utf8.Valid(data) {
		return h, "", frontError(pos, 0, "the file is not UTF-8", "save it as UTF-8")
	}
	head, body, err := splitFront(string(data))
	if err != nil {
		return h, "", frontError(pos, 1, err.Error(), "the frontmatter stands between two lines \"---\"")
	}
	node, repaired, err := parseFront(head)
	if err != nil {
		line := 0
		var le *lineError
		if errors.As(err, &le) {
			line = le.line + 1 // the "---" above
		}
		return h, "", frontError(pos, line, "frontmatter: "+err.Error(), "write plain \"key: value\" lines, with quotes around values that contain a colon")
	}
	if repaired {
		h.Warnings = append(h.Warnings, pos.File+": the frontmatter is no valid YAML: put quotes around values that contain a colon")
	}
	err = h.fill(node)
	if err != nil {
		return h, "", frontError(pos, 1, "frontmatter: "+err.Error(), "")
	}
	return h, body, nil
}

func frontError(pos capability.Pos, line int, what, hint string) error {
	pos.Line = line
	return &sdk.Error{Kind: sdk.Invalid, Op: pos.String(), What: what, Hint: hint}
}

// splitFront cuts the lines between the first "---" and the next one off text.
func splitFront(text string) (head, body string, err error) {
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, nil
	}
	for at := 0; at <= len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			head, body = rest[:at], strings.TrimPrefix(rest[at+len(line):], "\n")
			if len(head) > MaxSize {
				return "", "", fmt.Errorf("the frontmatter has %d bytes, and at most %d are read", len(head), MaxSize)
			}
			return head, body, nil
		}
		at += len(line) + 1
	}
	return "", "", errors.New("the frontmatter does not end")
}

// parseFront reads head as YAML, if need be after putting the quotes in that
// people leave out.
func parseFront(head string) (n *yaml.Node, repaired bool, err error) {
	if n, err = parseYAML(head); err == nil {
		return n, false, nil
	}
	if n, again := parseYAML(quoteValues(head)); again == nil {
		return n, true, nil
	}
	return nil, false, err
}

// A lineError is a mistake on a line of the YAML text.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return e.what }

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

func parseYAML(head string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ := strconv.Atoi(m[1])
			return nil, &lineError{line, m[2]}
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, &lineError{1, "want \"key: value\" lines"}
	}
	return doc.Content[0], nil
}

var frontLine = regexp.MustCompile(`^([A-Za-z0-9_-]+):[ \t]+(.*\S)[ \t]*$`)

// quoteValues puts quotes around the values of top-level lines that have none.
func quoteValues(head string) string {
	lines := strings.Split(head, "\n")
	for i, line := range lines {
		m := frontLine.FindStringSubmatch(line)
		if m == nil || strings.ContainsAny(m[2][:1], `"'|>[{`) {
			continue
		}
		q, _ := json.Marshal(m[2]) // a JSON string is a YAML string
		lines[i] = m[1] + ": " + string(q)
	}
	return strings.Join(lines, "\n")
}

// fill takes what the host needs out of n.
func (h *Head) fill(n *yaml.Node) error {
	var b bytes.Buffer
	if err := yamlToJSON(&b, n, 0); err != nil {
		return err
	}
	h.JSON = b.Bytes()
	for i := 0; i < len(n.Content); i += 2 {
		v := n.Content[i+1]
		switch n.Content[i].Value {
		case "name":
			h.Name = v.Value
		case "description":
			h.Description = strings.TrimSpace(v.Value)
		case "license":
			h.License = v.Value
		case "metadata":
			for j := 0; v.Kind == yaml.MappingNode && j < len(v.Content); j += 2 {
				if v.Content[j].Value == "version" {
					h.Version = v.Content[j+1].Value
				}
			}
		}
	}
	for _, text := range []string{h.Name, h.Description, h.License} {
		if c, ok := words.Invisible(text); ok {
			return fmt.Errorf("the invisible character %U: a reviewer does not see it, and a model does", c)
		}
	}
	if len(h.Description) > words.MaxText {
		return fmt.Errorf("a description of %d bytes: at most %d", len(h.Description), words.MaxText)
	}
	return nil
}

// yamlToJSON writes n with its keys in their order. Anchors are refused: no
// frontmatter needs them, and they grow without bound.
func yamlToJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested more than %d deep", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]bool{}
		b.WriteByte('{')
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return errors.New("a key is not plain text")
			}
			if seen[key.Value] {
				return fmt.Errorf("duplicate key %q", words.Clip(key.Value))
			}
			seen[key.Value] = true
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, key.Value)
			b.WriteByte(':')
			if err := yamlToJSON(b, n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := yamlToJSON(b, e, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		writeScalar(b, n)
	default:
		return errors.New("anchors and aliases are not read")
	}
	return nil
}

func writeScalar(b *bytes.Buffer, n *yaml.Node) {
	switch tag := n.ShortTag(); tag {
	case "!!null", "!!bool", "!!int", "!!float":
		var v any
		if n.Decode(&v) == nil {
			if raw, err := json.Marshal(v); err == nil { // not so for .inf
				b.Write(raw)
				return
			}
		}
	}
	writeString(b, n.Value)
}

func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string and a buffer: nothing can fail
	b.Truncate(b.Len() - 1)
}
