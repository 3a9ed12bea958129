package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/sdk"
)

func TestContextEndsServe(t *testing.T) {
	h := newHouse()
	ctx, cancel := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	defer inW.Close()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, h, inR, outW, Options{Grace: 10 * time.Second})
		outW.Close()
	}()
	s := &session{t: t, in: inW, out: newReader(outR)}
	s.send(callLine(`1`, "wait", `{"gate":"g"}`))
	s.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	cancel()
	close(h.gate("g")) // the call that runs may still finish
	expect(t, s.recv(), `{"jsonrpc":"2.0","id":1,"result":{...opened...}}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestContextCancelsWhatDoesNotEnd(t *testing.T) {
	h := newHouse()
	ctx, cancel := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	defer inW.Close()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, h, inR, outW, Options{Grace: 50 * time.Millisecond}) }()
	s := &session{t: t, in: inW, out: newReader(outR)}
	s.send(callLine(`1`, "wait", `{"gate":"never"}`))
	s.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	cancel()
	expect(t, s.recv(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"unavailable: the server is shutting down",...}}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestDrainIsBounded(t *testing.T) {
	h := newHouse()
	var out bytes.Buffer
	err := Serve(context.Background(), h, strings.NewReader(callLine(`1`, "stubborn", `{"gate":"g"}`)), &out, Options{Drain: time.Millisecond, Grace: time.Millisecond})
	if sdk.KindOf(err) != sdk.Limit {
		t.Errorf("got %v", err)
	}
	close(h.gate("g"))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenOutputEndsServe(t *testing.T) {
	inR, inW := io.Pipe()
	defer inW.Close()
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), newHouse(), inR, brokenWriter{}, Options{}) }()
	if _, err := io.WriteString(inW, callLine(`1`, "echo", `{}`)+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("got %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("torn wire") }

func TestBrokenInputEndsServe(t *testing.T) {
	err := Serve(context.Background(), newHouse(), brokenReader{}, io.Discard, Options{})
	if sdk.KindOf(err) != sdk.Unavailable || !strings.Contains(err.Error(), "torn wire") {
		t.Errorf("got %v", err)
	}
}

// A client that never reads must not make the server's memory grow without
// bound: it is read from no more.
func TestSlowReaderHoldsUpTheWriter(t *testing.T) {
	outR, outW := io.Pipe()
	reqs := 40000
	var sent int
	inR, inW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), newHouse(), inR, outW, Options{MaxLine: 1 << 20}) }()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		line := callLine(`%d`, "echo", `{"message":"`+strings.Repeat("y", 1000)+`"}`) + "\n"
		for ; sent < reqs; sent++ {
			if _, err := fmt.Fprintf(inW, line, sent); err != nil {
				return
			}
		}
		inW.Close()
	}()
	answers, busy := 0, 0
	r := newReader(outR)
	for answers < reqs {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", answers, err)
		}
		if strings.Contains(line, "-32000") {
			busy++
		}
		answers++
	}
	<-wrote
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d were refused as busy", busy, answers)
}

// A client that never reads cannot keep the server from ending.
func TestDeafClientDoesNotHoldUpTheEnd(t *testing.T) {
	h := newHouse()
	ctx, cancel := context.WithCancel(context.Background())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, h, inR, outW, Options{Grace: time.Millisecond}) }()
	go func() {
		line := callLine(`%d`, "echo", `{"message":"`+strings.Repeat("y", 100000)+`"}`) + "\n"
		for i := range 1000 {
			if _, err := fmt.Fprintf(inW, line, i); err != nil {
				return
			}
		}
	}()
	for len(h.seen()) < 100 {
		time.Sleep(time.Millisecond)
	}
	h.changes <- conversation.Tools
	cancel()
	<-done
	inR.Close()
	outR.Close()
}

func TestEndOfInputWhileAsking(t *testing.T) {
	got := piped(t, newHouse(), Options{}, initialize(`{"elicitation":{}}`)+"\n"+callLine(`1`, "ask", `{}`)+"\n")
	last := got[len(got)-1]
	for _, l := range got {
		if strings.Contains(l, `"id":1,`) {
			last = l
		}
	}
	expect(t, last, `{"jsonrpc":"2.0","id":1,"result":{...needs_user...}}`)
}
