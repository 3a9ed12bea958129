//go:build bench

package main

import (
	"context"
	"encoding/json"
	"testing/fstest"

	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// extra adds the tool BenchEcho, which answers in the host itself: what is
// left of a call's cost is the corridor and the protocol.
func extra() host.Extra {
	watch()
	s, err := manifest.Open(fstest.MapFS{manifest.FileName: {Data: []byte(`
name = "bench-echo"
version = "1.0.0"
description = "Answers with its text."
runtime = "container"
source = "bench/echo:1"
[tools.BenchEcho]
description = "Answers with its text."
input = { type = "object", properties = { text = { type = "string" } }, required = ["text"] }
[limits]
concurrency = 64
`)}, "echo": {}}, "")
	if err != nil {
		panic(err)
	}
	s.Home.Builtin = true
	return host.Extra{Runtime: s.Runtime, Executor: echo{}, Skills: []*manifest.Skill{s}}
}

type echo struct{}

func (echo) Enforces() []capability.Kind                                       { return nil }
func (e echo) Load(context.Context, *manifest.Skill) (executor.Program, error) { return e, nil }
func (echo) Close() error                                                      { return nil }

func (echo) Run(_ context.Context, j executor.Job) (sdk.Result, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(j.Input.Args, &in); err != nil {
		return sdk.Result{}, err
	}
	return sdk.Text(in.Text), nil
}
