package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/executor/wasm"
	"github.com/skillhost/skill/host/policy"
	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/host/store"
)

// A Diagnosis is what "skill doctor" prints.
type Diagnosis struct {
	Settings    map[string]SettingNow `json:"settings"`
	Enforcement []Enforcement         `json:"enforcement"`
	Checks      []Check               `json:"checks"`
}

// A SettingNow is the value of a setting and where it comes from.
type SettingNow struct {
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Enforcement is what a runtime can be held to on this machine.
type Enforcement struct {
	Runtime string `json:"runtime"`
	Level   string `json:"level"`
	Why     string `json:"why"`
}

// A Check is one thing that was tried.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	What string `json:"what"`
}

// Diagnose tries what a call would need, and says what it found.
func (h *Host) Diagnose(ctx context.Context) Diagnosis {
	d := diagnose(ctx, h.Config)
	_, err := h.audit.open()
	d.check("audit log", err, h.Config.Paths.Audit+" can be written")
	_, _, err = h.store.Get(ctx, "doctor", "probe")
	if errors.Is(err, store.ErrAbsent) {
		err = nil
	}
	d.check("store", err, h.Config.Store.Backend+" in "+h.Config.Paths.State)
	for _, p := range h.Problems() {
		d.check("skills", p, "")
	}
	for _, p := range h.settings.Problems(h.Catalog.Skills()) {
		d.check("settings", p, "")
	}
	d.check("client", nil, h.whoAsksClients())
	return d
}

// DiagnoseClosed is Diagnose for a host that Open did not open: why is what
// Open returned.
func DiagnoseClosed(ctx context.Context, c config.Config, why error) Diagnosis {
	d := diagnose(ctx, c)
	d.check("host", why, "")
	return d
}

// DiagnoseSettings is Diagnose for settings that config.Load refused: c is as
// much of them as it read, and why its error. Nothing depends on them.
func DiagnoseSettings(ctx context.Context, c config.Config, why error) Diagnosis {
	d := Diagnosis{Settings: settingsNow(c), Enforcement: enforcement(ctx, "")}
	d.check("settings", why, "")
	return d
}

// diagnose tries what needs no open host.
func diagnose(ctx context.Context, c config.Config) Diagnosis {
	d := Diagnosis{Settings: settingsNow(c)}
	err := c.Paths.Ensure() // before the cache is tried
	cache := filepath.Join(c.Paths.Cache, "wasm")
	d.Enforcement = enforcement(ctx, cache)
	d.check("directories", err, c.Paths.State+", "+c.Paths.Audit+" and "+c.Paths.Cache+" are this user's alone")
	what, err := policyNow(c.Paths.Policy)
	d.check("policy", err, what)
	_, err = wasm.Probe(ctx, cache)
	d.check("modules", err, "run, and their compiled code is kept in "+cache)
	report, err := audit.Verify(c.Paths.Audit)
	if err == nil && !report.Intact() {
		err = errors.New("the record was tampered with: see skill audit verify")
	}
	d.check("audit chain", err, fmt.Sprintf("%d records in %d files are intact", report.Records, len(report.Files)))
	return d
}

func (d *Diagnosis) check(name string, err error, good string) {
	if err != nil {
		good = err.Error()
	}
	d.Checks = append(d.Checks, Check{name, err == nil, good})
}

// policyNow reads the policy as it is in the file at this moment.
func policyNow(file string) (what string, err error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no " + file + ": built-in skills run as shipped, all others are refused", nil
	}
	if err == nil {
		_, err = policy.Read(file, data)
	}
	return file + " is valid", err
}

func settingsNow(c config.Config) map[string]SettingNow {
	values := map[string]string{
		"policy": c.Paths.Policy, "skills": strings.Join(c.Skills, ", "), "workspace": c.Workspace.Dir,
		"audit.durability": c.Audit.Durability, "audit.params": c.Audit.Params, "audit.max_age": c.Audit.MaxAge.String(),
		"audit.max_size": fmt.Sprint(c.Audit.MaxSize), "audit.rotate": fmt.Sprint(c.Audit.Rotate),
		"names.separator": c.Names.Separator, "names.bare": strings.Join(c.Names.Bare, ", "),
		"store.backend": c.Store.Backend, "discover": fmt.Sprint(c.Discover), "tools": fmt.Sprint(c.Offer.Tools), "streaming": fmt.Sprint(c.Offer.Streaming), "model": c.Offer.Model, "wasm.warm": fmt.Sprint(c.WASM.Warm),
		"tasks.after": c.Tasks.After.String(), "tasks.ttl": c.Tasks.TTL.String(), "tasks.max_wait": c.Tasks.Wait.String(),
		"tasks.max_per_caller": fmt.Sprint(c.Tasks.Caller), "tasks.max_kept": fmt.Sprint(c.Tasks.All), "tasks.max_running": fmt.Sprint(c.Tasks.Running),
		"http.addr": c.HTTP.Addr, "http.public_url": c.HTTP.PublicURL, "http.issuer": strings.Join(c.HTTP.Issuers, ", "),
		"http.audience": strings.Join(c.HTTP.Audiences, ", "), "http.required_scopes": strings.Join(c.HTTP.Required, ", "),
		"http.tokens": tokenNames(c.HTTP.Tokens), "http.allowed_origins": strings.Join(c.HTTP.Origins, ", "), "http.allowed_hosts": strings.Join(c.HTTP.Hosts, ", "),
		"http.insecure_no_auth": fmt.Sprint(c.HTTP.Open), "http.max_body": fmt.Sprint(c.HTTP.Limits.Body), "http.max_sessions": fmt.Sprint(c.HTTP.Limits.Sessions),
		"http.session_ttl": c.HTTP.Limits.SessionTTL.String(), "http.rate": fmt.Sprint(c.HTTP.Limits.Rate), "http.burst": fmt.Sprint(c.HTTP.Limits.Burst),
	}
	now := map[string]SettingNow{}
	for key, v := range values {
		now[key] = SettingNow{v, c.Origins[key]}
	}
	return now
}

// tokenNames shows who has a token, and nothing of the token.
func tokenNames(tokens []config.HTTPToken) string {
	var names []string
	for _, t := range tokens {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

// enforcement tries what each runtime word of a manifest means here.
func enforcement(ctx context.Context, cache string) []Enforcement {
	modules := Enforcement{Runtime: "wasm", Level: "full"}
	switch engine, err := wasm.Probe(ctx, cache); {
	case err != nil:
		modules.Level, modules.Why = "refused", err.Error()
	default:
		modules.Why = map[string]string{"compiler": "compiled", "interpreter": "interpreted: slow"}[engine] +
			" by wazero; files, network, secrets, other tools and the client only through the host; files by " + files() + "; deadlines by metering"
	}
	all := []Enforcement{modules, {"instructions", "full", "a text is read, nothing is run"}}
	for _, runtime := range []string{"plugin", "exec"} {
		all = append(all, nativeEnforcement(runtime, sandbox.Probe()))
	}
	for _, later := range []string{"container", "mcp"} {
		all = append(all, Enforcement{later, "refused", "this version has no executor for it"})
	}
	return all
}

// nativeEnforcement says what a native runtime can be held to here.
func nativeEnforcement(runtime string, r sandbox.Report) Enforcement {
	e := Enforcement{runtime, string(r.Level), strings.Join(slices.Concat(r.Means, r.Resource), ", ")}
	if r.Level == "" {
		e.Level = "refused"
	}
	if len(r.Missing) > 0 {
		e.Why = strings.TrimPrefix(e.Why+"; missing: "+strings.Join(r.Missing, "; "), "; ")
	}
	return e
}

// SecretIsSet reports whether a binding has a value now.
func (h *Host) SecretIsSet(b policy.SecretBinding) (bool, error) {
	if b.Source.Kind == "" {
		return false, nil
	}
	v, err := h.value(b)
	if errors.Is(err, store.ErrAbsent) {
		return false, nil
	}
	return v != "", err
}
