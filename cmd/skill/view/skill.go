package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/manifest/template"
)

// Skill writes what a skill is, offers and asks for.
func Skill(w io.Writer, s *manifest.Skill) {
	row(w, "%s %s", s.Name, s.Version)
	if s.Description != "" {
		row(w, "  %s", Short(s.Description, 200))
	}
	row(w, "  manifest     %s", s.Home.File)
	row(w, "  digest       %s", s.Home.Digest)
	row(w, "  runtime      %s %s", s.Runtime, s.ABI)
	if confinement := sandboxed(s); confinement != "" {
		row(w, "  sandbox      %s", confinement)
	}
	needs(w, s)
	for _, t := range s.Tools {
		row(w, "  tool         %s: %s", t.Name, Short(t.Description, 100))
		runs(w, t.Command)
		only(w, t.Narrow)
	}
	for _, r := range s.Resources {
		from := r.File
		if r.Tool != "" {
			from = "tool " + r.Tool
		}
		row(w, "  resource     %s: %s from %s", r.Name, r.URI, from)
		only(w, r.Narrow)
	}
	for _, p := range s.Prompts {
		row(w, "  prompt       %s: %s", p.Name, Short(p.Description, 100))
		only(w, p.Narrow)
	}
	if s.Settings != nil {
		row(w, "  settings     [settings.%s] of config.toml takes %s", s.Name, s.Settings)
	}
	for _, warning := range s.Home.Warnings {
		row(w, "  warning      %s", warning)
	}
}

// sandboxed says how a native skill wants to be confined; "" for others.
func sandboxed(s *manifest.Skill) string {
	b := s.Sandbox
	if b.Require == "" {
		return ""
	}
	text := "at least " + b.Require
	if b.Isolation == "session" {
		text += ", one process for many calls"
	}
	if b.Home != "" {
		text += ", with a " + b.Home + " home that lasts"
	}
	return text
}

// runs writes what a tool of the runtime "exec" runs.
func runs(w io.Writer, c *template.Command) {
	if c == nil {
		return
	}
	line := words(c)
	for i, word := range line {
		if strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'\\`$&|;<>()*?#~", r) }) {
			line[i] = strconv.Quote(word)
		}
	}
	row(w, "               runs %s", strings.Join(line, " "))
	if c.Input != "" {
		row(w, "               with %q on its standard input", c.Input)
	}
	if len(c.Success) > 1 || len(c.Success) == 1 && c.Success[0] != 0 {
		row(w, "               exit status of success: %s", strings.Trim(fmt.Sprint(c.Success), "[]"))
	}
}

func words(c *template.Command) []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.Words)
}

func only(w io.Writer, narrow *capability.Layer) {
	if narrow == nil {
		return
	}
	for _, c := range narrow.Allow {
		row(w, "               only %s %s", c.Kind, c.Entry())
	}
}

func needs(w io.Writer, s *manifest.Skill) {
	if len(s.Needs.Allow) == 0 {
		row(w, "  asks for     nothing")
	}
	for _, c := range s.Needs.Allow {
		row(w, "  asks for     %-11s %s", c.Kind, c.Entry())
	}
	for _, x := range s.Secrets {
		row(w, "  asks for     secret      %s, sent to %s as %s", x.Name, strings.Join(x.Hosts, ", "), cmp.Or(x.Header, "?"+x.Query))
	}
	l := s.Limits
	row(w, "  limits       memory %d MiB, timeout %v (at most %v), output %d MiB, %d at a time", l.Memory>>20, l.Timeout, l.MaxTimeout, l.Output>>20, l.Concurrency)
}

type entry struct {
	Kind  string `json:"kind"`
	Entry string `json:"entry"`
	Line  int    `json:"line,omitempty"`
}

func entries(l *capability.Layer) (all []entry) {
	if l == nil {
		return nil
	}
	for _, c := range l.Allow {
		all = append(all, entry{string(c.Kind), c.Entry(), c.Pos.Line})
	}
	return all
}

type (
	skillDoc struct {
		Name        string          `json:"name"`
		Version     string          `json:"version"`
		Description string          `json:"description,omitempty"`
		Runtime     string          `json:"runtime"`
		ABI         string          `json:"abi,omitempty"`
		File        string          `json:"file"`
		Digest      string          `json:"digest"`
		Builtin     bool            `json:"builtin"`
		Needs       []entry         `json:"capabilities"`
		Secrets     []secretDoc     `json:"secrets"`
		Limits      limitsDoc       `json:"limits"`
		Tools       []toolDoc       `json:"tools"`
		Resources   []resourceDoc   `json:"resources"`
		Prompts     []promptDoc     `json:"prompts"`
		Warnings    []string        `json:"warnings,omitempty"`
		Sandbox     *sandboxDoc     `json:"sandbox,omitempty"` // native runtimes
		Settings    json.RawMessage `json:"settings,omitempty"`
	}
	sandboxDoc struct {
		Require   string `json:"require"`
		Isolation string `json:"isolation"`
		Home      string `json:"home,omitempty"`
	}
	toolDoc struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Examples    []string        `json:"examples,omitempty"`
		Narrow      []entry         `json:"capabilities,omitempty"`
		Limits      limitsDoc       `json:"limits"`
		Command     []string        `json:"command,omitempty"`
	}
	secretDoc struct {
		Name   string   `json:"name"`
		Hosts  []string `json:"hosts"`
		Header string   `json:"header"`
		Query  string   `json:"query,omitempty"`
		Format string   `json:"format"`
	}
	resourceDoc struct {
		Name        string  `json:"name"`
		Title       string  `json:"title,omitempty"`
		Description string  `json:"description,omitempty"`
		URI         string  `json:"uri"`
		MIME        string  `json:"mimeType,omitempty"`
		File        string  `json:"file,omitempty"`
		Tool        string  `json:"tool,omitempty"`
		Narrow      []entry `json:"capabilities,omitempty"`
	}
	promptDoc struct {
		Name        string        `json:"name"`
		Title       string        `json:"title,omitempty"`
		Description string        `json:"description,omitempty"`
		Arguments   []argumentDoc `json:"arguments,omitempty"`
		File        string        `json:"file,omitempty"`
		Tool        string        `json:"tool,omitempty"`
		Narrow      []entry       `json:"capabilities,omitempty"`
	}
	argumentDoc struct {
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		Required    bool   `json:"required"`
	}
	// limitsDoc has sizes in bytes and times in milliseconds.
	limitsDoc struct {
		Memory      int64  `json:"memory"`
		Timeout     int64  `json:"timeout_ms"`
		MaxTimeout  int64  `json:"max_timeout_ms"`
		Output      int64  `json:"output"`
		Concurrency int    `json:"concurrency"`
		Rate        string `json:"rate,omitempty"`
		Processes   int    `json:"processes"`
		HTTPBody    int64  `json:"http_body"`
	}
)

func limits(l manifest.Limits) limitsDoc {
	d := limitsDoc{l.Memory, l.Timeout.Milliseconds(), l.MaxTimeout.Milliseconds(), l.Output, l.Concurrency, "", l.Processes, l.HTTPBody}
	if l.Rate.Calls > 0 {
		d.Rate = strconv.Itoa(l.Rate.Calls) + " per " + l.Rate.Per.String()
	}
	return d
}

// SkillJSON is the JSON form of a skill.
func SkillJSON(s *manifest.Skill) any {
	d := skillDoc{Name: s.Name, Version: s.Version, Description: s.Description, Runtime: s.Runtime, ABI: s.ABI, File: s.Home.File, Digest: s.Home.Digest,
		Builtin: s.Home.Builtin, Needs: append([]entry{}, entries(&s.Needs)...), Secrets: []secretDoc{}, Limits: limits(s.Limits),
		Tools: []toolDoc{}, Resources: []resourceDoc{}, Prompts: []promptDoc{}, Warnings: s.Home.Warnings, Settings: s.Settings}
	if b := s.Sandbox; b.Require != "" {
		d.Sandbox = &sandboxDoc{b.Require, b.Isolation, b.Home}
	}
	for _, x := range s.Secrets {
		d.Secrets = append(d.Secrets, secretDoc{x.Name, x.Hosts, x.Header, x.Query, x.Format})
	}
	for _, t := range s.Tools {
		d.Tools = append(d.Tools, toolDoc{t.Name, t.Title, t.Description, t.Input, t.Output, t.Examples, entries(t.Narrow), limits(t.Limits), words(t.Command)})
	}
	for _, r := range s.Resources {
		d.Resources = append(d.Resources, resourceDoc{r.Name, r.Title, r.Description, r.URI, r.MIME, r.File, r.Tool, entries(r.Narrow)})
	}
	for _, p := range s.Prompts {
		row := promptDoc{Name: p.Name, Title: p.Title, Description: p.Description, File: p.File, Tool: p.Tool, Narrow: entries(p.Narrow)}
		for _, a := range p.Arguments {
			row.Arguments = append(row.Arguments, argumentDoc{a.Name, a.Title, a.Description, a.Required})
		}
		d.Prompts = append(d.Prompts, row)
	}
	return d
}
