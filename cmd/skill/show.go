package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host/manifest"
)

func showCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "show SKILL|TOOL",
		Short: "Show what a skill is, offers and asks for",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.open(cmd)
			if err != nil {
				return err
			}
			defer h.Close()
			s, err := h.Catalog.Skill(args[0])
			if err != nil {
				e, lookup := h.Catalog.Lookup(args[0])
				if lookup != nil {
					return lookup
				}
				s = e.Skill
			}
			if g.json {
				return printJSON(cmd.OutOrStdout(), skillJSON(s))
			}
			return printSkill(cmd.OutOrStdout(), s)
		},
	}
}

func printSkill(w io.Writer, s *manifest.Skill) error {
	fmt.Fprintf(w, "%s %s\n", s.Name, s.Version)
	if s.Description != "" {
		fmt.Fprintf(w, "  %s\n", short(s.Description, 200))
	}
	fmt.Fprintf(w, "  manifest     %s\n", s.Home.File)
	fmt.Fprintf(w, "  digest       %s\n", s.Home.Digest)
	fmt.Fprintf(w, "  runtime      %s %s\n", s.Runtime, s.ABI)
	printNeeds(w, s)
	for _, t := range s.Tools {
		fmt.Fprintf(w, "  tool         %s: %s\n", t.Name, short(t.Description, 100))
		if t.Narrow != nil {
			for _, c := range t.Narrow.Allow {
				fmt.Fprintf(w, "               only %s %s\n", c.Kind, c.Entry())
			}
		}
	}
	for _, warning := range s.Home.Warnings {
		fmt.Fprintf(w, "  warning      %s\n", warning)
	}
	return nil
}

// skillJSON is the JSON form of a skill.
func skillJSON(s *manifest.Skill) any {
	type entry struct {
		Kind  string `json:"kind"`
		Entry string `json:"entry"`
		Line  int    `json:"line,omitempty"`
	}
	type tool struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema,omitempty"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Examples    []string        `json:"examples,omitempty"`
		Narrow      []entry         `json:"capabilities,omitempty"`
	}
	out := struct {
		Name        string   `json:"name"`
		Version     string   `json:"version"`
		Description string   `json:"description,omitempty"`
		Runtime     string   `json:"runtime"`
		ABI         string   `json:"abi,omitempty"`
		File        string   `json:"file"`
		Digest      string   `json:"digest"`
		Builtin     bool     `json:"builtin"`
		Needs       []entry  `json:"capabilities"`
		Tools       []tool   `json:"tools"`
		Warnings    []string `json:"warnings,omitempty"`
	}{s.Name, s.Version, s.Description, s.Runtime, s.ABI, s.Home.File, s.Home.Digest, s.Home.Builtin, []entry{}, []tool{}, s.Home.Warnings}
	for _, c := range s.Needs.Allow {
		out.Needs = append(out.Needs, entry{string(c.Kind), c.Entry(), c.Pos.Line})
	}
	for _, t := range s.Tools {
		row := tool{t.Name, t.Title, t.Description, t.Input, t.Output, t.Examples, nil}
		if t.Narrow != nil {
			for _, c := range t.Narrow.Allow {
				row.Narrow = append(row.Narrow, entry{string(c.Kind), c.Entry(), c.Pos.Line})
			}
		}
		out.Tools = append(out.Tools, row)
	}
	return out
}
