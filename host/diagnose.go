package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/skillhost/skill/host/audit"
	"github.com/skillhost/skill/host/policy"
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
	d := Diagnosis{Settings: h.settings(), Enforcement: enforcement()}
	check := func(name string, err error, good string) {
		if err != nil {
			good = err.Error()
		}
		d.Checks = append(d.Checks, Check{name, err == nil, good})
	}
	check("policy", nil, h.Config.Paths.Policy)
	_, err := h.audit.open()
	check("audit log", err, h.Config.Paths.Audit+" can be written")
	report, err := audit.Verify(h.Config.Paths.Audit)
	if err == nil && !report.Intact() {
		err = errors.New("the record was tampered with: see skill audit verify")
	}
	check("audit chain", err, fmt.Sprintf("%d records in %d files are intact", report.Records, len(report.Files)))
	_, _, err = h.store.Get(ctx, "doctor", "probe")
	if errors.Is(err, store.ErrAbsent) {
		err = nil
	}
	check("store", err, h.Config.Store.Backend+" in "+h.Config.Paths.State)
	for _, p := range h.Problems() {
		check("skills", p, "")
	}
	return d
}

func (h *Host) settings() map[string]SettingNow {
	c := h.Config
	values := map[string]string{
		"policy": c.Paths.Policy, "skills": strings.Join(c.Skills, ", "), "workspace": c.Workspace.Dir,
		"audit.durability": c.Audit.Durability, "audit.params": c.Audit.Params, "audit.max_age": c.Audit.MaxAge.String(),
		"audit.max_size": fmt.Sprint(c.Audit.MaxSize), "audit.rotate": fmt.Sprint(c.Audit.Rotate),
		"names.separator": c.Names.Separator, "store.backend": c.Store.Backend, "wasm.warm": fmt.Sprint(c.WASM.Warm),
	}
	now := map[string]SettingNow{}
	for key, v := range values {
		now[key] = SettingNow{v, c.Origins[key]}
	}
	return now
}

// enforcement says what each runtime word of a manifest means here.
func enforcement() []Enforcement {
	engine := "compiled by wazero"
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		engine = "interpreted by wazero: slow"
	}
	files := "os.Root"
	if runtime.GOOS == "linux" {
		files = "openat2"
	}
	all := []Enforcement{
		{"wasm", "full", engine + "; files, network, secrets and other tools only through the host; files by " + files + "; deadlines by metering"},
		{"instructions", "full", "a text is read, nothing is run"},
	}
	for _, later := range []string{"plugin", "exec", "container", "mcp"} {
		all = append(all, Enforcement{later, "refused", "this version has no executor for it"})
	}
	return all
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
