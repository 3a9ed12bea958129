package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// read takes in the content of the form, by the names of its properties. What
// fits no option is kept as another answer: nothing that the user said is lost.
func (r *reply) read(qs []question, content map[string]any) {
	used := map[string]bool{}
	for i, q := range qs {
		a := answer{ID: q.ID, Question: q.Text, Selected: []string{}}
		var free []string
		for _, key := range []string{name(i), q.ID, q.Text, q.Header} {
			v, ok := content[key]
			if !ok || used[key] {
				continue
			}
			used[key] = true
			free = append(free, a.choose(&q, v)...)
			break
		}
		if v, ok := content[other(i)]; ok {
			used[other(i)] = true
			free = append(free, texts(v)...)
		}
		a.settle(&q, free)
		r.Answers = append(r.Answers, a)
	}
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if said := strings.Join(texts(content[key]), ", "); !used[key] && said != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("an answer to something that was not asked, %.40q: %.400q", key, said))
		}
	}
}

// choose takes v as a choice of q's options and returns what is none.
func (a *answer) choose(q *question, v any) (free []string) {
	if yes, ok := v.(bool); ok && q.Kind == yesno {
		v = map[bool]string{true: "Yes", false: "No"}[yes]
	}
	said := texts(v)
	if len(said) == 1 && q.Kind == multi && q.match(said[0]) == "" {
		if parts := strings.Split(said[0], ","); !slices.ContainsFunc(parts, func(s string) bool { return q.match(s) == "" }) {
			said = parts // labels in one text, as some clients write them
		}
	}
	for _, s := range said {
		label := q.match(s)
		switch {
		case label == "":
			free = append(free, s)
		case !slices.Contains(a.Selected, label):
			a.Selected = append(a.Selected, label)
		}
	}
	return free
}

// match is the label that s means, or "".
func (q *question) match(s string) string {
	s = clean(s)
	for _, o := range q.Options {
		if strings.EqualFold(s, o.Label) || s == o.title() {
			return o.Label
		}
	}
	if q.Kind == yesno {
		return map[string]string{"true": "Yes", "y": "Yes", "false": "No", "n": "No"}[strings.ToLower(s)]
	}
	return ""
}

// settle says what the user's own words are: another answer, or, beside the one
// option that may be chosen, a note on it.
func (a *answer) settle(q *question, free []string) {
	said := strings.Join(free, "\n")
	switch {
	case said == "" && len(a.Selected) == 0:
		a.Unanswered = "skipped"
	case len(a.Selected) > 0 && (q.Kind == choice || q.Kind == yesno):
		a.Notes = said
	default:
		a.Other = said
	}
}

// texts are the texts in v, without empty ones.
func texts(v any) (all []string) {
	switch v := v.(type) {
	case nil:
	case string:
		if s := clean(v); s != "" {
			all = append(all, s)
		}
	case []any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	case map[string]any:
		b, err := json.Marshal(v)
		if err == nil {
			all = append(all, string(b))
		}
	default:
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// take reads the answers that the caller brings: by id, by place, or one for the
// only question.
func (r *reply) take(qs []question, raw json.RawMessage) error {
	for range 4 {
		var inner string
		if json.Unmarshal(raw, &inner) != nil || !strings.HasPrefix(clean(inner), "{") && !strings.HasPrefix(clean(inner), "[") {
			break
		}
		raw = json.RawMessage(inner)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return badAnswers(qs, "this is not JSON: %v", err)
	}
	given := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		given = v
	case []any:
		if len(v) > len(qs) && len(qs) > 1 {
			return badAnswers(qs, "%d answers to %d questions", len(v), len(qs))
		}
		if len(qs) == 1 && len(v) > 1 {
			given[name(0)] = v
			break
		}
		for i, e := range v {
			given[name(i)] = e
		}
	default:
		given[name(0)] = v
	}
	content := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(qs, func(q question) bool {
			return key == q.ID || strings.EqualFold(key, q.Text) || strings.EqualFold(key, q.Header)
		})
		for j := range qs {
			if i < 0 && (key == name(j) || key == other(j)) {
				i = j
			}
		}
		if i < 0 {
			return badAnswers(qs, "no question is called %.80q", key)
		}
		if key == other(i) {
			content[key] = given[key]
			continue
		}
		spread(content, i, given[key])
	}
	r.read(qs, content)
	return nil
}

// spread takes an answer apart that is an object like those of a result.
func spread(content map[string]any, i int, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		content[name(i)] = v
		return
	}
	for _, key := range []string{"selected", "answer", "label", "value"} {
		if e, ok := m[key]; ok {
			content[name(i)] = e
			break
		}
	}
	for _, key := range []string{"other", "notes"} {
		if said := texts(m[key]); len(said) > 0 {
			content[other(i)] = m[key]
		}
	}
}

func badAnswers(qs []question, format string, args ...any) error {
	var ids []string
	for _, q := range qs {
		ids = append(ids, fmt.Sprintf("%q", q.ID))
	}
	return &sdk.Error{Kind: sdk.Invalid, What: "answers: " + fmt.Sprintf(format, args...),
		Hint: fmt.Sprintf(`want an object by the ids of the questions, which are %s, such as {%s: "the label that the user chose"}`, strings.Join(ids, ", "), ids[0])}
}

// told is the reply with its text.
func (r *reply) told() guest.Reply[reply] {
	var b strings.Builder
	missing := map[string]int{}
	for i, a := range r.Answers {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", a.Question)
		for _, s := range a.Selected {
			fmt.Fprintf(&b, "  - %s\n", s)
		}
		if a.Other != "" {
			fmt.Fprintf(&b, "  - in the user's words: %s\n", indent(a.Other))
		}
		if a.Notes != "" {
			fmt.Fprintf(&b, "  the user adds: %s\n", indent(a.Notes))
		}
		if missing[a.Unanswered]++; a.Unanswered != "" {
			fmt.Fprintf(&b, "  no answer (%s)\n", a.Unanswered)
		}
	}
	switch all := len(r.Answers); {
	case missing["declined"] == all:
		b.WriteString("\nThe user declined to answer. Do not take that for consent.\n")
	case missing["dismissed"] == all:
		b.WriteString("\nThe user left the questions without an answer. Do not take that for consent.\n")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nnote: %s\n", w)
	}
	return guest.Reply[reply]{Text: strings.TrimRight(b.String(), "\n"), Structured: *r}
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
