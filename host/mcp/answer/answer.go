// Package answer is the page on which the user of this machine answers what a
// tool asks: one plain form at an address that only who was told can know. It
// works without scripts, loads nothing from anywhere, and is served to the
// machine's own user only.
//
// It does not know how questions come here, what becomes of an answer, or how
// the listener keeps other users out (package neighbour).
package answer

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

// Path is where the page is, before the token.
const Path = "/answer/"

// maxForm bounds what is posted, bytes.
const maxForm = 128 << 10

// A Handler serves the page.
type Handler struct {
	room  *ask.Room
	cross *http.CrossOriginProtection
}

// New returns the Handler for what is open in room.
func New(room *ask.Room) *Handler {
	return &Handler{room, http.NewCrossOriginProtection()}
}

//go:embed page.css
var style string

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

// policy lets the page show itself, send its form to where it came from, and
// nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// ServeHTTP shows a question, or takes its answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin", // the token is in the address; with "no-referrer" a form has no origin
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Content-Type":                 "text/html; charset=utf-8",
	} {
		w.Header().Set(name, value)
	}
	token, ok := strings.CutPrefix(r.URL.Path, Path)
	switch {
	case !isHere(r):
		write(w, http.StatusForbidden, note("This is not the name of this server", "A page of another site may have sent you here."))
	case !ok || token == "" || strings.Contains(token, "/"):
		write(w, http.StatusNotFound, note("There is nothing here", "The address of a question is longer."))
	case r.Method == http.MethodGet:
		h.show(w, token)
	case r.Method == http.MethodPost:
		h.take(w, r, token)
	default:
		w.Header().Set("Allow", "GET, POST")
		write(w, http.StatusMethodNotAllowed, note("This page is read and answered", "Other methods have no meaning here."))
	}
}

// isHere reports whether the client calls this server by an address or the name
// of the loopback, and by the port that it is on. Any other name is one that
// somebody made resolve to here.
func isHere(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil || port != netPort(here) {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}

func netPort(a netip.AddrPort) string {
	_, port, _ := net.SplitHostPort(a.String()) // it was one
	return port
}

// show shows an open question.
func (h *Handler) show(w http.ResponseWriter, token string) {
	v, err := h.room.ByToken(token)
	if err != nil {
		write(w, http.StatusGone, over)
		return
	}
	write(w, http.StatusOK, sheetOf(&v, nil, nil))
}

// take takes an answer.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, token string) {
	if err := h.cross.Check(r); err != nil || r.Header.Get("Origin") == "null" {
		write(w, http.StatusForbidden, note("This answer came from another page", "Open the address of the question itself, and answer there."))
		return
	}
	v, err := h.room.ByToken(token)
	if err != nil {
		write(w, http.StatusGone, over)
		return
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil || strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		status := http.StatusBadRequest
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			status = http.StatusRequestEntityTooLarge
		}
		write(w, status, note("This answer cannot be read", "It is too long, or did not come from the page."))
		return
	}
	reply := read(&v, r.PostForm)
	err = h.room.Answer(v.ID, ask.Page, reply)
	var faults ask.Faults
	switch {
	case err == nil && reply.Action == "accept":
		write(w, http.StatusOK, note("Thank you", "The tool has your answer. You can close this page."))
	case err == nil:
		write(w, http.StatusOK, note("Declined", "The tool is told that you do not want to answer. You can close this page."))
	case errors.As(err, &faults):
		write(w, http.StatusUnprocessableEntity, sheetOf(&v, &reply, faults))
	case sdk.KindOf(err) == sdk.Limit:
		write(w, http.StatusRequestEntityTooLarge, note("This answer is too long", "Go back and make it shorter."))
	case sdk.KindOf(err) == sdk.Invalid:
		write(w, http.StatusBadRequest, note("This answer cannot be read", "It did not come from the page."))
	case errors.Is(err, ask.ErrOver):
		write(w, http.StatusGone, over)
	default:
		write(w, http.StatusServiceUnavailable, note("Your answer could not be recorded", "It does not count. Go back and try again."))
	}
}

var over = note("This question is not open any more", "It was answered, here or elsewhere, or its time was over.")

func write(w http.ResponseWriter, status int, s sheet) {
	s.Style = template.CSS(style)
	var b bytes.Buffer
	if err := page.Execute(&b, s); err != nil { // of the template: tests show every kind of field
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	w.Write(b.Bytes()) // who is gone needs no answer
}
