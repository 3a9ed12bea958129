package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/skills/websearch/loopback"
)

// How long an engine is left alone, by what it did and how often.
func TestSuspension(t *testing.T) {
	plain, ddg := &source{kind: bing, name: "bing"}, &source{kind: duckduckgo, name: "duckduckgo"}
	for _, tt := range []struct {
		source   *source
		reading  reading
		failures int
		want     time.Duration
	}{
		{plain, reading{state: stateError}, 1, 5 * time.Second},
		{plain, reading{state: stateTimeout}, 2, 10 * time.Second},
		{plain, reading{state: stateMalformed}, 3, 20 * time.Second},
		{plain, reading{state: stateTooLarge}, 6, 2 * time.Minute},
		{plain, reading{state: stateError}, 1_000_000, 2 * time.Minute},
		{plain, reading{state: stateError, wait: time.Minute}, 1, time.Minute},
		{plain, reading{state: stateBlocked}, 1, 3 * time.Minute},
		{plain, reading{state: stateRateLimited}, 1, 3 * time.Minute},
		{plain, reading{state: stateRateLimited, wait: time.Hour}, 1, time.Hour},
		{plain, reading{state: stateCaptcha}, 1, time.Hour},
		{plain, reading{state: stateCaptcha, wait: suspendRecaptcha}, 1, 7 * 24 * time.Hour},
		{plain, reading{state: stateCaptcha, wait: suspendFirewall}, 1, 15 * 24 * time.Hour},
		{ddg, reading{state: stateCaptcha}, 1, 0}, // it forgets by itself
		{plain, reading{state: stateOK}, 0, 0},
		{plain, reading{state: stateOK, wait: time.Minute}, 0, time.Minute},
	} {
		if got := suspension(tt.source, tt.reading, tt.failures); got != tt.want {
			t.Errorf("%s, %s for the %d. time: %v, want %v", tt.source.name, tt.reading.state, tt.failures, got, tt.want)
		}
	}
}

// stored is what the breaker has kept.
func (w *world) stored() circuits {
	w.t.Helper()
	var c circuits
	if data := w.host.Get("caller", breakerKey); data != nil {
		if err := json.Unmarshal(data, &c); err != nil {
			w.t.Fatal(err)
		}
	}
	return c
}

// store changes what the breaker has kept, as if time had passed.
func (w *world) store(c circuits) {
	w.t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.host.Set("caller", breakerKey, data)
}

func TestBreaker(t *testing.T) {
	w := newWorld(t)
	w.only("bing", "mojeek")
	w.web.Fault("bing", loopback.Text(429, "", "Retry-After", "1800"))
	ask := func(want state) report {
		t.Helper()
		out, _ := w.search(map[string]any{"query": "x"})
		e := out.engine(t, "bing")
		if e.Status != want || out.engine(t, "mojeek").Status != stateOK {
			t.Fatalf("%+v, want %s", out.Engines, want)
		}
		return e
	}
	first := ask(stateRateLimited)
	until, err := time.Parse(time.RFC3339, first.Suspended)
	if left := time.Until(until); err != nil || left < 25*time.Minute || left > 31*time.Minute {
		t.Errorf("%+v", first)
	}
	if again := ask(stateSuspended); again.Suspended != first.Suspended || again.Detail != "after: rate_limited" || len(w.web.Seen("bing")) != 1 {
		t.Errorf("%+v, asked %d times", again, len(w.web.Seen("bing")))
	}
	// When its time is over it is tried again, and a failure is a failure.
	elapse := func() {
		c := w.stored()
		e := c.Engines["bing"]
		e.Until = time.Now().Add(-time.Second).UnixMilli()
		c.Engines["bing"] = e
		w.store(c)
	}
	elapse()
	ask(stateRateLimited)
	if e := w.stored().Engines["bing"]; e.Failures != 2 || len(w.web.Seen("bing")) != 2 {
		t.Errorf("%+v", e)
	}
	// A success forgets everything.
	elapse()
	w.web.Fault("bing", nil)
	ask(stateOK)
	if c := w.stored(); len(c.Engines) != 0 {
		t.Errorf("%+v", c)
	}
	ask(stateOK)
}

// Of the searches that go on at the same time, one tries an engine again.
func TestHalfOpen(t *testing.T) {
	w := newWorld(t)
	w.only("bing", "mojeek")
	base := w.url + "/bing"
	w.store(circuits{Format: breakerFormat, Engines: map[string]circuit{"bing": {Until: time.Now().Add(-time.Second).UnixMilli(), Why: stateCaptcha, Failures: 1, Base: base}}})
	release := make(chan struct{})
	w.web.Fault("bing", stuckUntil(release))
	done := make(chan reply)
	go func() {
		out, _ := w.search(map[string]any{"query": "first"})
		done <- out
	}()
	soon(t, "the first search", func() bool { return len(w.web.Seen("bing")) == 1 })
	out, _ := w.search(map[string]any{"query": "second"})
	if e := out.engine(t, "bing"); e.Status != stateSuspended {
		t.Errorf("the second search: %+v", e)
	}
	close(release)
	if e := (<-done).engine(t, "bing"); e.Status != stateCaptcha || e.Suspended == "" {
		t.Errorf("the first search: %+v", e)
	}
	if len(w.web.Seen("bing")) != 1 {
		t.Errorf("asked %d times", len(w.web.Seen("bing")))
	}
}

// What another search has written meanwhile is kept.
func TestBreakerConflict(t *testing.T) {
	w := newWorld(t)
	w.only("bing", "mojeek")
	release := make(chan struct{})
	w.web.Fault("bing", stuckUntil(release))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.search(map[string]any{"query": "x"})
	}()
	soon(t, "the search", func() bool { return len(w.web.Seen("bing")) == 1 })
	w.store(circuits{Format: breakerFormat, Engines: map[string]circuit{"brave": {Until: 1, Why: stateBlocked, Failures: 3, Base: "b"}}})
	close(release)
	<-done
	if c := w.stored(); c.Engines["brave"].Failures != 3 || c.Engines["bing"].Why != stateCaptcha {
		t.Errorf("%+v", c)
	}
}

// State that cannot be read, a clock that was set back and an address that is
// another one keep no engine from being asked for long.
func TestBreakerStrange(t *testing.T) {
	far := time.Now().AddDate(100, 0, 0).UnixMilli()
	for name, tt := range map[string]struct {
		state string
		want  state
	}{
		"no_json":       {`{"format":1,`, stateOK},
		"null":          {`null`, stateOK},
		"other_format":  {`{"format":99,"engines":{"bing":{"until":9999999999999,"why":"captcha","failures":1}}}`, stateOK},
		"other_address": {`{"format":1,"engines":{"bing":{"until":9999999999999,"why":"captcha","failures":1,"base":"https://old.example"}}}`, stateOK},
		"far_away":      {`{"format":1,"engines":{"bing":{"until":` + jsonOf(t, far) + `,"why":"captcha","failures":1,"base":"BASE"}}}`, stateSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.only("bing", "mojeek")
			w.host.Set("caller", breakerKey, []byte(strings.Replace(tt.state, "BASE", w.url+"/bing", 1)))
			out, _ := w.search(map[string]any{"query": "x"})
			e := out.engine(t, "bing")
			if e.Status != tt.want {
				t.Errorf("%+v", e)
			}
			if until, err := time.Parse(time.RFC3339, e.Suspended); tt.want == stateSuspended && (err != nil || time.Until(until) > suspendFirewall+time.Minute) {
				t.Errorf("%+v", e)
			}
			// The operator can have all of them asked again at once.
			w.set["max_suspension_ms"] = 0
			if out, _ := w.search(map[string]any{"query": "x"}); out.engine(t, "bing").Status != stateOK {
				t.Errorf("%+v", out.Engines)
			}
		})
	}
}

// arXiv asks for three seconds between two requests.
func TestPause(t *testing.T) {
	w := newWorld(t)
	w.only("arxiv", "mojeek")
	w.search(map[string]any{"query": "x"})
	out, _ := w.search(map[string]any{"query": "y"})
	if e := out.engine(t, "arxiv"); e.Status != stateSuspended && e.Status != stateOK || e.Status == stateOK != (len(w.web.Seen("arxiv")) == 2) {
		t.Errorf("%+v", e)
	} else if e.Status == stateSuspended && !strings.Contains(e.Detail, "pause") {
		t.Errorf("%+v", e)
	}
	if e := w.stored().Engines["arxiv"]; e.Failures != 0 || e.Until == 0 {
		t.Errorf("%+v", e)
	}
}

// StackExchange says how long it wants to be left alone.
func TestBackoff(t *testing.T) {
	w := newWorld(t)
	w.only("stackexchange", "mojeek")
	w.web.Fault("stackexchange", loopback.Text(200, `{"items":[],"backoff":600}`))
	w.search(map[string]any{"query": "x"})
	if out, _ := w.search(map[string]any{"query": "x"}); out.engine(t, "stackexchange").Status != stateSuspended {
		t.Errorf("%+v", out.Engines)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
