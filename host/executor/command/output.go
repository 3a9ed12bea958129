package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// Bounds in bytes: what is kept of stderr, and what of either stream stands in
// the text of a failure.
const (
	maxStderr = 64 << 10
	maxShown  = 8 << 10
)

// A stream takes in what a program writes. It is read by others only after the
// program has ended.
type stream struct {
	most int64  // bytes that are kept
	tail bool   // keep the last ones; else the first, and call full at the first one more
	full func() //
	data []byte
	lost int64 // bytes that were not kept
}

// Write keeps what it may of b. It never fails: a program must not hang because
// nobody reads what it writes.
func (s *stream) Write(b []byte) (int, error) {
	n := len(b)
	room := int(s.most) - len(s.data)
	switch {
	case n <= room:
		s.data = append(s.data, b...)
	case s.tail:
		s.data = append(s.data, b...)
		cut := len(s.data) - int(s.most)
		s.lost += int64(cut)
		s.data = append(s.data[:0], s.data[cut:]...)
	default:
		s.data = append(s.data, b[:room]...)
		if s.lost == 0 && s.full != nil {
			s.full()
		}
		s.lost += int64(n - room)
	}
	return n, nil
}

// text returns what was kept as UTF-8.
func (s *stream) text() string { return strings.ToValidUTF8(string(s.data), "\uFFFD") }

// last returns the end of it, of at most n bytes, for a message.
func (s *stream) last(n int) string {
	text := strings.TrimRight(s.text(), "\n")
	if len(text) <= n && s.lost == 0 {
		return text
	}
	if s.lost > 0 && !s.tail {
		text += "…"
	}
	if len(text) > n {
		text = text[len(text)-n:]
		for text != "" && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
		text = "…" + text
	} else if s.tail {
		text = "…" + text
	}
	return text
}

// A report is the structured result of a tool that promises none of its own.
type report struct {
	Exit    int    `json:"exit_code"`        // -1 if a signal ended it
	Signal  string `json:"signal,omitempty"` // such as "SIGKILL"
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`                // its end, if it was long
	Lost    int64  `json:"stderr_lost,omitempty"` // bytes before that
	NotUTF8 bool   `json:"not_utf8,omitempty"`    // what was not has become U+FFFD
}

// result is what a program has come to that ended by itself.
func (r *run) result(state sandbox.State) (sdk.Result, error) {
	switch {
	case r.out.lost > 0:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the output of %s exceeds %d bytes", r.name(), r.job.Limits.Output),
			Hint: "ask for less, or see limits.output in the manifest; it begins with:\n" + clip(r.out.text(), maxShown)}
	case state.OOM:
		return sdk.Result{}, r.stopped(&sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("%s needs more memory than %d bytes", r.name(), r.job.Limits.Memory), Hint: "limits.memory in its manifest"})
	case state.Signal == "" && slices.Contains(r.tool.command.Success, state.Exit):
		return r.success(state)
	case r.job.Soft != nil && r.job.Soft.Err() != nil: // it did as it was asked
		return sdk.Result{}, r.stopped(asked(r.job.Soft))
	}
	return r.failure(state)
}

// asked is the error of a program that ended because soft was done.
func asked(soft context.Context) error {
	var stop *sdk.Stop
	if errors.As(context.Cause(soft), &stop) {
		return &sdk.Error{Kind: sdk.Canceled, What: "the program was stopped", Err: stop}
	}
	return executor.Ended(soft)
}

// success is the result of a program whose exit status is none of failure.
func (r *run) success(state sandbox.State) (sdk.Result, error) {
	text := r.out.text()
	if !r.tool.json {
		shown := text
		if shown == "" {
			shown = r.err.last(maxShown)
		}
		return r.structured(sdk.Text(shown), state)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, r.out.data); err != nil || !utf8.Valid(r.out.data) {
		if err == nil {
			err = fmt.Errorf("not UTF-8")
		}
		return sdk.Result{}, r.stopped(&sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("the output of %s is not the one JSON value that the tool promises", r.name()), Err: err})
	}
	result := sdk.Text(text)
	result.Structured = compact.Bytes()
	return result, nil
}

// failure is the result of a program that failed.
func (r *run) failure(state sandbox.State) (sdk.Result, error) {
	how := fmt.Sprintf("%s failed with exit status %d", r.name(), state.Exit)
	if state.Signal != "" {
		how = fmt.Sprintf("%s was ended by %s", r.name(), state.Signal)
	}
	text := how
	if s := r.shown(); s != "" {
		text = s + "\n" + how
	}
	result, err := r.structured(sdk.Text(text), state)
	result.Failed = true
	return result, err
}

func (r *run) structured(result sdk.Result, state sandbox.State) (sdk.Result, error) {
	raw, err := json.Marshal(report{Exit: state.Exit, Signal: state.Signal, Stdout: r.out.text(), Stderr: r.err.text(), Lost: r.err.lost,
		NotUTF8: !utf8.Valid(r.out.data) || !utf8.Valid(r.err.data)})
	if err != nil {
		return sdk.Result{}, &sdk.Error{Kind: sdk.Internal, Op: "command.Run", What: "result", Err: err}
	}
	result.Structured = raw
	return result, nil
}

// stopped is err with what the program had written until then.
func (r *run) stopped(err error) error {
	if s := r.shown(); s != "" {
		return fmt.Errorf("%w; %s had written:\n%s", err, r.name(), s)
	}
	return err
}

// shown is what a program wrote, for the text of a failure.
func (r *run) shown() string {
	var parts []string
	for _, s := range []*stream{&r.out, &r.err} {
		if text := s.last(maxShown); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// name is the program as the manifest has it.
func (r *run) name() string { return r.tool.command.Program }

// clip returns the beginning of s, of at most n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
