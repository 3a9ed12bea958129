package sandbox

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestStartIsCanceled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Start(ctx, w.cage(levels(t)[0]), program(t, "exit 0"))
	if sdk.KindOf(err) != sdk.Canceled {
		t.Errorf("got %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err = w.Start(t.Context(), w.cage(levels(t)[0]), program(t, "exit 0")); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t)
	level := levels(t)[0]
	good := func() (Cage, Program) { return w.cage(level), program(t, "exit 0") }
	for name, tt := range map[string]struct {
		kind   sdk.Kind
		change func(*Cage, *Program)
	}{
		"zero cage":         {sdk.Invalid, func(c *Cage, _ *Program) { *c = Cage{} }},
		"unknown level":     {sdk.Invalid, func(c *Cage, _ *Program) { c.Level = "hard" }},
		"unknown network":   {sdk.Invalid, func(c *Cage, _ *Program) { c.Network = 7 }},
		"proxy at landlock": {sdk.Unavailable, func(c *Cage, _ *Program) { c.Level, c.Network = Landlock, Proxy }},
		"proxy at none":     {sdk.Unavailable, func(c *Cage, _ *Program) { c.Level, c.Network = None, Proxy }},
		"no program":        {sdk.Invalid, func(_ *Cage, p *Program) { p.File = nil }},
		"no name":           {sdk.Invalid, func(_ *Cage, p *Program) { p.Args = nil }},
		"relative dir":      {sdk.Invalid, func(_ *Cage, p *Program) { p.Dir = "x" }},
		"dir not there":     {sdk.Invalid, func(_ *Cage, p *Program) { p.Dir = "/nowhere" }},
		"dotdot in serves":  {sdk.Invalid, func(c *Cage, _ *Program) { c.Serves = "/tmp/../etc" }},
		"serves not there":  {sdk.Unavailable, func(c *Cage, _ *Program) { c.Serves = "/nowhere" }},
		"negative limit":    {sdk.Invalid, func(c *Cage, _ *Program) { c.Limits.Files = -1 }},
		"not a program":     {sdk.Invalid, func(_ *Cage, p *Program) { p.File = open(t, w.read+"/file") }},
		"root not strict":   {sdk.Unavailable, func(c *Cage, _ *Program) { c.Level = Landlock }},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "root not strict" && os.Geteuid() != 0 {
				t.Skip("this is the run of an ordinary user")
			}
			c, p := good()
			tt.change(&c, &p)
			proc, err := w.Start(t.Context(), c, p)
			if err == nil {
				proc.Kill()
			}
			var e *sdk.Error
			if !errors.As(err, &e) || e.Kind != tt.kind {
				t.Errorf("got %v, want kind %s", err, tt.kind)
			}
		})
	}
}
