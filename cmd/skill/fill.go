package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/host/ask/form"
	"github.com/skillhost/skill/sdk"
)

// filledBy makes an answer of what --option and --text say.
func filledBy(v *ask.View, options, texts []string) (ask.Reply, error) {
	r := ask.Reply{Action: "accept", Filled: map[string]map[string][]string{}}
	put := func(p *ask.Part, x *form.Field, value string) {
		if r.Filled[p.ID] == nil {
			r.Filled[p.ID] = map[string][]string{}
		}
		r.Filled[p.ID][x.Name] = append(r.Filled[p.ID][x.Name], value)
	}
	chooses := func(x *form.Field) bool {
		return x.Kind == form.Choice || x.Kind == form.Several || x.Kind == form.YesNo
	}
	for _, o := range options {
		p, x, value, err := meant(v, "--option", o, chooses)
		if err != nil {
			return r, err
		}
		if value, err = chosen(x, value); err != nil {
			return r, err
		}
		put(p, x, value)
	}
	for _, s := range texts {
		p, x, value, err := meant(v, "--text", s, func(x *form.Field) bool { return !chooses(x) })
		if err != nil {
			return r, err
		}
		put(p, x, value)
	}
	return r, nil
}

// meant finds the field that [NAME=]VALUE is for, among those that fit. Without
// a name it is the only one, but for those that take another answer.
func meant(v *ask.View, flag, s string, fits func(*form.Field) bool) (*ask.Part, *form.Field, string, error) {
	name, value, named := strings.Cut(s, "=")
	type place struct {
		p *ask.Part
		x *form.Field
	}
	var all, plain []place
	var names []string
	for i := range v.Parts {
		for j := range v.Parts[i].Fields {
			at := place{&v.Parts[i], &v.Parts[i].Fields[j]}
			if named && (at.x.Name == name || at.p.ID+"."+at.x.Name == name) {
				if !fits(at.x) {
					return nil, nil, "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s %.80q: the field takes something else", flag, s), Hint: "see skill answer --list"}
				}
				return at.p, at.x, value, nil
			}
			if !fits(at.x) {
				continue
			}
			all, names = append(all, at), append(names, at.x.Name)
			if !strings.HasSuffix(at.x.Name, "_other") {
				plain = append(plain, at)
			}
		}
	}
	if len(plain) == 0 {
		plain = all
	}
	switch len(plain) {
	case 1:
		return plain[0].p, plain[0].x, s, nil
	case 0:
		return nil, nil, "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s %.80q: the question has no field for it", flag, s), Hint: "see skill answer --list"}
	}
	return nil, nil, "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s %.80q: which field is meant?", flag, s), Hint: "write NAME=VALUE, with one of " + strings.Join(names, ", ")}
}

// chosen is the option that value means, as form.Form.Read takes it.
func chosen(x *form.Field, value string) (string, error) {
	want := strings.ToLower(strings.TrimSpace(value))
	if x.Kind == form.YesNo {
		switch want {
		case "yes", "y", "true":
			return "true", nil
		case "no", "n", "false":
			return "false", nil
		}
		return "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s: %.80q", x.Name, value), Hint: "want yes or no"}
	}
	var labels []string
	begins := -1
	for i, o := range x.Options {
		label := strings.ToLower(o.Label)
		if o.Value == value || label == want {
			return strconv.Itoa(i), nil
		}
		if want != "" && strings.HasPrefix(label, want) {
			if begins >= 0 {
				begins = len(x.Options) // more than one
			} else {
				begins = i
			}
		}
		labels = append(labels, fmt.Sprintf("%d %s", i+1, form.Line(o.Label)))
	}
	if n, err := strconv.Atoi(want); err == nil && n >= 1 && n <= len(x.Options) {
		return strconv.Itoa(n - 1), nil
	}
	if begins >= 0 && begins < len(x.Options) {
		return strconv.Itoa(begins), nil
	}
	return "", &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("%s: no option %.80q", x.Name, value), Hint: "there are " + strings.Join(labels, "; ")}
}
