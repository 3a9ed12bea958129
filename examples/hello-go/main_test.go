package main

import (
	"context"
	"testing"

	"github.com/skillhost/skill/sdk/guest/guesttest"
)

// A skill's tools are tested like any function, without a host.
func TestGreet(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"Ann"}`:             "hello, Ann",
		`{"name":"Ann","loud":true}`: "HELLO, ANN",
	} {
		host := &guesttest.Host{}
		r, err := host.Call(context.Background(), "greet", args)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Content[0].Text; got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
		if len(host.Events()) != 1 {
			t.Errorf("%s: %d events, want its log line", args, len(host.Events()))
		}
	}
}
