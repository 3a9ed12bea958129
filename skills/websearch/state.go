package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
)

// A state is how an engine did in one search.
type state string

const (
	stateOK          state = "ok"           // it has results
	stateEmpty       state = "empty"        // it found nothing
	stateCaptcha     state = "captcha"      // it asks for a human
	stateBlocked     state = "blocked"      // it refuses to answer
	stateRateLimited state = "rate_limited" // it was asked too often
	stateTimeout     state = "timeout"
	stateLate        state = "late"      // enough others had answered: it was not waited for
	stateMalformed   state = "malformed" // the answer cannot be understood
	stateTooLarge    state = "too_large"
	stateDenied      state = "denied"    // the operator does not let this skill reach it
	stateNoKey       state = "no_key"    // it needs a key that is not set
	stateSuspended   state = "suspended" // it is left alone for a while
	stateSkipped     state = "skipped"   // it cannot do what was asked for
	stateError       state = "error"
)

// How long engines are left alone (SearXNG's times, which its operators have
// found by experience).
const (
	suspendError     = 5 * time.Second // doubled with every failure in a row
	suspendErrorMost = 2 * time.Minute
	suspendBlocked   = 3 * time.Minute
	suspendRate      = 3 * time.Minute
	suspendCaptcha   = time.Hour
	suspendRecaptcha = 7 * 24 * time.Hour
	suspendFirewall  = 15 * 24 * time.Hour
)

// judge says what an answer means, before its text is read if the status says
// enough.
func judge(s *source, a answer) reading {
	if e := a.first("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return reading{state: stateMalformed, detail: "the answer is compressed in a way that was not asked for"}
	}
	switch {
	case a.status == 204:
		return reading{state: stateEmpty}
	case a.status < 300:
		return located(s.read(s, a))
	case a.status == 400 && bytes.Contains(a.body, []byte("throttle_violation")): // api.stackexchange.com
		return reading{state: stateRateLimited, detail: "HTTP 400", wait: retryAfter(a)}
	case a.status == 429:
		if r, ok := challenged(a.body); ok {
			return r
		}
		return reading{state: stateRateLimited, detail: "HTTP 429", wait: retryAfter(a)}
	case a.status == 401 || a.status == 402 || a.status == 403 || a.status == 503:
		if r, ok := challenged(a.body); ok {
			return r
		}
		if a.status == 503 {
			break
		}
		if a.first("X-Ratelimit-Remaining") == "0" { // api.github.com
			return reading{state: stateRateLimited, detail: fmt.Sprintf("HTTP %d", a.status), wait: retryAfter(a)}
		}
		detail := fmt.Sprintf("HTTP %d", a.status)
		if s.key != "" {
			detail += ": is the key right?"
		}
		return reading{state: stateBlocked, detail: detail}
	}
	return reading{state: stateError, detail: fmt.Sprintf("HTTP %d", a.status), wait: retryAfter(a)}
}

// located is r without what leads nowhere, such as advertisements with an
// address of the engine's own.
func located(r reading) reading {
	if len(r.hits) == 0 {
		return r
	}
	kept := r.hits[:0]
	for _, h := range r.hits {
		var ok bool
		if h.at, ok = locate(h.url); ok {
			kept = append(kept, h)
		}
	}
	if r.hits = kept; len(kept) == 0 {
		r.state, r.detail = stateMalformed, "no result has an address"
	}
	return r
}

// retryAfter is how long the engine says that it wants to be left alone, at
// most an hour: 0 if it does not say.
func retryAfter(a answer) time.Duration {
	v := a.first("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n > 0 {
		return min(time.Duration(min(n, 3600))*time.Second, time.Hour)
	}
	if t, err := time.Parse(time.RFC1123, v); err == nil {
		return max(0, min(t.Sub(a.now), time.Hour))
	}
	return 0
}

// challenges are what is written on pages that keep programs out, in lower
// case, and how long such an engine is left alone.
var challenges = []struct {
	text string
	what string
	wait time.Duration
}{
	{"challenges.cloudflare.com", "Cloudflare", suspendFirewall},
	{"cdn-cgi/challenge-platform", "Cloudflare", suspendFirewall},
	{"cf-challenge", "Cloudflare", suspendFirewall},
	{"g-recaptcha", "reCAPTCHA", suspendRecaptcha},
	{"google.com/recaptcha", "reCAPTCHA", suspendRecaptcha},
	{"h-captcha", "hCaptcha", 0},
	{"anomaly-modal", "", 0},
	{"captcha", "", 0},
	{"unusual traffic", "", 0},
	{"automated queries", "", 0},
	{"automated requests", "", 0},
	{"not a robot", "", 0},
	{"are you a robot", "", 0},
	{"verify you are human", "", 0},
	{"are you human", "", 0},
}

// challenged reports whether a page without results is one that asks for a
// human.
func challenged(body []byte) (reading, bool) {
	lower := bytes.ToLower(body[:min(len(body), 256<<10)])
	for _, c := range challenges {
		if bytes.Contains(lower, []byte(c.text)) {
			return reading{state: stateCaptcha, detail: c.what, wait: c.wait}, true
		}
	}
	return reading{}, false
}

// failed says what the error of a request means. Time and size have one kind:
// the host's hint tells them apart.
func failed(err error) reading {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return reading{state: stateError, detail: tidy(err.Error(), 200)}
	}
	switch {
	case e.Kind == sdk.Denied:
		return reading{state: stateDenied, detail: tidy(e.What, 200)}
	case e.Kind == sdk.Limit && (strings.Contains(e.Hint, "max_bytes") || strings.Contains(e.Hint, "http_body") || strings.Contains(e.What, "too large")):
		return reading{state: stateTooLarge}
	case e.Kind == sdk.Limit && strings.Contains(e.What, "redirects"):
		return reading{state: stateError, detail: "it redirects without end"}
	case e.Kind == sdk.Limit || e.Kind == sdk.Canceled:
		return reading{state: stateTimeout}
	}
	return reading{state: stateError, detail: tidy(e.Error(), 200)}
}

// suspension is how long an engine is left alone after r, the failures-th in a
// row.
func suspension(s *source, r reading, failures int) time.Duration {
	switch r.state {
	case stateCaptcha:
		if s.captcha != 0 && r.wait == 0 {
			return max(s.captcha, 0)
		}
		return max(r.wait, suspendCaptcha)
	case stateBlocked:
		return suspendBlocked
	case stateRateLimited:
		return max(r.wait, suspendRate)
	case stateTimeout, stateMalformed, stateTooLarge, stateError:
		return max(r.wait, min(suspendError<<min(failures-1, 10), suspendErrorMost))
	}
	return r.wait
}
