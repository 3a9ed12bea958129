package manifest

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
	"github.com/skillhost/skill/sdk"
)

// Bounds of a SKILL.md's frontmatter.
const (
	maxFront      = 64 << 10 // bytes
	maxFrontDepth = 32
)

// Instructions reads the SKILL.md of s, at most 1 MiB. front is the
// frontmatter as JSON, with its keys in the order of the file, or {} if there
// is none; body is the text after it. Errors have kind NotFound if s has no
// SKILL.md, and Invalid if it cannot be understood or has changed since Open.
func Instructions(s *Skill) (front Frontmatter, body string, err error) {
	f, body, err := readInstructions(s)
	return f.json, body, err
}

// frontmatter is what the host itself needs of a SKILL.md's head.
type frontmatter struct {
	json                                json.RawMessage
	name, description, license, version string
	warnings                            []string
}

func readInstructions(s *Skill) (f frontmatter, body string, err error) {
	if !s.Home.has(InstructionsName) {
		return f, "", &sdk.Error{Kind: sdk.NotFound, Op: "manifest.Instructions", What: fmt.Sprintf("skill %q has no %s", s.Name, InstructionsName)}
	}
	data, err := s.Home.read(InstructionsName)
	if err != nil {
		return f, "", err
	}
	pos := capability.Pos{File: s.Home.shown(InstructionsName)}
	if !utf8.Valid(data) {
		return f, "", frontError(pos, 0, "the file is not UTF-8", "save it as UTF-8")
	}
	head, body, err := splitFront(string(data))
	if err != nil {
		return f, "", frontError(pos, 1, err.Error(), "the frontmatter stands between two lines \"---\"")
	}
	node, repaired, err := parseFront(head)
	if err != nil {
		line := 0
		var le *lineError
		if errors.As(err, &le) {
			line = le.line + 1 // the "---" above
		}
		return f, "", frontError(pos, line, "frontmatter: "+err.Error(), "write plain \"key: value\" lines, with quotes around values that contain a colon")
	}
	if repaired {
		f.warnings = append(f.warnings, pos.File+": the frontmatter is no valid YAML: put quotes around values that contain a colon")
	}
	err = f.fill(node)
	if err != nil {
		return f, "", frontError(pos, 1, "frontmatter: "+err.Error(), "")
	}
	return f, body, nil
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
			if len(head) > maxFront {
				return "", "", fmt.Errorf("the frontmatter has %d bytes, and at most %d are read", len(head), maxFront)
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
func (f *frontmatter) fill(n *yaml.Node) error {
	var b bytes.Buffer
	if err := yamlToJSON(&b, n, 0); err != nil {
		return err
	}
	f.json = b.Bytes()
	for i := 0; i < len(n.Content); i += 2 {
		v := n.Content[i+1]
		switch n.Content[i].Value {
		case "name":
			f.name = v.Value
		case "description":
			f.description = strings.TrimSpace(v.Value)
		case "license":
			f.license = v.Value
		case "metadata":
			for j := 0; v.Kind == yaml.MappingNode && j < len(v.Content); j += 2 {
				if v.Content[j].Value == "version" {
					f.version = v.Content[j+1].Value
				}
			}
		}
	}
	for _, text := range []string{f.name, f.description, f.license} {
		if c, ok := invisible(text); ok {
			return fmt.Errorf("the invisible character %U: a reviewer does not see it, and a model does", c)
		}
	}
	if len(f.description) > maxText {
		return fmt.Errorf("a description of %d bytes: at most %d", len(f.description), maxText)
	}
	return nil
}

// yamlToJSON writes n with its keys in their order. Anchors are refused: no
// frontmatter needs them, and they grow without bound.
func yamlToJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	if depth > maxFrontDepth {
		return fmt.Errorf("nested more than %d deep", maxFrontDepth)
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
				return fmt.Errorf("duplicate key %q", clip(key.Value))
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
