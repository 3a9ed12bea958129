package native

import (
	"fmt"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// What every call of a warm process pays, under lists as a shell has.
func BenchmarkPlanAndRecord(b *testing.B) {
	file := func(v capability.Verb, p string) capability.Capability {
		return capability.Capability{Kind: capability.Filesystem, Verb: v, Pattern: p}
	}
	needs := capability.Layer{Name: "manifest", Closed: true, Allow: capability.Set{file(capability.Read, "/"), file(capability.Write, "/ws"), {Kind: capability.Exec, Verb: capability.Run, Pattern: "*"}}}
	operator := capability.Layer{Name: "operator"}
	for i := range 50 {
		operator.Deny = append(operator.Deny, file(capability.Read, fmt.Sprintf("/home/u/.secret%d", i)))
	}
	m := New(Options{Report: func() sandbox.Report { return sandbox.Report{Level: sandbox.Strict} }})
	s := &manifest.Skill{About: manifest.About{Name: "shell"}}
	j := executor.Job{Grant: capability.NewGrant([]capability.Layer{needs, operator}, nil), Input: sdk.Input{Scope: sdk.Scope{Caller: "local:me"}}}
	for b.Loop() {
		p, err := m.Plan(s, j)
		if err == nil {
			err = Record(j.Grant, p)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
