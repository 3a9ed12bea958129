package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

const two = `[{"question":"Which database?","header":"Database","options":[{"label":"Postgres","description":"runs already"},{"label":"SQLite"}]},
	{"id":"feat","question":"Which features?","multiSelect":true,"options":["Search","Export, CSV","Login"]}]`

// run goes through a call in the rounds that it takes; a is the user's answer.
func run(t *testing.T, args map[string]any, a *sdk.Answer) (reply, string, sdk.Question, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	h := &guesttest.Host{Now: func() time.Time { now = now.Add(1500 * time.Millisecond); return now }}
	in := sdk.Input{Tool: "AskUserQuestion", Args: raw}
	r, err := guest.Run(t.Context(), h, in)
	var q sdk.Question
	if err == nil && len(r.Questions) > 0 {
		q = r.Questions[form]
		if a == nil {
			return reply{}, "", q, nil
		}
		in.State, in.Answers = r.State, map[string]sdk.Answer{form: *a}
		r, err = guest.Run(t.Context(), h, in)
	}
	if err != nil {
		return reply{}, "", q, err
	}
	var out reply
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		t.Fatal(err)
	}
	return out, r.Content[0].Text, q, nil
}

func said(content string) *sdk.Answer {
	return &sdk.Answer{Action: "accept", Content: json.RawMessage(content), Channel: "page"}
}

func TestForm(t *testing.T) {
	_, _, q, err := run(t, map[string]any{"questions_json": two}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{` +
		`"q1":{"description":"Which database?","oneOf":[{"const":"Postgres","title":"Postgres — runs already"},{"const":"SQLite","title":"SQLite"}],"title":"Database","type":"string"},` +
		`"q1_other":{"description":"Another answer, in your own words","maxLength":2000,"title":"Other (Database)","type":"string"},` +
		`"q2":{"description":"Which features?","items":{"anyOf":[{"const":"Search","title":"Search"},{"const":"Export, CSV","title":"Export, CSV"},{"const":"Login","title":"Login"}]},"title":"Question 2","type":"array"},` +
		`"q2_other":{"description":"Another answer, in your own words","maxLength":2000,"title":"Other (Question 2)","type":"string"}}}`
	if q.Kind != sdk.QuestionForm || !q.Lenient || q.Message != "Please answer these 2 questions." || string(q.Schema) != want {
		t.Errorf("%+v\n%s", q, q.Schema)
	}
	_, _, q, err = run(t, map[string]any{"questions_json": `[{"question":"Name?","placeholder":"Ada"}]`}, nil)
	if err != nil || q.Message != "Name?" || string(q.Schema) != `{"type":"object","properties":{"q1":{"description":"such as: Ada","maxLength":2000,"title":"Question 1","type":"string"}}}` {
		t.Errorf("%+v %s %v", q, q.Schema, err)
	}
	_, _, q, err = run(t, map[string]any{"questions_json": `{"question":"Sure?","type":"yes_no"}`}, nil)
	if err != nil || !strings.Contains(string(q.Schema), `"oneOf":[{"const":"Yes","title":"Yes"},{"const":"No","title":"No"}]`) || !strings.Contains(string(q.Schema), "q1_other") {
		t.Errorf("%s %v", q.Schema, err)
	}
}

func TestAnswers(t *testing.T) {
	qs := `[{"question":"DB?","options":["Postgres","SQLite"]},{"question":"Features?","type":"multi","options":["Search","Export, CSV","Login"]},{"question":"Name?"},{"question":"Sure?","type":"yesno"}]`
	empty := []string{}
	for content, want := range map[string][4]answer{
		`{}`: {{Unanswered: "skipped"}, {Unanswered: "skipped"}, {Unanswered: "skipped"}, {Unanswered: "skipped"}},
		`{"q1":"SQLite","q2":["Search","Login"],"q3":"Ada","q4":"Yes"}`:        {{Selected: []string{"SQLite"}}, {Selected: []string{"Search", "Login"}}, {Other: "Ada"}, {Selected: []string{"Yes"}}},
		`{"q1":" sqlite ","q2":"Search, Login","q3":7,"q4":true}`:              {{Selected: []string{"SQLite"}}, {Selected: []string{"Search", "Login"}}, {Other: "7"}, {Selected: []string{"Yes"}}},
		`{"q1":["Postgres"],"q2":"Export, CSV","q3":["a","b"],"q4":false}`:     {{Selected: []string{"Postgres"}}, {Selected: []string{"Export, CSV"}}, {Other: "a\nb"}, {Selected: []string{"No"}}},
		`{"q1":"Oracle","q2":["Search","Mail"],"q4":"perhaps"}`:                {{Other: "Oracle"}, {Selected: []string{"Search"}, Other: "Mail"}, {Unanswered: "skipped"}, {Other: "perhaps"}},
		`{"q1":"Postgres","q1_other":"but 16","q2_other":"Mail","q4":"no"}`:    {{Selected: []string{"Postgres"}, Notes: "but 16"}, {Other: "Mail"}, {Unanswered: "skipped"}, {Selected: []string{"No"}}},
		`{"q1_other":"Oracle","q2":[],"q2_other":"","q3":"  ","q4_other":"x"}`: {{Other: "Oracle"}, {Unanswered: "skipped"}, {Unanswered: "skipped"}, {Other: "x"}},
		`{"DB?":"SQLite","Features?":["Login"],"q3":null,"q4":{"a":1}}`:        {{Selected: []string{"SQLite"}}, {Selected: []string{"Login"}}, {Unanswered: "skipped"}, {Other: `{"a":1}`}},
		`{"q1":["SQLite","Postgres"],"q2":["Search","Search"]}`:                {{Selected: []string{"SQLite", "Postgres"}}, {Selected: []string{"Search"}}, {Unanswered: "skipped"}, {Unanswered: "skipped"}},
	} {
		got, text, _, err := run(t, map[string]any{"questions_json": qs}, said(content))
		if err != nil {
			t.Fatal(content, err)
		}
		for i, q := range []string{"DB?", "Features?", "Name?", "Sure?"} {
			w := want[i]
			w.ID, w.Question = name(i), q
			if w.Selected == nil {
				w.Selected = empty
			}
			if !reflect.DeepEqual(got.Answers[i], w) {
				t.Errorf("%s: got %+v, want %+v", content, got.Answers[i], w)
			}
		}
		if got.Channel != "page" || got.DurationMS != 1500 || len(got.Warnings) != 0 || !strings.HasPrefix(text, "DB?\n") {
			t.Errorf("%s: %+v\n%s", content, got, text)
		}
	}
	slow := said(`{"q1":"SQLite"}`)
	slow.Took = 60000 // it was asked by an earlier call
	if got, _, _, err := run(t, map[string]any{"questions_json": qs}, slow); err != nil || got.DurationMS != 60000 {
		t.Errorf("%+v %v", got, err)
	}
	got, text, _, err := run(t, map[string]any{"questions_json": qs}, said(`{"q1":"SQLite","comment":"hurry up"}`))
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(text, "hurry up") {
		t.Errorf("what was said beside the questions is lost: %+v %v", got, err)
	}
}

// To say no is an answer, and no consent.
func TestRefused(t *testing.T) {
	for action, why := range map[string]string{"decline": "declined", "cancel": "dismissed"} {
		got, text, _, err := run(t, map[string]any{"questions_json": two}, &sdk.Answer{Action: action, Channel: "mrtr"})
		if err != nil || got.Answers[0].Unanswered != why || got.Answers[1].Unanswered != why || got.Answers[1].ID != "feat" || got.Channel != "mrtr" || !strings.Contains(text, "Do not take that for consent") {
			t.Errorf("%+v %s %v", got, text, err)
		}
	}
}

// All that models are known to send is understood, as the JSON, a string of it,
// and a string of a string.
func TestSpellings(t *testing.T) {
	want, _, err := parse(two)
	if err != nil {
		t.Fatal(err)
	}
	once, _ := json.Marshal(two)
	twice, _ := json.Marshal(string(once))
	for _, in := range []string{two, string(once), string(twice), `{"questions":` + two + `}`, `{"questions":` + string(once) + `}`} {
		got, warnings, err := parse(in)
		if err != nil || !reflect.DeepEqual(got, want) || warnings != nil {
			t.Errorf("%s: %+v %v %v", in, got, warnings, err)
		}
	}
	for in, kind := range map[string]string{
		`"Just a question?"`:   "", // a string is looked into for JSON
		`["Just a question?"]`: text,
		`[{"prompt":"x"}]`:     text,
		`[{"text":"x","choices":[{"value":"a"},{"name":"b","desc":"d"}]}]`:            choice,
		`[{"question":"x","options":["a","b"],"multiple":true}]`:                      multi,
		`[{"question":"x","options":["a","b"],"multi_select":"true"}]`:                multi,
		`[{"question":"x","options":["a","b"],"multiSelect":null}]`:                   choice,
		`[{"question":"x","options":["a","b"],"type":"single_choice"}]`:               choice,
		`[{"question":"x","options":["a","b"],"type":"Multi-Choice"}]`:                multi,
		`[{"question":"x","options":["a","b"],"type":"free_text"}]`:                   text,
		`[{"question":"x","options":["ja","nein"],"type":"boolean"}]`:                 yesno,
		`[{"question":"x","id":7,"options":["a","b","c","d","e","f","g","h"]}]`:       choice,
		`[{"question":"x","options":[{"label":"a","preview":"..."},"b"],"extra":{}}]`: choice,
	} {
		qs, _, err := parse(in)
		if kind == "" && err == nil || kind != "" && (err != nil || qs[0].Kind != kind) {
			t.Errorf("%s: %+v %v", in, qs, err)
		}
	}
	qs, warnings, err := parse(`[{"question":"x","header":"A very long header"},{"question":"y","header":"exactly 12ch"},{"question":"z","header":"日本語日本語日本語日本語日"}]`)
	if err != nil || qs[0].Header != "A very long" || qs[1].Header != "exactly 12ch" || qs[2].Header != "日本語日本語日本語日本語" || len(warnings) != 2 {
		t.Errorf("%+v %q %v", qs, warnings, err)
	}
}

// malformed_questions_json: each complaint says what is wrong, and shows what is
// right.
func TestMalformed(t *testing.T) {
	for in, want := range map[string]string{
		"":     "not JSON",
		"[":    "not JSON",
		"7":    "no list",
		"null": "no list",
		"[]":   "0 questions",
		`[{"question":"x"},{"question":"x"},{"question":"x"},{"question":"x"},{"question":"x"}]`: "5 questions",
		`[{}]`:                               `no text under "question"`,
		`[{"question":" "}]`:                 `no text under "question"`,
		`[7]`:                                "question 1",
		`[{"question":"x"},{"question":7}]`:  "question 2",
		`[{"question":"x","options":["a"]}]`: "1 options",
		`[{"question":"x","options":["1","2","3","4","5","6","7","8","9"]}]`:           "9 options",
		`[{"question":"x","type":"choice"}]`:                                           "0 options",
		`[{"question":"x","type":"stars"}]`:                                            `type "stars"`,
		`[{"question":"x","options":["a","A"]}]`:                                       "two options",
		`[{"question":"x","options":["a",""]}]`:                                        "option 2 has no label",
		`[{"question":"x","options":["a",null]}]`:                                      "option 2 has no label",
		`[{"question":"x","options":["a",[]]}]`:                                        "an option is a text",
		`[{"question":"x","options":"a"}]`:                                             "question 1",
		`[{"question":"x","options":["a","b"],"multiSelect":"some"}]`:                  "neither true nor false",
		`[{"question":"x","id":"a"},{"question":"y","id":"a"}]`:                        "the id",
		`[{"question":"` + strings.Repeat("x", maxText+1) + `"}]`:                      "too long",
		`[{"question":"x","options":["a","` + strings.Repeat("x", maxLabel+1) + `"]}]`: "option 2 is too long",
	} {
		_, _, _, err := run(t, map[string]any{"questions_json": in}, nil)
		if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `[{"question": "Which database`) {
			t.Errorf("%.80s: %v", in, err)
		}
	}
	if _, _, _, err := run(t, map[string]any{"questions_json": strings.Repeat(" ", maxAll+1)}, nil); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("%v", err)
	}
	// The example is one.
	if _, _, err := parse(example[strings.Index(example, "["):]); err != nil {
		t.Error(err)
	}
}

// The second call, with what the user said in the conversation.
func TestAnswersOfTheCaller(t *testing.T) {
	for _, given := range []any{
		map[string]any{"q1": "SQLite", "feat": []string{"Login", "Search"}},
		map[string]any{"Which database?": "SQLite", "Which features?": "Login, Search"},
		map[string]any{"database": "sqlite", "q2": []string{"Login", "Search"}},
		[]any{"SQLite", []string{"Login", "Search"}},
		map[string]any{"q1": map[string]any{"selected": []string{"SQLite"}}, "feat": map[string]any{"answer": []string{"Login", "Search"}}},
		`{"q1":"SQLite","feat":["Login","Search"]}`,
	} {
		got, _, _, err := run(t, map[string]any{"questions_json": two, "answers": given}, nil)
		if err != nil || got.Channel != "call" || got.DurationMS != 0 || !reflect.DeepEqual(got.Answers[0].Selected, []string{"SQLite"}) || !reflect.DeepEqual(got.Answers[1].Selected, []string{"Login", "Search"}) {
			t.Errorf("%v: %+v %v", given, got, err)
		}
	}
	got, _, _, err := run(t, map[string]any{"questions_json": two, "answers": map[string]any{"q1": map[string]any{"selected": "Postgres", "notes": "16"}, "q2_other": "none"}}, nil)
	if err != nil || got.Answers[0].Notes != "16" || got.Answers[1].Other != "none" {
		t.Errorf("%+v %v", got, err)
	}
	single := `[{"question":"x","type":"multi","options":["a","b"]}]`
	for _, given := range []any{"b", []string{"b"}} {
		if got, _, _, err := run(t, map[string]any{"questions_json": single, "answers": given}, nil); err != nil || !reflect.DeepEqual(got.Answers[0].Selected, []string{"b"}) {
			t.Errorf("%v: %+v %v", given, got, err)
		}
	}
	for _, given := range []any{map[string]any{"q9": "x"}, []any{1, 2, 3}, map[string]any{"Who": "me"}} {
		if _, _, _, err := run(t, map[string]any{"questions_json": two, "answers": given}, nil); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), `"feat"`) {
			t.Errorf("%v: %v", given, err)
		}
	}
	if _, _, q, err := run(t, map[string]any{"questions_json": two, "answers": nil}, nil); err != nil || q.Schema == nil {
		t.Errorf("without answers the user is asked: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(two, `{"q1":"x","feat":["y"]}`)
	f.Add(`[{"question":"x","type":"yesno"}]`, `[true]`)
	f.Fuzz(func(t *testing.T, in, content string) {
		qs, _, err := parse(in)
		if err != nil {
			if k := sdk.KindOf(err); k != sdk.Invalid && k != sdk.Limit {
				t.Fatal(err)
			}
			return
		}
		if len(qs) == 0 || len(qs) > maxQuestions || !json.Valid(schema(qs)) {
			t.Fatalf("%+v", qs)
		}
		var r reply
		if r.take(qs, json.RawMessage(content)) == nil {
			if len(r.Answers) != len(qs) || r.told().Text == "" {
				t.Fatalf("%+v", r)
			}
		}
	})
}
