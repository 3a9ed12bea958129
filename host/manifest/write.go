package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/rewrite"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// Draft returns the text of a manifest whose tools have not been written yet,
// with a table for each tool that its resources and prompts name and that it
// lacks, and with one at least: then it can be read. Errors have kind Invalid.
func Draft(file string, data []byte) ([]byte, error) {
	r := &reader{file: file}
	if err := r.decode(data); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, x := range r.in.Resources {
		named[x.Tool] = true
		for _, v := range x.Variables {
			named[v.Complete] = true
		}
	}
	for _, x := range r.in.Prompts {
		named[x.Tool] = true
		for _, a := range x.Arguments {
			named[a.Complete] = true
		}
	}
	if len(r.in.Tools) == 0 {
		named["untold"] = true
	}
	out := slices.Clip(data)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if _, ok := r.in.Tools[name]; !ok && words.IsToolName(name) {
			out = fmt.Appendf(out, "\n[tools.%s]\ndescription = \"not built yet\"\n", capability.QuoteKey(name))
		}
	}
	return out, nil
}

// WriteTools writes a module's own description of its tools into the text of
// its manifest, and returns the new text: the last step of an author's build.
//
// In the table [tools.NAME] of each tool it replaces title, description,
// input, output and annotations, whichever way they were written, by lines
// right below the header, and so it does with icons, meta and hidden if the
// module says them. Everything else stays as it is, byte for byte: other keys
// (examples, icons that the module does not have), tables such as [tools.NAME.capabilities],
// comments, order. A tool without a table gets one at the end. The table of a
// tool that the module no longer has is removed; if somebody wrote more in it
// than the generated keys, that is an error instead. Writing the same tools
// again changes nothing.
//
// The result is read back and must describe the same tools. Errors have kind
// Invalid: a manifest that does not load, or tools that no manifest can hold.
func WriteTools(data []byte, tools []sdk.Tool) ([]byte, error) {
	// The tools that are there may be what is wrong: only the syntax counts.
	r := &reader{file: FileName}
	if err := r.decode(data); err != nil {
		return nil, err
	}
	var keys []string
	for f := range reflect.TypeFor[toolDoc]().Fields() {
		keys = append(keys, f.Tag.Get("toml"))
	}
	out, err := rewrite.Tools(r.doc, data, slices.Sorted(maps.Keys(r.in.Tools)), keys, tools)
	if err != nil {
		return nil, err
	}
	return out, sameTools(out, tools)
}

// sameTools checks that the manifest describes the tools.
func sameTools(data []byte, tools []sdk.Tool) error {
	s, err := Read(FileName, data)
	if err != nil {
		return err
	}
	for _, want := range tools {
		i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == want.Name })
		if i < 0 || len(s.Tools) != len(tools) {
			return &sdk.Error{Kind: sdk.Internal, Op: "manifest.WriteTools", What: fmt.Sprintf("the tool %q was lost", want.Name)}
		}
		got := s.Tools[i].Tool
		if want.Input == nil {
			want.Input = json.RawMessage(anyObject)
		}
		if got.Title != want.Title || got.Description != want.Description || !sameJSON(got.Input, want.Input) || !sameJSON(got.Output, want.Output) ||
			!reflect.DeepEqual(got.Annotations, want.Annotations) || want.Hidden && !got.Hidden ||
			want.Icons != nil && len(got.Icons) != len(want.Icons) || want.Meta != nil && !sameJSON(got.Meta, want.Meta) {
			return &sdk.Error{Kind: sdk.Internal, Op: "manifest.WriteTools", What: fmt.Sprintf("the tool %q does not read back as it was written", want.Name)}
		}
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	decode := func(raw json.RawMessage) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}
