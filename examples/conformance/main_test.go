package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// TestAnswers: what the suite checks of tools that ask nobody, and the modules
// of the manifest that serve no client.
func TestAnswers(t *testing.T) {
	for tool, x := range map[string]struct{ args, want string }{
		"test_simple_text":            {`{}`, "This is a simple text response for testing."},
		"test_multiple_content_types": {`{}`, "Multiple content types test:"},
		"greet":                       {`{"name":"World"}`, "Hello, World!"},
		"slow_compute":                {`{"seconds":0.01,"label":"x"}`, "computed for 0.01 s: x"},
		"failing_job":                 {`{}`, "the job failed"},
		"read_template":               {`{"id":"1\"2"}`, `{"data":"Data for ID: 1\"2","id":"1\"2","templateTest":true}`},
		"read_watched":                {`{}`, "Watched resource content, touched 0 times"},
		"test_tool_with_logging":      {`{}`, "Tool with logging executed successfully"},
	} {
		host := &guesttest.Host{}
		r, err := host.Call(t.Context(), tool, x.args)
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		if got := r.Content[0].Text; got != x.want {
			t.Errorf("%s: got %q, want %q", tool, got, x.want)
		}
		if r.Failed != (tool == "failing_job") {
			t.Errorf("%s: failed %t", tool, r.Failed)
		}
	}
}

func TestErrorIsTheTools(t *testing.T) {
	_, err := new(guesttest.Host).Call(t.Context(), "test_error_handling", `{}`)
	if sdk.KindOf(err) != sdk.Guest {
		t.Errorf("got %v", err)
	}
}

func TestTouched(t *testing.T) {
	host := &guesttest.Host{}
	for _, tool := range []string{"test_touch_watched_resource", "test_touch_watched_resource", "test_trigger_tool_change", "test_trigger_prompt_change"} {
		if _, err := host.Call(t.Context(), tool, `{}`); err != nil {
			t.Fatal(tool, err)
		}
	}
	if got, want := strings.Join(host.Announced(), " "), "test://watched-resource test://watched-resource tools prompts"; got != want {
		t.Errorf("announced %q, want %q", got, want)
	}
	if r, err := host.Call(t.Context(), "read_watched", `{}`); err != nil || !strings.Contains(r.Content[0].Text, "touched 2 times") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestQuestions: who is asked what, and what becomes of the answers.
func TestQuestions(t *testing.T) {
	form := func(content string) sdk.Answer {
		return sdk.Answer{Action: "accept", Content: json.RawMessage(content)}
	}
	model := form(`{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}`)
	for tool, x := range map[string]struct {
		client  sdk.Client
		answers map[string]sdk.Answer // in one round, or one after the other
		want    string
	}{
		"test_input_required_result_elicitation":   {sdk.Client{}, map[string]sdk.Answer{"user_name": form(`{"name":"Alice"}`)}, "Hello, Alice!"},
		"test_input_required_result_sampling":      {sdk.Client{}, map[string]sdk.Answer{"capital_question": model}, "Sampling response: Paris"},
		"test_input_required_result_list_roots":    {sdk.Client{}, map[string]sdk.Answer{"client_roots": form(`{"roots":[{"uri":"file:///a"}]}`)}, "Client exposed 1 root(s): file:///a"},
		"test_input_required_result_request_state": {sdk.Client{}, map[string]sdk.Answer{"confirm": form(`{"ok":true}`)}, "state-ok: confirmed true"},
		"test_input_required_result_multi_round":   {sdk.Client{}, map[string]sdk.Answer{"step1": form(`{"name":"Alice"}`), "step2": form(`{"color":"blue"}`)}, "Multi-round complete: Alice likes blue"},
		"test_input_required_result_multiple_inputs": {sdk.Client{}, map[string]sdk.Answer{
			"user_name": form(`{"name":"Alice"}`), "greeting": model, "client_roots": form(`{"roots":[]}`)}, "Paris Alice: 0 root(s) visible"},
		"test_input_required_result_capabilities": {sdk.Client{Sampling: true}, map[string]sdk.Answer{"greeting": model}, "1 answers"},
		"test_missing_capability":                 {sdk.Client{Sampling: true}, nil, "the client has a model"},
		"multi_input":                             {sdk.Client{}, map[string]sdk.Answer{"first": form(`{"name":"a"}`), "second": form(`{"name":"b"}`)}, "2 answers"},
		"test_tool_with_task":                     {sdk.Client{}, map[string]sdk.Answer{"user_name": form(`{"name":"Alice"}`)}, "Done for Alice"},
		"prompt_asks":                             {sdk.Client{}, map[string]sdk.Answer{"user_context": form(`{"context":"x"}`)}, `Use this context: {"context":"x"}`},
	} {
		in := sdk.Input{Tool: tool, Client: x.client}
		asked := map[string]bool{}
		for range 4 {
			r, err := guest.Run(t.Context(), nil, in)
			if err != nil {
				t.Fatalf("%s: %v", tool, err)
			}
			if len(r.Questions) == 0 {
				if got := r.Content[0].Text; got != x.want {
					t.Errorf("%s: got %q, want %q", tool, got, x.want)
				}
				break
			}
			in.Answers, in.State = map[string]sdk.Answer{}, r.State
			for id := range r.Questions {
				if in.Answers[id] = x.answers[id]; asked[id] || in.Answers[id].Action == "" {
					t.Fatalf("%s asks %q, again: %t", tool, id, asked[id])
				}
				asked[id] = true
			}
		}
		if len(asked) != len(x.answers) {
			t.Errorf("%s asked %v, want %d questions", tool, asked, len(x.answers))
		}
	}
}

func TestDeclined(t *testing.T) {
	_, err := guest.Run(t.Context(), nil, sdk.Input{Tool: "test_input_required_result_elicitation", Answers: map[string]sdk.Answer{"user_name": {Action: "decline"}}})
	if sdk.KindOf(err) != sdk.Guest {
		t.Errorf("got %v", err)
	}
}

func TestMedia(t *testing.T) {
	if _, err := png.Decode(bytes.NewReader(pixel)); err != nil {
		t.Error(err)
	}
	if n := len(silence); n != 46 || silence[4] != byte(n-8) {
		t.Errorf("a WAV of %d bytes says %d", n, silence[4])
	}
	file, err := os.ReadFile("pixel.png")
	if err != nil || !bytes.Equal(file, pixel) {
		t.Errorf("the resource is another image: %v", err)
	}
}
