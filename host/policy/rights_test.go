package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// A about is a table about callers, and what it means for the tools hello.greet
// and hello.sing.
type about struct {
	toml  string // %s is the table's key
	never string // the tools that it denies, "" for none
	gives string // the tools that it says may be called
	only  string // the tools that its lists let through
}

const both = "greet sing"

var worldTables = []about{
	{"", "", "", both},
	{"[callers.%s]\nallow = true\n", "", both, both},
	{"[callers.%s]\nallow = false\n", both, "", both},
	{"[callers.%s]\n", "", "", both},
	{"[callers.%s.skills]\nallow = [\"hello\"]\n", "", both, both},
	{"[callers.%s.skills]\nallow = []\n", "", "", ""},
	{"[callers.%s.tools]\nallow = [\"hello.greet\"]\n", "", "greet", "greet"},
	{"[callers.%s.tools]\nallow = [\"*\"]\ndeny = [\"hello.greet\"]\n", "greet", "sing", both},
	{"[callers.%s.tools]\ndeny = [\"hello.greet\"]\n", "greet", "", both},
	{"[callers.%s]\nallow = true\n[callers.%[1]s.tools]\nallow = [\"hello.sing\"]\n", "", "sing", "sing"},
	{"[callers.%s.capabilities]\nnetwork = []\n", "", "", both},
}

func (a about) write(key string) string {
	if a.toml == "" {
		return ""
	}
	return fmt.Sprintf(a.toml, key)
}

// naiveCaller says by what the tables mean whether a caller may call tool.
func naiveCaller(remote, hasOwn bool, own, star about, rights []about, tool string) bool {
	has := func(list string) bool { return strings.Contains(list, tool) }
	binding := own // whose lists bind
	if !hasOwn && len(rights) == 0 {
		binding = star
	}
	if has(binding.never) || !has(binding.only) {
		return false
	}
	given := !remote || hasOwn && has(own.gives)
	for _, r := range rights {
		if has(r.never) {
			return false
		}
		given = given || has(r.gives)
	}
	return given
}

// Every way to speak of a caller, of everybody and of two rights, and every
// caller with every set of rights.
func TestRightsWorld(t *testing.T) {
	const bob = "oauth:id.example.com|bob"
	count, allowed := 0, 0
	n := len(worldTables)
	for i := range n * n * n * n {
		own, star, a, b := worldTables[i%n], worldTables[i/n%n], worldTables[i/n/n%n], worldTables[i/n/n/n]
		if i%3 != 0 && (star.toml != "" && own.toml != "") { // of these pairs a third is enough
			continue
		}
		text := own.write(`"`+bob+`"`) + star.write(`"*"`) + a.write(`"right:a"`) + b.write(`"right:b"`)
		if i%2 == 0 {
			text += own.write(`"local:bob"`)
		}
		p, err := Read("policy.toml", []byte(text))
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		for _, caller := range []string{bob, "local:bob", "local:eve", "oauth:id.example.com|eve", "token:bob", "right:a", "*", ""} {
			for _, rights := range []string{"", "a", "b", "a b", "c", "a c", "right:a", "*"} {
				for _, tool := range []string{"greet", "sing"} {
					r := Request{Caller: caller, Rights: rights, Skill: "hello", Digest: digestA, Builtin: true, Tool: tool}
					var held []about
					for _, one := range strings.Fields(rights) {
						if table := map[string]about{"a": a, "b": b}[one]; table.toml != "" {
							held = append(held, table)
						}
					}
					hasOwn := own.toml != "" && (caller == bob || caller == "local:bob" && i%2 == 0)
					mine, everybody := about{only: both}, star
					if hasOwn {
						mine = own
					}
					want := naiveCaller(!strings.HasPrefix(caller, "local:"), hasOwn, mine, everybody, held, tool)
					d := p.Authorize(r)
					if d.Allowed != want {
						t.Fatalf("%s\n%+v: %+v, want %v", text, r, d, want)
					}
					count++
					if d.Allowed {
						allowed++
					} else if d.Reason == "" || d.Layers != nil || d.Err() == nil {
						t.Fatalf("%s\n%+v: a refusal without a reason: %+v", text, r, d)
					} else if count%97 == 0 && isCaller(caller) {
						checkWayOut(t, text, r, d)
					}
				}
			}
		}
	}
	if allowed == 0 || allowed == count {
		t.Fatalf("%d of %d allowed", allowed, count)
	}
	t.Logf("%d of %d allowed", allowed, count)
}

// Without a rule a remote caller gets nothing, whatever it is called.
func TestRemoteGetsNothing(t *testing.T) {
	builtin := Request{Skill: "hello", Digest: digestA, Builtin: true, Tool: "greet"}
	for name, p := range map[string]*Policy{"nil": nil, "zero": {}, "empty": read(t, ""), "everybody": read(t, "[callers.\"*\"]\nallow = true\n[callers.\"*\".tools]\nallow = [\"*\"]"),
		"others": read(t, "[callers.\"local:bob\"]\nallow = true\n[callers.\"right:x\"]\nallow = true\n[callers.\"oauth:a|bo\"]\nallow = true")} {
		for _, caller := range []string{"oauth:a|bob", "token:bob", "anonymous", "", "*", "local", "LOCAL:bob", " local:bob", "right:x", "x"} {
			for _, rights := range []string{"", "y", "*", "right:x", "xx", "x\tz"} {
				r := builtin
				r.Caller, r.Rights = caller, rights
				if d := p.Authorize(r); d.Allowed {
					t.Errorf("%s: %q with %q", name, caller, rights)
				}
			}
		}
	}
	p := read(t, "[callers.\"right:tools.read\".tools]\nallow = [\"hello.greet\"]\n[callers.\"right:tools.write\"]\nallow = true\n")
	for rights, want := range map[string]bool{"tools.read": true, "a tools.read z": true, "tools": false, "tools.rea": false, "tools.readx": false, "tools.write": true, "Tools.read": false} {
		r := builtin
		r.Caller, r.Rights = "oauth:a|bob", rights
		if d := p.Authorize(r); d.Allowed != want {
			t.Errorf("%q: %+v", rights, d)
		}
		r.Builtin = false
		if p.Authorize(r).Allowed {
			t.Errorf("%q: a stranger's skill that nobody has allowed", rights)
		}
	}
	if got := p.Rights(); !reflect.DeepEqual(got, []string{"tools.read", "tools.write"}) || (*Policy)(nil).Rights() != nil {
		t.Errorf("rights %q", got)
	}
}

func TestRightsRefusals(t *testing.T) {
	p := read(t, `
[callers."right:read".tools]
allow = ["hello.greet"]
deny = ["hello.wave"]

[callers."right:ops"]
allow = false

[callers."token:ci".capabilities]
network = []

[callers."right:none".deny]
filesystem = ["read:/srv"]
`)
	const where = "the operator does not allow this call (policy.toml"
	for _, tt := range []struct{ caller, rights, tool, want string }{
		{"oauth:a|bob", "read", "wave", where + `:4: tool "hello.wave" is denied to right "read"; to allow it, write under [callers."right:read".tools]: deny = [])`},
		{"oauth:a|bob", "read", "sing", where + `:3: tool "hello.sing" is not on the list of right "read"; to allow it, write under [callers."right:read".tools]: allow = ["hello.greet", "hello.sing"])`},
		{"oauth:a|bob", "ops read", "greet", where + `:7: right "ops" may call nothing; to allow it, write under [callers."right:ops"]: allow = true)`},
		{"oauth:a|bob", "x", "greet", where + `: caller "oauth:a|bob" is remote, and no rule lets it call tool "hello.greet"; to allow it, write under [callers."oauth:a|bob".tools]: allow = ["hello.greet"])`},
		{"oauth:a|bob", "none", "greet", where + `: caller "oauth:a|bob" is remote, and no rule lets it call tool "hello.greet"; to allow it, write under [callers."right:none".tools]: allow = ["hello.greet"])`},
		{"token:ci", "", "greet", where + `: caller "token:ci" is remote, and no rule lets it call tool "hello.greet"; to allow it, write under [callers."token:ci".tools]: allow = ["hello.greet"])`},
		{"", "", "greet", where + `: caller "" is remote, and no rule lets it call tool "hello.greet")`},
	} {
		err := p.Authorize(Request{Caller: tt.caller, Rights: tt.rights, Skill: "hello", Digest: digestA, Builtin: true, Tool: tt.tool}).Err()
		if err == nil || err.Error() != tt.want || sdk.KindOf(err) != sdk.Denied {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	for name, text := range map[string]string{
		"right_empty": "[callers.\"right:\"]\nallow = true", "right_star": "[callers.\"right:*\"]\nallow = true", "right_glob": "[callers.\"right:tools.*\"]\nallow = true",
		"right_two": "[callers.\"right:a b\"]\nallow = true", "right_quote": "[callers.\"right:a\\\"\"]\nallow = true", "right_not_ascii": "[callers.\"right:\u00e9\"]\nallow = true",
		"caller_glob": "[callers.\"oauth:*\"]\nallow = true",
	} {
		if _, err := Read("policy.toml", []byte(text)); sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), "policy.toml:1: callers.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the tables of rights take away adds up with what the caller's own does,
// whichever of them gives the call.
func TestRightsLayersWorld(t *testing.T) {
	parts := []string{
		"[defaults.capabilities]\nenv = [\"D\"]\n",
		"[callers.\"oauth:a|bob\"]\nallow = true\n[callers.\"oauth:a|bob\".capabilities]\nenv = [\"C\"]\n",
		"[callers.\"right:a\"]\nallow = true\n[callers.\"right:a\".capabilities]\nenv = [\"A\"]\n",
		"[callers.\"right:b\"]\nallow = true\n[callers.\"right:b\".deny]\nenv = [\"B\"]\n",
		"[skills.hello.capabilities]\nenv = [\"S\"]\n",
		"[skills.hello.tools.greet.deny]\nenv = [\"T\"]\n",
	}
	names := []string{"D", "C", "A", "B", "S", "T"}
	for mask := range 1 << len(parts) {
		var text strings.Builder
		for i, part := range parts {
			if mask&(1<<i) != 0 {
				text.WriteString(part)
			}
		}
		p := read(t, text.String())
		for held, rights := range []string{"", "a", "b", "a b"} {
			reach := mask &^ 12
			reach |= mask & (held << 2)
			r := Request{Caller: "oauth:a|bob", Rights: rights, Skill: "hello", Digest: digestA, Builtin: true, Tool: "greet"}
			var want, got []string
			for i, name := range names {
				if reach&(1<<i) != 0 {
					want = append(want, name)
				}
			}
			for _, l := range p.Layers(r) {
				got = append(got, append(l.Allow, l.Deny...)[0].Pattern)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s\n%q: layers %v, want %v", &text, rights, got, want)
			}
			if d := p.Authorize(r); d.Allowed != (reach&14 != 0) || d.Allowed && len(d.Layers) != len(want) {
				t.Fatalf("%s\n%q: %+v", &text, rights, d)
			}
		}
	}
}
