package streamable

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/mcp/streamable/shelf"
	"github.com/skillhost/skill/host/mcp/wire"
	"github.com/skillhost/skill/sdk"
)

// A deadEnd is the connection of a client that takes nothing any more.
type deadEnd struct{ head http.Header }

func (d deadEnd) Header() http.Header { return d.head }

func (d deadEnd) WriteHeader(int) {}

func (d deadEnd) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func (d deadEnd) FlushError() error { return errors.New("broken pipe") }

func (s *site) deadVisit(body string, head ...string) *visit {
	w := deadEnd{http.Header{}}
	return &visit{w: w, r: s.request(s.t.Context(), "POST", "/mcp", body, head...), scope: sdk.Scope{Caller: "local:tester"}, conn: http.NewResponseController(w)}
}

func buffer(text string) *wire.Buffer {
	b := wire.NewBuffer()
	b.B = append(b.B, text...)
	return b
}

// answer_lost: an answer that its client did not get is kept for it, as any other
// is.
func TestAnswerThatCouldNotBeWritten(t *testing.T) {
	s := serve(t, Options{})
	v := s.deadVisit("")
	sh := shelf.New("tag", "", &s.h.events)
	r := newReader(settings{ids: true, prime: never})
	x := sh.Open(r.Reader)
	x.End(buffer(`{"jsonrpc":"2.0","id":1,"result":{}}`), nil)
	p := x.Take(r.Reader)
	if !p.Whole {
		t.Fatalf("%+v", p)
	}
	if s.h.portion(v, x, r, &p) {
		t.Error("it is taken for written")
	}
	x.Detach(r.Reader)
	if found, at := sh.Find(x.ID(0)); found != x || at != 0 || s.h.events.Kept() == 0 {
		t.Errorf("it is not kept: %v, %d bytes", found, s.h.events.Kept())
	}
	sh.Close()
}

// sessions_orphaned: a session of which its client has not heard is none.
func TestSessionThatNobodyHeardOf(t *testing.T) {
	s := serve(t, Options{})
	body := initializeBody("2025-11-25", `{}`)
	if no := s.h.post(s.deadVisit(body)); no != nil {
		t.Fatalf("%+v", no)
	}
	if n := s.h.sessions.count.Len(); n != 0 || len(s.h.sessions.byID) != 0 {
		t.Errorf("%d sessions are open", n)
	}
	if r := s.post(body); r.status != 200 || !strings.Contains(r.body, "2025-11-25") {
		t.Errorf("%+v", r)
	}
}
