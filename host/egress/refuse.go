package egress

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// Names of rules that more than one place needs; others stand in the text of
// the error as "(rule net_…)".
const (
	ruleBytes = "net_call_bytes"
	ruleFlows = "net_call_connections"
)

// ruleOf returns the name of the rule that err is about.
func ruleOf(err error) string {
	if _, rest, ok := strings.Cut(err.Error(), "(rule "); ok {
		if name, _, ok := strings.Cut(rest, ")"); ok && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
			return name
		}
	}
	switch sdk.KindOf(err) {
	case sdk.Denied:
		return "net_not_granted"
	case sdk.Invalid:
		return "net_invalid_request"
	case sdk.Limit:
		return "net_limit"
	case sdk.Canceled:
		return "net_call_ended"
	}
	return "net_unreachable"
}

// fail answers a request with err.
func fail(w http.ResponseWriter, err error) {
	rule := ruleOf(err)
	status := http.StatusBadGateway
	switch sdk.KindOf(err) {
	case sdk.Denied, sdk.Invalid:
		status = http.StatusForbidden
	case sdk.Limit:
		status = http.StatusGatewayTimeout
		switch rule {
		case ruleBytes:
			status = http.StatusTooManyRequests
		case ruleFlows:
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "1")
		}
	case sdk.Canceled:
		status = http.StatusServiceUnavailable
	}
	var e *sdk.Error
	text := err.Error()
	if errors.As(err, &e) {
		bare := *e
		bare.Op = "" // the reader is no part of the house
		text = bare.Error()
	}
	if !strings.Contains(text, "(rule ") {
		text = "rule " + rule + ": " + text
	}
	refuse(w, status, rule, text)
}

func refuse(w http.ResponseWriter, status int, rule, text string) {
	h := w.Header()
	h.Set("X-Proxy-Error", rule)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, "skill: "+text+"\n")
}

// deny refuses what g would allow, or already did, so that it is on record
// like every other refusal. If g refuses it by itself, that is the error.
func deny(g capability.Grant, n capability.Net, rule, why, hint string) error {
	acc := access(n)
	return g.WithLive(func(capability.Access) error {
		d := &sdk.Denial{Capability: "network.connect", Resource: acc.Target, Layer: "host"}
		return &sdk.Error{Kind: sdk.Denied, Op: "egress", What: "network.connect " + n.String() + ": " + why + " (rule " + rule + ")", Hint: hint, Denial: d}
	}).Check(acc)
}

// unreadable records that g's call asked for a target that no grant can allow,
// as it was written, and returns err, which says so.
func unreadable(g capability.Grant, target string, err error) error {
	_ = g.Check(capability.Access{Kind: capability.Network, Verb: capability.Connect, Target: clip(target)})
	return err
}
