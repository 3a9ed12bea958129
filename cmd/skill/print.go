package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printLine writes v as one line of JSON.
func printLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printResult writes a result as a person wants to see it: texts as they are,
// other content by what it is.
func printResult(w io.Writer, r sdk.Result) {
	for _, c := range r.Content {
		switch {
		case c.Type == sdk.TypeText || c.Type == sdk.TypeResource && c.Text != "":
			fmt.Fprintln(w, strings.TrimRight(c.Text, "\n"))
		case c.Type == sdk.TypeResourceLink:
			fmt.Fprintf(w, "[%s %s]\n", c.URI, c.MIME)
		default:
			fmt.Fprintf(w, "[%s %s, %d bytes; --save DIR keeps it]\n", c.Type, c.MIME, len(c.Data))
		}
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 {
		fmt.Fprintln(w, string(r.Structured))
	}
	for id, q := range r.Questions {
		fmt.Fprintf(w, "the tool asks (%s): %s\n%s\n", id, q.Message, q.Schema)
	}
}

// resultJSON is the JSON form of a result, with data as base64.
func resultJSON(r sdk.Result) any {
	type content struct {
		sdk.Content
		Data []byte `json:"data,omitempty"`
	}
	out := struct {
		Content    []content               `json:"content"`
		Structured json.RawMessage         `json:"structuredContent,omitempty"`
		Failed     bool                    `json:"isError"`
		Questions  map[string]sdk.Question `json:"questions,omitempty"`
		State      string                  `json:"state,omitempty"`
	}{Content: []content{}, Structured: r.Structured, Failed: r.Failed, Questions: r.Questions, State: r.State}
	for _, c := range r.Content {
		out.Content = append(out.Content, content{c, c.Data})
	}
	return out
}

// printNeeds writes what a skill asks for, one line each.
func printNeeds(w io.Writer, s *manifest.Skill) {
	if len(s.Needs.Allow) == 0 {
		fmt.Fprintln(w, "  asks for     nothing")
	}
	for _, c := range s.Needs.Allow {
		fmt.Fprintf(w, "  asks for     %-11s %s\n", c.Kind, c.Entry())
	}
	for _, x := range s.Secrets {
		fmt.Fprintf(w, "  asks for     secret      %s, sent to %s as %s\n", x.Name, strings.Join(x.Hosts, ", "), x.Header)
	}
	l := s.Limits
	fmt.Fprintf(w, "  limits       memory %d MiB, timeout %v (at most %v), output %d MiB, %d at a time\n", l.Memory>>20, l.Timeout, l.MaxTimeout, l.Output>>20, l.Concurrency)
}

// printLayers writes the stack of a grant.
func printLayers(w io.Writer, layers []capability.Layer) {
	for _, l := range layers {
		fmt.Fprintf(w, "  %-9s %s\n", l.Name, l.Pos)
		for _, kind := range capability.Kinds {
			var entries []string
			for _, c := range l.Allow {
				if c.Kind == kind {
					entries = append(entries, c.Entry())
				}
			}
			switch speaks := speaksOf(l, kind); {
			case entries != nil:
				fmt.Fprintf(w, "            %-11s %s\n", kind, strings.Join(entries, ", "))
			case speaks && !l.Closed:
				fmt.Fprintf(w, "            %-11s nothing\n", kind)
			}
		}
		if l.Closed {
			fmt.Fprintln(w, "            and nothing else")
		} else if len(l.Allow)+len(l.Speaks)+len(l.Deny) == 0 {
			fmt.Fprintln(w, "            leaves it to the others")
		}
		for _, c := range l.Deny {
			fmt.Fprintf(w, "            never       %s %s\n", c.Kind, c.Entry())
		}
	}
}

func speaksOf(l capability.Layer, kind capability.Kind) bool {
	for _, t := range l.Speaks {
		if t.Kind == kind {
			return true
		}
	}
	return l.Closed
}

// readArgs returns a tool's arguments: the text itself, a file after "@", or
// standard input for "-".
func readArgs(arg string, stdin io.Reader) (json.RawMessage, error) {
	b := []byte(arg)
	var err error
	switch {
	case arg == "-":
		b, err = io.ReadAll(io.LimitReader(stdin, 64<<20))
	case strings.HasPrefix(arg, "@"):
		b, err = os.ReadFile(arg[1:])
	}
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	if !json.Valid(b) {
		return nil, &sdk.Error{Kind: sdk.Invalid, What: "the arguments are not JSON", Hint: `want for example '{"file_path": "photo.jpg"}', @FILE or -`}
	}
	return b, nil
}
