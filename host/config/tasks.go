package config

import (
	"fmt"
	"strconv"
	"time"
)

// Tasks bounds the calls that outlive their requests (docs/mcp-tasks.md).
type Tasks struct {
	After   time.Duration // what a call takes that becomes a task because it is long
	TTL     time.Duration // how long a task is kept after its end
	Wait    time.Duration // how long it waits for its user
	Caller  int           // kept, of one caller and workspace
	All     int           // kept
	Running int           // at once, in one process
}

// maxTaskWait is how long the corridor takes the answer to a question.
const maxTaskWait = time.Hour

// taskSettings are the keys of [tasks].
var taskSettings = []setting{
	{"tasks.after", "5s", `what a call takes that becomes a task, where the manifest says task = "long"`, between(func(c *Config) *time.Duration { return &c.Tasks.After }, 100*time.Millisecond, time.Hour, "100ms to 1h")},
	{"tasks.ttl", "10m", "how long a task is kept after its end", between(func(c *Config) *time.Duration { return &c.Tasks.TTL }, time.Second, 24*time.Hour, "1s to 24h")},
	{"tasks.max_wait", "1h", "how long a task waits for its user", between(func(c *Config) *time.Duration { return &c.Tasks.Wait }, time.Second, maxTaskWait, "1s to 1h")},
	{"tasks.max_per_caller", "100", "tasks of one caller and workspace, with those that have ended", count(func(c *Config) *int { return &c.Tasks.Caller }, 100_000)},
	{"tasks.max_kept", "1000", "tasks in all, with those that have ended", count(func(c *Config) *int { return &c.Tasks.All }, 100_000)},
	{"tasks.max_running", "256", "tasks at once, in one process", count(func(c *Config) *int { return &c.Tasks.Running }, 10_000)},
}

// between is the set of a setting that is a duration.
func between(field func(*Config) *time.Duration, least, most time.Duration, want string) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := age(v)
		if err != nil {
			return err
		}
		if d < least || d > most {
			return fmt.Errorf("want %s", want)
		}
		*field(c) = d
		return nil
	}
}

// tasksFile is [tasks] as it is written.
type tasksFile struct {
	After   *string `toml:"after"`
	TTL     *string `toml:"ttl"`
	Wait    *string `toml:"max_wait"`
	Caller  *int    `toml:"max_per_caller"`
	All     *int    `toml:"max_kept"`
	Running *int    `toml:"max_running"`
}

// values adds what f says to values, each written as in a variable.
func (f *tasksFile) values(values map[string]*string) {
	for key, v := range map[string]*string{"after": f.After, "ttl": f.TTL, "max_wait": f.Wait} {
		values["tasks."+key] = v
	}
	for key, n := range map[string]*int{"max_per_caller": f.Caller, "max_kept": f.All, "max_running": f.Running} {
		if n != nil {
			v := strconv.Itoa(*n)
			values["tasks."+key] = &v
		}
	}
}
