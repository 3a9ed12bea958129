package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
)

// settings are what the operator set, in [settings.websearch] of the host's
// config.toml. The manifest has their schema, which the host has checked.
type settings struct {
	TimeoutMS       int64                     `json:"timeout_ms"`
	TotalTimeoutMS  int64                     `json:"total_timeout_ms"`
	MaxSuspensionMS *int64                    `json:"max_suspension_ms"`
	Patience        *float64                  `json:"patience"`
	UserAgent       string                    `json:"user_agent"`
	Language        string                    `json:"language"`
	Engines         map[string]engineSettings `json:"engines"`
}

// engineSettings are those of one engine. What is not set is the kind's.
type engineSettings struct {
	Enabled    *bool             `json:"enabled"`
	Type       string            `json:"type"`
	BaseURL    string            `json:"base_url"`
	Weight     *float64          `json:"weight"`
	TimeoutMS  int64             `json:"timeout_ms"`
	Categories []string          `json:"categories"`
	Params     map[string]string `json:"params"`
	Headers    map[string]string `json:"headers"`
	Query      string            `json:"query"`
	Body       string            `json:"body"`
	Fields     jsonFields        `json:"fields"`
}

// jsonFields says where an engine of type "json" has its results.
type jsonFields struct {
	Results   string `json:"results"`
	URL       string `json:"url"`
	Title     string `json:"title"`
	Snippet   string `json:"snippet"`
	Published string `json:"published"`
}

// What holds unless the operator says something else.
const (
	defaultTimeout    = 3 * time.Second
	defaultTotal      = 6 * time.Second
	defaultSuspension = suspendFirewall
	defaultPatience   = 1.2
	defaultAgent      = "Mozilla/5.0 (compatible; skill-websearch/0.1; +https://github.com/skillhost/skill)"
)

// builtin are the engines that are asked unless the operator turns them off.
var builtin = []*kind{duckduckgo, bing, brave, mojeek, startpage, mwmbl, wikipedia, github, stackexchange, hackernews, arxiv}

// addable are the types of engines that the operator may add.
var addable = []*kind{searxng, braveAPI, tavily, exa, serper, kagi, googleCSE, marginalia, mojeekAPI, generic}

// read takes the settings of a call.
func readSettings(c *guest.Call) (settings, error) {
	patience, suspension := defaultPatience, defaultSuspension.Milliseconds()
	s := settings{TimeoutMS: defaultTimeout.Milliseconds(), TotalTimeoutMS: defaultTotal.Milliseconds(), MaxSuspensionMS: &suspension, Patience: &patience, UserAgent: defaultAgent}
	return s, c.Settings(&s)
}

// sources are the engines that are turned on, in the order of their names for
// those that the operator added.
func (s *settings) sources() ([]*source, error) {
	var all []*source
	for _, k := range builtin {
		if src := s.source(k.name, k); src != nil {
			all = append(all, src)
		}
	}
	for _, name := range sortedKeys(s.Engines) {
		set := s.Engines[name]
		if isBuiltin(name) {
			if set.Type != "" && set.Type != name {
				return nil, wrongSettings("engines.%s.type: %q is the name of an engine that is built in: call yours something else", name, name)
			}
			continue
		}
		typ := set.Type
		if typ == "" {
			typ = name
		}
		i := slices.IndexFunc(addable, func(k *kind) bool { return k.name == typ })
		if i < 0 {
			return nil, wrongSettings("engines.%s: there is no engine and no type %q; types: %s", name, typ, names(addable))
		}
		if src := s.source(name, addable[i]); src != nil {
			if err := src.complete(); err != nil {
				return nil, err
			}
			all = append(all, src)
		}
	}
	return all, nil
}

// source sets one engine up; nil if it is turned off.
func (s *settings) source(name string, k *kind) *source {
	set := s.Engines[name]
	if set.Enabled != nil && !*set.Enabled {
		return nil
	}
	src := &source{kind: k, name: name, base: k.base, weight: k.weight, timeout: time.Duration(s.TimeoutMS) * time.Millisecond, categories: k.categories, agent: s.UserAgent, set: set}
	if set.BaseURL != "" {
		src.base = set.BaseURL
	}
	if set.Weight != nil {
		src.weight = *set.Weight
	}
	if set.TimeoutMS > 0 {
		src.timeout = time.Duration(set.TimeoutMS) * time.Millisecond
	}
	if len(set.Categories) > 0 {
		src.categories = set.Categories
	}
	return src
}

// complete checks what only some types need.
func (s *source) complete() error {
	switch {
	case s.base == "":
		return wrongSettings("engines.%s.base_url is missing: the address of your %s", s.name, s.kind.name)
	case s.kind == googleCSE && s.set.Params["cx"] == "":
		return wrongSettings("engines.%s.params.cx is missing: the id of your search engine", s.name)
	case s.kind == generic && (s.set.Fields.URL == "" || s.set.Fields.Title == ""):
		return wrongSettings("engines.%s.fields: url and title are missing: where a result has them", s.name)
	case s.kind == generic && s.set.Query == "" && s.set.Body == "":
		return wrongSettings("engines.%s: query, the parameter that carries the query, or body is missing", s.name)
	}
	return nil
}

func wrongSettings(format string, args ...any) error {
	return &sdk.Error{Kind: sdk.Unavailable, What: "[settings.websearch] of the host's config.toml: " + fmt.Sprintf(format, args...), Hint: "the operator has to correct it"}
}

func isBuiltin(name string) bool {
	return slices.ContainsFunc(builtin, func(k *kind) bool { return k.name == name })
}

func names(kinds []*kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return strings.Join(all, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
