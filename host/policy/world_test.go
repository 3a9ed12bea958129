package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
)

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
)

// A rule is a fragment of a policy and what it means, said once more.
type rule struct {
	toml string
	is   string
}

// The small world: each list holds every way to speak of one thing.
var (
	worldDefaults = []rule{
		{"", ""},
		{"[defaults.tools]\ndeny = [\"hello.greet\"]\n", "deny hello.greet"},
		{"[defaults.tools]\ndeny = [\"other.*\"]\n", "deny other"},
		{"[defaults.tools]\ndeny = [\"*\"]\n", "deny all"},
	}
	worldSkills = []rule{ // %s is the digest line
		{"", "absent"},
		{"[skills.hello]\n%s", "silent"},
		{"[skills.hello]\nallow = true\n%s", "allow"},
		{"[skills.hello]\nallow = false\n%s", "forbid"},
	}
	worldDigests = []rule{
		{"", "none"},
		{"digest = \"" + digestA + "\"\n", "match"},
		{"digest = \"" + digestB + "\"\n", "other"},
		{"digest = \"*\"\n", "any"},
	}
	worldTools = []rule{
		{"", ""},
		{"[skills.hello.tools.greet]\nallow = true\n", ""},
		{"[skills.hello.tools.greet]\nallow = false\n", "forbid greet"},
	}
	worldCallers = []rule{ // %s is the caller's key
		{"", ""},
		{"[callers.%s]\nallow = false\n", "nothing"},
		{"[callers.%s.skills]\nallow = [\"hello\"]\n", ""},
		{"[callers.%s.skills]\nallow = []\n", "nothing"},
		{"[callers.%s.skills]\nallow = [\"*\"]\ndeny = [\"hello\"]\n", "nothing"},
		{"[callers.%s.tools]\nallow = [\"hello.greet\"]\n", "only greet"},
		{"[callers.%s.tools]\nallow = [\"greet\"]\n", "only built-in greet"},
		{"[callers.%s.tools]\nallow = [\"*\"]\ndeny = [\"greet\"]\n", "not greet"},
		{"[callers.%s.tools]\ndeny = [\"hello.*\"]\n", "nothing"},
	}
	worldDangerous = []rule{
		{"", ""},
		{"[dangerous]\nallow = [\"exec:*\", \"network:*\"]\n", "sh"},
		{"[dangerous]\nallow = [\"exec:bash\", \"write:/\"]\n", ""},
	}
)

// naive decides on skill hello by what the rules mean.
func naive(def, skill, dig, tool, caller, danger string, applies bool, r Request) bool {
	if def == "deny all" || def == "deny hello.greet" && r.Tool == "greet" {
		return false
	}
	if skill == "forbid" || tool == "forbid greet" && r.Tool == "greet" {
		return false
	}
	if applies {
		switch {
		case caller == "nothing",
			caller == "only greet" && r.Tool != "greet",
			caller == "only built-in greet" && (r.Tool != "greet" || !r.Builtin),
			caller == "not greet" && r.Tool == "greet":
			return false
		}
	}
	if skill == "absent" {
		dig = "none"
	}
	if r.Builtin {
		return dig != "other"
	}
	if skill != "allow" || dig != "match" && dig != "any" {
		return false
	}
	return len(r.Needs.Allow) == 0 || danger == "sh"
}

func TestAuthorizeWorld(t *testing.T) {
	sh, err := capability.Parse(capability.Exec, "sh", capability.Pos{File: "skill.toml", Line: 3})
	if err != nil {
		t.Fatal(err)
	}
	needs := []capability.Layer{{}, {Closed: true, Allow: capability.Set{sh}}}
	count, allowed := 0, 0
	for _, key := range []string{`"local:bob"`, `"*"`} {
		for i := range len(worldDefaults) * len(worldSkills) * len(worldDigests) * len(worldTools) * len(worldCallers) * len(worldDangerous) {
			pick := func(rules []rule) rule {
				r := rules[i%len(rules)]
				i /= len(rules)
				return r
			}
			def, skill, dig, tool, caller, danger := pick(worldDefaults), pick(worldSkills), pick(worldDigests), pick(worldTools), pick(worldCallers), pick(worldDangerous)
			text := danger.toml + def.toml + strings.Replace(skill.toml, "%s", dig.toml, 1) + tool.toml + strings.Replace(caller.toml, "%s", key, 1)
			p, err := Read("policy.toml", []byte(text))
			if err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
			for j := range 16 {
				r := Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Builtin: j&1 != 0, Tool: "greet", Needs: needs[j>>1&1]}
				if j&4 != 0 {
					r.Tool = "sing"
				}
				if j&8 != 0 {
					r.Caller = "local:eve"
				}
				applies := key == `"*"` || r.Caller == "local:bob"
				d := p.Authorize(r)
				want := naive(def.is, skill.is, dig.is, tool.is, caller.is, danger.is, applies, r)
				if d.Allowed != want {
					t.Fatalf("%s\n%+v: got %+v, want %v", text, r, d, want)
				}
				count++
				if d.Allowed {
					allowed++
					continue
				}
				if d.Reason == "" || d.Layers != nil || d.Err() == nil || d.Allow == "" {
					t.Fatalf("%s\n%+v: a refusal without a reason or a way out: %+v", text, r, d)
				}
				if count%211 == 0 {
					checkWayOut(t, text, r, d)
				}
			}
		}
	}
	if count == 0 || allowed == 0 || allowed == count {
		t.Fatalf("%d of %d allowed", allowed, count)
	}
}

// checkWayOut does what the refusals say until the call is allowed: each one
// must remove its own reason.
func checkWayOut(t *testing.T, text string, r Request, d Decision) {
	t.Helper()
	began := text
	for range 8 {
		was := d.Reason
		text = merge(text, d.Allow)
		p, err := Read("policy.toml", []byte(text))
		if err != nil {
			t.Fatalf("%s\nfollowing %q:\n%s\n%v", began, d.Allow, text, err)
		}
		if d = p.Authorize(r); d.Allowed {
			return
		}
		if d.Reason == was {
			t.Fatalf("%s\nfollowing %q does not help:\n%s", began, d.Allow, text)
		}
	}
	t.Fatalf("%s\nno end of refusals: %+v", began, d)
}

// merge puts the lines of allow, which start with a table's header, into text
// as a person would.
func merge(text, allow string) string {
	lines := strings.Split(allow, "\n")
	if !strings.Contains(text, lines[0]+"\n") {
		text += lines[0] + "\n"
	}
	for _, l := range lines[1:] {
		key, _, _ := strings.Cut(l, " = ")
		before, table, _ := strings.Cut(text, lines[0]+"\n")
		body, after, more := strings.Cut(table, "\n[")
		if more {
			after = "\n[" + after
		}
		if strings.HasPrefix(table, "[") {
			body, after = "", table
		}
		kept := slices.DeleteFunc(strings.Split(body, "\n"), func(b string) bool { return b == "" || strings.HasPrefix(b, key+" = ") })
		text = before + lines[0] + "\n" + l + "\n" + strings.Join(append(kept, ""), "\n") + strings.TrimPrefix(after, "\n")
	}
	return text
}

// The skill's word on its sandbox counts, else that of the defaults, whoever
// calls and whatever is written beside it.
func TestSandboxWorld(t *testing.T) {
	levels := []string{"", "strict", "landlock", "none"}
	for _, ofDefaults := range levels {
		for _, ofSkill := range levels {
			for _, more := range []string{"", "[skills.hello.tools.greet]\nallow = true\n", "[callers.\"*\"]\nallow = true\n", "[skills.other]\nsandbox = \"none\"\n"} {
				want, line := ofDefaults, 2
				text := "[defaults]\n"
				if ofDefaults != "" {
					text += "sandbox = \"" + ofDefaults + "\"\n"
				}
				text += "[skills.hello]\nallow = true\ndigest = \"" + digestA + "\"\n"
				if ofSkill != "" {
					text += "sandbox = \"" + ofSkill + "\"\n"
					want, line = ofSkill, strings.Count(text, "\n")
				}
				pos := capability.Pos{File: "policy.toml", Line: line}
				if want == "" {
					pos = capability.Pos{}
				}
				d := read(t, text+more).Authorize(Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet"})
				if !d.Allowed || d.Sandbox != want || d.SandboxPos != pos {
					t.Errorf("%s: sandbox %q at %v, want %q at %v", text+more, d.Sandbox, d.SandboxPos, want, pos)
				}
			}
			text := "[defaults]\n"
			if ofDefaults != "" {
				text += "sandbox = \"" + ofDefaults + "\"\n"
			}
			if d := read(t, text+"[skills.hello]\nsandbox = \"none\"\n").Authorize(Request{Caller: "local:bob", Skill: "build", Builtin: true, Tool: "x"}); d.Sandbox != ofDefaults {
				t.Errorf("%s: a skill without rules has %q", text, d.Sandbox)
			}
		}
	}
	if d := read(t, "[skills.hello]\nsandbox = \"none\"\n").Authorize(Request{Skill: "hello", Digest: digestA, Tool: "greet"}); d.Allowed {
		t.Error("a sandbox is no approval")
	}
}

// Layers come in the order defaults, caller, skill, tool, and are those that
// are written.
func TestLayersWorld(t *testing.T) {
	parts := []string{
		"[defaults.capabilities]\nenv = [\"D\"]\n",
		"[callers.\"local:bob\".capabilities]\nenv = [\"C\"]\n",
		"[skills.hello.capabilities]\nenv = [\"S\"]\n",
		"[skills.hello.tools.greet.deny]\nenv = [\"T\"]\n",
	}
	for mask := range 1 << len(parts) {
		text := "[skills.hello]\nallow = true\ndigest = \"*\"\n"
		for i, p := range parts {
			if mask&(1<<i) != 0 {
				text += p
			}
		}
		p, err := Read("policy.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for j := range 4 {
			r, reach := Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet"}, mask
			if j&1 != 0 {
				r.Caller, reach = "local:eve", reach&^2
			}
			if j&2 != 0 {
				r.Tool, reach = "sing", reach&^8
			}
			var want, got []string
			for i, name := range []string{"D", "C", "S", "T"} {
				if reach&(1<<i) != 0 {
					want = append(want, name)
				}
			}
			for _, l := range p.Authorize(r).Layers {
				if l.Name != "operator" || l.Closed {
					t.Fatalf("layer %+v", l)
				}
				got = append(got, append(l.Allow, l.Deny...)[0].Pattern)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s\n%+v: got %v, want %v", text, r, got, want)
			}
		}
	}
}
