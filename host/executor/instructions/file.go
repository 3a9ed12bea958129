package instructions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// read reads a file of the skill as it was when the skill was installed.
func (p *program) read(j executor.Job, file string) ([]byte, error) {
	if err := p.mayRead(j, file); err != nil {
		return nil, err
	}
	st, err := fs.Stat(p.skill.Home.Files, file)
	if err != nil {
		return nil, err
	}
	if most := j.Limits.Output; most > 0 && st.Size() > most {
		return nil, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the file %q has %d bytes", file, st.Size()), Hint: fmt.Sprintf("limits.output is %d in %s", most, p.skill.Home.File)}
	}
	return fs.ReadFile(p.skill.Home.Files, file)
}

// resource returns the file as a text if it is one, else as bytes.
func (p *program) resource(j executor.Job, r *manifest.Resource) (sdk.Result, error) {
	content, err := p.read(j, r.File)
	if err != nil {
		return sdk.Result{}, err
	}
	c := sdk.Content{Type: sdk.TypeResource, URI: r.URI, MIME: r.MIME}
	if utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 {
		c.Text = string(content)
	} else {
		c.Data = content
	}
	return sdk.Result{Content: []sdk.Content{c}}, nil
}

// prompt returns the file as one message, with the arguments in their places.
func (p *program) prompt(j executor.Job, t *manifest.Prompt) (sdk.Result, error) {
	content, err := p.read(j, t.File)
	if err != nil {
		return sdk.Result{}, err
	}
	if !utf8.Valid(content) {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("the file %q is no text", t.File)}
	}
	var given map[string]string
	if err := json.Unmarshal(j.Input.Args, &given); err != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Invalid, What: "arguments", Err: err}
	}
	known := make(map[string]string, len(t.Arguments))
	for _, a := range t.Arguments {
		known[a.Name] = given[a.Name]
	}
	text, ok := fill(string(content), known, j.Limits.Output)
	if !ok {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, What: "the prompt with its arguments is too long", Hint: fmt.Sprintf("limits.output is %d in %s", j.Limits.Output, p.skill.Home.File)}
	}
	return sdk.Text(text), nil
}

// maxPlace is the length of the longest {{name}}, bytes.
const maxPlace = 2 + 128 + 2

// fill puts values in the places of {{name}}. It passes over the text once, so
// that a value which looks like a place stays what it is; a name that is not
// among the values stays too. It fails if the outcome has more than most bytes,
// unless that is 0.
func fill(text string, values map[string]string, most int64) (string, bool) {
	var b strings.Builder
	for {
		i := strings.Index(text, "{{")
		if i < 0 {
			break
		}
		value, rest, ok := "", "", false
		if n := strings.Index(text[i:min(len(text), i+maxPlace)], "}}"); n > 0 {
			value, ok = values[text[i+2:i+n]]
			rest = text[i+n+2:]
		}
		if !ok { // the next place may begin at the second brace
			b.WriteString(text[:i+1])
			text = text[i+1:]
			continue
		}
		b.WriteString(text[:i])
		b.WriteString(value)
		text = rest
		if most > 0 && int64(b.Len()) > most {
			return "", false
		}
	}
	b.WriteString(text)
	return b.String(), most <= 0 || int64(b.Len()) <= most
}
