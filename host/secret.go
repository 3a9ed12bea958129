package host

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/egress"
	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/store"
)

// bind returns the secrets of a skill with their values. The operator's
// binding sets the value and the most hosts; the manifest only narrows. A
// secret that the operator has not bound has no value, and none is injected.
func (h *Host) bind(p *policy.Policy, s *manifest.Skill) egress.Secrets {
	if len(s.Secrets) == 0 {
		return nil
	}
	out := make(egress.Secrets, 0, len(s.Secrets))
	for _, want := range s.Secrets {
		x := egress.Secret{Name: want.Name, Hosts: want.Reach(), Header: want.Header, Query: want.Query, Format: want.Format}
		b, ok := p.Secret(want.Name)
		if ok {
			x.Max = b.Hosts
			if b.Header != "" || b.Query != "" {
				x.Header, x.Query = b.Header, b.Query
			}
			if b.Format != "" {
				x.Format = b.Format
			}
			v, err := h.value(b)
			if err != nil && !errors.Is(err, store.ErrAbsent) {
				h.say(err)
			}
			x.Value = v
			if v != "" {
				h.secrets.learn(v)
			}
		}
		out = append(out, x)
	}
	return out
}

// hidden denies every tool the places that the values of secrets come from: a
// skill may use a secret, and must not see it.
func hidden(p *policy.Policy) capability.Layer {
	l := capability.Layer{Name: "operator", Pos: capability.Pos{File: "the sources of secrets"}}
	for _, b := range p.Secrets() {
		switch b.Source.Kind {
		case "file":
			l.Deny = append(l.Deny, capability.Capability{Kind: capability.Filesystem, Verb: capability.Read, Pattern: filepath.ToSlash(filepath.Clean(b.Source.Name)), Pos: b.Pos})
		case "env":
			l.Deny = append(l.Deny, capability.Capability{Kind: capability.Env, Verb: capability.Read, Pattern: b.Source.Name, Pos: b.Pos})
		}
	}
	return l
}

// learnSecrets reads the values of all secrets, so that they are kept out of
// the record from the first call on.
func (h *Host) learnSecrets() {
	for _, b := range h.policy.Policy().Secrets() {
		v, err := h.value(b)
		if err != nil && !errors.Is(err, store.ErrAbsent) {
			h.say(err)
		}
		if v != "" {
			h.secrets.learn(v)
		}
	}
}

// SetSecret keeps the value of a secret in the store.
func (h *Host) SetSecret(ctx context.Context, name, value string) error {
	_, err := h.store.Put(ctx, secretBucket, name, []byte(value), store.Any)
	return err
}

// RemoveSecret forgets the value of a secret.
func (h *Host) RemoveSecret(ctx context.Context, name string) error {
	return h.store.Delete(ctx, secretBucket, name, store.Any)
}

// HasSecret reports whether the store holds a value for a secret.
func (h *Host) HasSecret(ctx context.Context, name string) (bool, error) {
	_, _, err := h.store.Get(ctx, secretBucket, name)
	if errors.Is(err, store.ErrAbsent) {
		return false, nil
	}
	return err == nil, err
}
