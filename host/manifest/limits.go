package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/manifest/words"
)

// [limits]. The zero value of a field is "not said".
type limitsDoc struct {
	Memory      *size          `toml:"memory"`
	Timeout     *time.Duration `toml:"timeout"`
	MaxTimeout  *time.Duration `toml:"max_timeout"`
	Output      *size          `toml:"output"`
	Concurrency *int           `toml:"concurrency"`
	Rate        *rate          `toml:"rate"`
	Processes   *int           `toml:"processes"`
	HTTPBody    *size          `toml:"http_body"`
}

// Bounds of what a manifest may ask for. What it gets is the operator's to say.
const (
	minMemory, maxMemory   = 64 << 10, 4 << 30 // a page; the address space of WASM
	minTimeout             = time.Millisecond
	maxTimeout, maxMaximum = time.Hour, 24 * time.Hour
	minBytes               = 1 << 10
	maxOutput, maxBody     = 256 << 20, 1 << 30
	maxConcurrency         = 1024
	maxProcesses           = 4096
	maxRate                = 1_000_000
)

// limits reads [limits] over the defaults.
func (r *reader) limits() (err error) {
	r.out.Limits, err = r.limitsOver(at("limits"), r.in.Limits, DefaultLimits)
	return err
}

// limitsOver returns base with what the table at path says over it.
func (r *reader) limitsOver(path []string, in limitsDoc, base Limits) (Limits, error) {
	out := base
	for _, f := range []struct {
		key      string
		in       *size
		out      *int64
		min, max int64
	}{
		{"memory", in.Memory, &out.Memory, minMemory, maxMemory},
		{"output", in.Output, &out.Output, minBytes, maxOutput},
		{"http_body", in.HTTPBody, &out.HTTPBody, minBytes, maxBody},
	} {
		if f.in == nil {
			continue
		}
		if *f.out = int64(*f.in); *f.out < f.min || *f.out > f.max {
			return out, r.outside(path, f.key, f.in.String(), size(f.min).String(), size(f.max).String())
		}
	}
	for _, f := range []struct {
		key string
		in  *int
		out *int
		max int
	}{
		{"concurrency", in.Concurrency, &out.Concurrency, maxConcurrency},
		{"processes", in.Processes, &out.Processes, maxProcesses},
	} {
		if f.in == nil {
			continue
		}
		if *f.out = *f.in; *f.out < 1 || *f.out > f.max {
			return out, r.outside(path, f.key, strconv.Itoa(*f.in), "1", strconv.Itoa(f.max))
		}
	}
	if in.Rate != nil {
		out.Rate = Rate(*in.Rate)
	}
	return r.timeouts(path, in, out)
}

func (r *reader) timeouts(path []string, in limitsDoc, out Limits) (Limits, error) {
	if in.Timeout != nil {
		if out.Timeout = *in.Timeout; out.Timeout < minTimeout || out.Timeout > maxTimeout {
			return out, r.outside(path, "timeout", out.Timeout.String(), "1ms", "1h")
		}
	}
	if in.MaxTimeout != nil {
		if out.MaxTimeout = *in.MaxTimeout; out.MaxTimeout < minTimeout || out.MaxTimeout > maxMaximum {
			return out, r.outside(path, "max_timeout", out.MaxTimeout.String(), "1ms", "24h")
		}
	}
	switch {
	case out.Timeout <= out.MaxTimeout:
	case in.MaxTimeout == nil: // a long timeout alone asks for as much in all
		out.MaxTimeout = out.Timeout
	case in.Timeout == nil: // a short maximum alone bounds each step as well
		out.Timeout = out.MaxTimeout
	default:
		return out, r.fail(append(path[:len(path):len(path)], "max_timeout"), "timeout restarts with each partial output, max_timeout never does",
			"%s: max_timeout %s is shorter than timeout %s", strings.Join(path, "."), out.MaxTimeout, out.Timeout)
	}
	return out, nil
}

func (r *reader) outside(path []string, key, value, low, high string) error {
	path = append(path[:len(path):len(path)], key)
	return r.fail(path, fmt.Sprintf("allowed: %s to %s", low, high), "%s: %s is out of range", strings.Join(path, "."), value)
}

// A size is a number of bytes, written as "128MiB".
type size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText reads "128MiB".
func (s *size) UnmarshalText(text []byte) error {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(string(text), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			break
		}
		*s = size(int64(n) * u.bytes)
		return nil
	}
	return fmt.Errorf("bad size %q: want a whole number and KiB, MiB or GiB, such as \"128MiB\"", words.Clip(string(text)))
}

// String formats s in its largest whole unit.
func (s size) String() string {
	for _, u := range sizeUnits {
		if int64(s)%u.bytes == 0 && s != 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return "0B"
}

// A rate is written as "60/min".
type rate Rate

// UnmarshalText reads "60/min".
func (r *rate) UnmarshalText(text []byte) error {
	digits, unit, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(digits)
	per := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}[unit]
	if err != nil || n < 1 || n > maxRate || per == 0 {
		return fmt.Errorf("bad rate %q: want calls per s, min or h, such as \"60/min\"", words.Clip(string(text)))
	}
	*r = rate{Calls: n, Per: per}
	return nil
}
