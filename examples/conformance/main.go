// Conformance is a skill that serves what the official conformance suite of the
// Model Context Protocol expects of a server: it is called by name, and its
// answers are checked. That an ordinary skill in its cage can do all this is the
// point; the host knows nothing of it.
//
// Tools whose schemas no Go type describes are in the skill conformance-plain.
package main

import (
	_ "embed"
	"errors"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// pixel is one red pixel.
//
//go:embed pixel.png
var pixel []byte

// silence is a sound of one sample.
var silence = []byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00")

// nothing is what a tool without arguments takes.
type nothing struct{}

var (
	_ = answer("test_simple_text", "Answers with a text", guest.Text("This is a simple text response for testing."))
	_ = answer("test_image_content", "Answers with an image", guest.Image(pixel, "image/png"))
	_ = answer("test_audio_content", "Answers with a sound", guest.Audio(silence, "audio/wav"))
	_ = answer("test_embedded_resource", "Answers with an embedded resource",
		guest.Document("test://embedded-resource", "text/plain", "This is an embedded resource content."))
	_ = answer("test_multiple_content_types", "Answers with a text, an image and a resource",
		guest.Text("Multiple content types test:"), guest.Image(pixel, "image/png"),
		guest.Document("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))
	_ = answer("test_streaming_elicitation", "Answers without asking anybody", guest.Text("nothing was asked"))

	_ = guest.Tool("test_error_handling", "Always fails", func(*guest.Call, nothing) (string, error) {
		return "", errors.New("this tool intentionally returns an error for testing")
	})
	_ = guest.Tool("test_tool_with_logging", "Logs three lines, with pauses", logThrice)
	_ = guest.Tool("test_logging_tool", "Logs a line", func(c *guest.Call, _ nothing) (string, error) {
		c.Log("info", "test_logging_tool runs")
		return "logged", nil
	})
	_ = guest.Tool("test_tool_with_progress", "Says three times how far it is, with pauses", progressThrice)
	_ = guest.Tool("test_reconnection", "Takes longer than the stream of its call needs to be closed and resumed", slowly)
	_ = guest.Tool("test_trigger_tool_change", "Says that the list of tools may be another one", announcing("tools"))
	_ = guest.Tool("test_trigger_prompt_change", "Says that the list of prompts may be another one", announcing("prompts"))
)

// answer adds a tool that always says the same.
func answer(name, description string, content ...sdk.Content) bool {
	return guest.Tool(name, description, func(*guest.Call, nothing) (sdk.Result, error) {
		return sdk.Result{Content: content}, nil
	}, guest.Annotations{ReadOnly: true, Idempotent: true})
}

// pause is long enough for a client to see what came before on its own.
const pause = 50 * time.Millisecond

func logThrice(c *guest.Call, _ nothing) (string, error) {
	for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		c.Log("info", line)
		time.Sleep(pause)
	}
	return "Tool with logging executed successfully", nil
}

func progressThrice(c *guest.Call, _ nothing) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		c.Progress(done, 100, "")
		time.Sleep(pause)
	}
	return "Tool with progress executed successfully", nil
}

func slowly(c *guest.Call, _ nothing) (string, error) {
	if !sleep(c, 500*time.Millisecond) {
		return "", c.Context().Err()
	}
	return "Reconnection test completed successfully", nil
}

// sleep reports whether the call was left alone for so long.
func sleep(c *guest.Call, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(pause, time.Until(end))) {
		if c.Cancelled() {
			return false
		}
	}
	return !c.Cancelled()
}

func announcing(kind string) func(*guest.Call, nothing) (string, error) {
	return func(c *guest.Call, _ nothing) (string, error) {
		return "announced", c.Announce(kind)
	}
}

func main() {}
