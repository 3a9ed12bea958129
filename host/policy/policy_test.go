package policy

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

func TestZeroPolicy(t *testing.T) {
	for name, p := range map[string]*Policy{"nil": nil, "zero": {}, "empty": read(t, "")} {
		if d := p.Authorize(Request{Caller: "local:bob", Skill: "read-image", Digest: digestA, Builtin: true, Tool: "ReadImage"}); !d.Allowed || len(d.Layers) != 0 {
			t.Errorf("%s: a built-in skill: %+v", name, d)
		}
		d := p.Authorize(Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet"})
		if d.Allowed || !strings.Contains(d.Reason, "skill allow hello") || !strings.Contains(d.Allow, digestA) {
			t.Errorf("%s: a stranger's skill: %+v", name, d)
		}
		if p.Authorize(Request{}).Allowed {
			t.Errorf("%s: the zero request is allowed", name)
		}
		if _, ok := p.Secret("A"); ok {
			t.Errorf("%s: a secret", name)
		}
	}
}

const example = `
[defaults.capabilities]
filesystem = ["read:${workspace}", "write:${workspace}"]
network = ["*.example.com"]

[defaults.deny]
filesystem = ["read:${workspace}/.git"]

[defaults.tools]
deny = ["hello.shout", "shell"]

[skills.hello]
allow = true
digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

[skills.hello.tools.sing]
allow = false

[skills.stale]
allow = true

[skills.named]
dangerous = ["network:*"]

[skills.read-image]
allow = false

[callers."local:eve"]
allow = false

[callers."local:kid".skills]
allow = ["hello", "named"]
deny = ["named"]

[callers."local:kid".tools]
allow = ["hello.greet", "ReadImage"]
deny = ["hello.wave"]

[callers."*".capabilities]
env = []
`

func TestGoldenRefusals(t *testing.T) {
	p := read(t, example)
	star, err := capability.Parse(capability.Network, "*", capability.Pos{File: "hello/skill.toml", Line: 9})
	if err != nil {
		t.Fatal(err)
	}
	wide := capability.Layer{Closed: true, Allow: capability.Set{star}}
	tests := []struct {
		r    Request
		want string
	}{
		{Request{Caller: "local:bob", Skill: "new", Digest: digestB, Tool: "x"},
			`policy.toml: skill "new" has not been allowed; see what it asks for with: skill allow new; to allow it, write under [skills.new]:
allow = true
digest = "` + digestB + `"`},
		{Request{Caller: "local:bob", Skill: "hello", Digest: digestB, Tool: "greet"},
			`policy.toml:14: skill "hello" has changed since it was allowed; see what it asks for now with: skill allow hello; to allow it, write under [skills.hello]:
allow = true
digest = "` + digestB + `"`},
		{Request{Caller: "local:bob", Skill: "stale", Digest: digestB, Tool: "x"},
			`policy.toml:20: skill "stale" is allowed without a digest; see what it asks for with: skill allow stale; to allow it, write under [skills.stale]:
allow = true
digest = "` + digestB + `"`},
		{Request{Caller: "local:bob", Skill: "named", Digest: digestB, Tool: "x"},
			`policy.toml:22: skill "named" has rules but no "allow = true"; see what it asks for with: skill allow named; to allow it, write under [skills.named]:
allow = true
digest = "` + digestB + `"`},
		{Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet", Needs: wide},
			`hello/skill.toml:9: skill "hello" asks for the dangerous "network:*"; to allow it, write under [skills.hello]: dangerous = ["network:*"]`},
		{Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "sing"},
			`policy.toml:17: tool "sing" of skill "hello" is forbidden; to allow it, write under [skills.hello.tools.sing]: allow = true`},
		{Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "shout"},
			`policy.toml:10: tool "hello.shout" is denied to everybody; to allow it, write under [defaults.tools]: deny = ["shell"]`},
		{Request{Caller: "local:bob", Skill: "bash", Builtin: true, Tool: "shell"},
			`policy.toml:10: tool "bash.shell" is denied to everybody; to allow it, write under [defaults.tools]: deny = ["hello.shout"]`},
		{Request{Caller: "local:bob", Skill: "read-image", Builtin: true, Tool: "ReadImage"},
			`policy.toml:26: skill "read-image" is forbidden; to allow it, write under [skills.read-image]: allow = true`},
		{Request{Caller: "local:eve", Skill: "hello", Digest: digestA, Tool: "greet"},
			`policy.toml:29: caller "local:eve" may call nothing; to allow it, write under [callers."local:eve"]: allow = true`},
		{Request{Caller: "local:kid", Skill: "other", Builtin: true, Tool: "x"},
			`policy.toml:32: skill "other" is not on the list of caller "local:kid"; to allow it, write under [callers."local:kid".skills]: allow = ["hello", "named", "other"]`},
		{Request{Caller: "local:kid", Skill: "named", Builtin: true, Tool: "x"},
			`policy.toml:33: skill "named" is denied to caller "local:kid"; to allow it, write under [callers."local:kid".skills]: deny = []`},
		{Request{Caller: "local:kid", Skill: "hello", Digest: digestA, Tool: "wave"},
			`policy.toml:37: tool "hello.wave" is denied to caller "local:kid"; to allow it, write under [callers."local:kid".tools]: deny = []`},
		{Request{Caller: "local:kid", Skill: "hello", Digest: digestA, Tool: "ReadImage"}, // a stranger's tool of a built-in's name
			`policy.toml:36: tool "hello.ReadImage" is not on the list of caller "local:kid"; to allow it, write under [callers."local:kid".tools]: allow = ["hello.greet", "ReadImage", "hello.ReadImage"]`},
	}
	for _, tt := range tests {
		err := p.Authorize(tt.r).Err()
		want := "the operator does not allow this call (" + tt.want + ")"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		var e *sdk.Error
		if !errors.As(err, &e) || e.Kind != sdk.Denied || e.Denial.Layer != "operator" || e.Denial.File == "" || e.Denial.Allow == "" {
			t.Errorf("%v: denial %+v", err, e.Denial)
		}
	}
}

func TestLayersOfExample(t *testing.T) {
	d := read(t, example).Authorize(Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet"})
	if !d.Allowed || len(d.Layers) != 2 {
		t.Fatalf("%+v", d)
	}
	defaults, caller := d.Layers[0], d.Layers[1]
	if defaults.Table != "[defaults.capabilities]" || defaults.Pos.Line != 2 || len(defaults.Allow) != 3 || len(defaults.Deny) != 1 || defaults.Deny[0].Pos.Line != 7 {
		t.Errorf("defaults %+v", defaults)
	}
	want := []capability.Topic{{Kind: capability.Network, Verb: capability.Connect}, {Kind: capability.Filesystem, Verb: capability.Read}, {Kind: capability.Filesystem, Verb: capability.Write}}
	if !reflect.DeepEqual(defaults.Speaks, want) {
		t.Errorf("defaults speak of %v", defaults.Speaks)
	}
	if caller.Table != `[callers."*".capabilities]` || len(caller.Speaks) != 1 || len(caller.Allow) != 0 {
		t.Errorf("an empty list speaks, and allows nothing: %+v", caller)
	}
	g := capability.NewGrant([]capability.Layer{{Name: "manifest", Closed: true, Allow: caller.Allow}, caller}, nil)
	if g.Allows(capability.Access{Kind: capability.Env, Verb: capability.Read, Target: "LANG"}) {
		t.Error("env = [] allows")
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown_table", "[skill.hello]\nallow = true", `policy.toml:1: unknown key "skill" at the top level (did you mean "skills"? known here: callers, dangerous, defaults, secrets, skills)`},
		{"unknown_key", "[skills.hello]\nalow = true", `policy.toml:2: unknown key "alow" in [skills.hello] (did you mean "allow"? known here: allow, capabilities, dangerous, deny, digest, sandbox, tools)`},
		{"unknown_kind", "[defaults.deny]\nnetworks = []", `policy.toml:2: unknown key "networks" in [defaults.deny] (did you mean "network"? known here: client, env, exec, filesystem, invoke, network, secrets)`},
		{"twice", "[skills.hello]\nallow = true\n[skills.hello]\nallow = false", `policy.toml:3`},
		{"not_bool", "[skills.hello]\nallow = \"yes\"", `policy.toml:2: skills.hello.allow: want true or false, found a string`},
		{"skill_name", "[skills.\"../x\"]\nallow = true", `policy.toml:1: skills.../x: bad skill name "../x" (a skill's name has lower-case letters, digits and single hyphens)`},
		{"skill_glob", "[skills.\"*\"]\nallow = true", `bad skill name "*"`},
		{"tool_name", "[skills.a.tools.\"x y\"]\nallow = true", `bad tool name "x y"`},
		{"digest_short", "[skills.a]\nallow = true\ndigest = \"sha256:12\"", `policy.toml:3: skills.a.digest: bad digest "sha256:12"`},
		{"digest_upper", "[skills.a]\ndigest = \"sha256:" + strings.Repeat("A", 64) + "\"", `bad digest`},
		{"digest_glob", "[skills.a]\ndigest = \"sha256:*\"", `bad digest`},
		{"caller_glob", "[callers.\"local:*\"]\nallow = true", `bad caller "local:*"`},
		{"caller_empty", "[callers.\"\"]\nallow = true", `bad caller ""`},
		{"list_skill", "[callers.x.skills]\nallow = [\"a\", \"B c\"]", `policy.toml:2: callers.x.skills.allow: bad entry "B c"`},
		{"list_tool_glob", "[defaults.tools]\ndeny = [\"hel*\"]", `bad entry "hel*" (write "SKILL.TOOL", "SKILL.*", "*", or a tool's name alone)`},
		{"list_tool_any_skill", "[defaults.tools]\ndeny = [\"*.greet\"]", `bad entry "*.greet"`},
		{"path_glob", "[defaults.deny]\nfilesystem = [\n  \"read:/a\",\n  \"read:/b/*\",\n]", `policy.toml:4: defaults.deny.filesystem: filesystem entry "read:/b/*" (want "read:PATH"`},
		{"path_dotdot", "[defaults.deny]\nfilesystem = [\"read:/a/../b\"]", `policy.toml:2: defaults.deny.filesystem`},
		{"net_decimal_ip", "[skills.a.deny]\nnetwork = [\"2130706433\"]", `policy.toml:2: skills.a.deny.network: network entry "2130706433"`},
		{"net_public_suffix_wildcard", "[skills.a.capabilities]\nnetwork = [\"*.co.uk\"]", `would cover strangers`},
		{"dangerous_network", "[defaults.capabilities]\nnetwork = [\"*\"]", `policy.toml:2: defaults.capabilities.network: "*" is dangerous (if you mean it, add to [dangerous]: allow = ["network:*"])`},
		{"dangerous_write", "[skills.a.capabilities]\nfilesystem = [\"write:/\"]", `add to [dangerous]: allow = ["write:/"]`},
		{"dangerous_exec", "[callers.x.capabilities]\nexec = [\"/bin/sh\"]", `add to [dangerous]: allow = ["exec:sh"]`},
		{"dangerous_unneeded", "[dangerous]\nallow = [\"exec:git\"]", `policy.toml:2: dangerous.allow: nothing needs the word "exec:git"`},
		{"dangerous_unknown", "[dangerous]\nallow = [\"all\"]", `unknown word "all"`},
		{"dangerous_not_canonical", "[dangerous]\nallow = [\"exec:/bin/sh\"]", `nothing needs the word "exec:/bin/sh"`},
		{"dangerous_of_other_skill", "[skills.a]\ndangerous = [\"exec:sh\"]\n[skills.b.capabilities]\nexec = [\"sh\"]", `policy.toml:4: skills.b.capabilities.exec: "sh" is dangerous`},
		{"secret_source", "[secrets.A]\nsource = \"keyring\"\nhosts = [\"x.com\"]", `policy.toml:2: secrets.A.source: bad source "keyring" (want "env:VARIABLE", "file:/absolute/path" or "store")`},
		{"secret_relative_file", "[secrets.A]\nsource = \"file:key\"\nhosts = [\"x.com\"]", `bad source`},
		{"secret_no_hosts", "[secrets.A]\nsource = \"store\"", `policy.toml:1: secrets.A: no hosts`},
		{"secret_all_hosts", "[secrets.A]\nsource = \"store\"\nhosts = [\"*\"]", `a secret may not go to "*"`},
		{"secret_plaintext", "[secrets.A]\nsource = \"store\"\nhosts = [\"http://x.com\"]", `secrets are sent over https only`},
		{"secret_header", "[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nheader = \"A: b\"", `policy.toml:4: secrets.A.header: bad header name`},
		{"secret_query", "[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nquery = \"a&b\"", `policy.toml:4: secrets.A.query: bad parameter "a&b"`},
		{"secret_query_and_header", "[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nquery = \"a\"\nheader = \"A\"", `policy.toml:4: secrets.A.query`},
		{"secret_format", "[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nformat = \"Bearer\"", `want one "{}" for the value`},
		{"secret_format_crlf", "[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nformat = \"{}\\r\\nX: y\"", `bad format`},
		{"secret_name", "[secrets.\"A B\"]\nsource = \"store\"\nhosts = [\"x.com\"]", `bad name "A B"`},
		{"sandbox_unknown", "[defaults]\nsandbox = \"strickt\"", `policy.toml:2: defaults.sandbox: unknown level "strickt" (want "strict", "landlock" or, which confines nothing, "none")`},
		{"sandbox_empty", "[skills.a]\nsandbox = \"\"", `policy.toml:2: skills.a.sandbox: unknown level ""`},
		{"sandbox_not_text", "[skills.a]\nsandbox = false", `policy.toml:2: skills.a.sandbox: want a string`},
		{"sandbox_of_tool", "[skills.a.tools.b]\nsandbox = \"none\"", `policy.toml:2: unknown key "sandbox" in [skills.a.tools.b]`},
		{"sandbox_of_caller", "[callers.x]\nsandbox = \"none\"", `policy.toml:2: unknown key "sandbox" in [callers.x]`},
		{"client_unknown", "[defaults.deny]\nclient = [\"sampling\", \"model\"]", `policy.toml:2: defaults.deny.client: client entry "model" (want "sampling", "roots" or "callback")`},
		{"client_is_not_dangerous", "[dangerous]\nallow = [\"client:sampling\"]", `unknown word "client:sampling"`},
		{"not_toml", "allow everything", `policy.toml:1`},
	}
	for _, tt := range tests {
		p, err := Read("policy.toml", []byte(tt.text))
		if err == nil || p != nil || !strings.Contains(err.Error(), tt.want) || sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: got  %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

func TestDangerousOfSkill(t *testing.T) {
	read(t, "[skills.a]\ndangerous = [\"exec:sh\"]\n[skills.a.capabilities]\nexec = [\"sh\"]\n[skills.a.tools.t.capabilities]\nexec = [\"sh\"]")
	read(t, "[dangerous]\nallow = [\"network:*\", \"network:0.0.0.0/0\", \"read:/\", \"write:/etc\", \"exec:*\", \"exec:sh\", \"invoke:*\"]")
}

func TestSecret(t *testing.T) {
	p := read(t, "[secrets.GITHUB_TOKEN]\nsource = \"env:GH\"\nhosts = [\"api.github.com\"]\nheader = \"Authorization\"\nformat = \"Bearer {}\"\n"+
		"[secrets.F]\nsource = \"file:/run/secrets/f\"\nhosts = [\"x.com:8443\"]\n[secrets.S]\nsource = \"store\"\nhosts = [\"x.com\"]")
	b, ok := p.Secret("GITHUB_TOKEN")
	if !ok || b.Source != (SecretSource{"env", "GH"}) || b.Header != "Authorization" || b.Format != "Bearer {}" || len(b.Hosts) != 1 || b.Hosts[0].Pattern != "api.github.com" || b.Pos.Line != 1 {
		t.Errorf("%+v, %v", b, ok)
	}
	if b, _ := read(t, "[secrets.Q]\nsource = \"store\"\nhosts = [\"x.com\"]\nquery = \"api_key\"").Secret("Q"); b.Query != "api_key" || b.Header != "" {
		t.Errorf("Q is %+v", b)
	}
	if b, _ := p.Secret("F"); b.Source != (SecretSource{"file", "/run/secrets/f"}) {
		t.Errorf("%+v", b)
	}
	if b, _ := p.Secret("S"); b.Source != (SecretSource{Kind: "store"}) {
		t.Errorf("%+v", b)
	}
	if _, ok := p.Secret("github_token"); ok {
		t.Error("names of secrets are compared as they are")
	}
}

func read(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Read("policy.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAuthorizeSharesLayers(t *testing.T) {
	p := read(t, strings.Replace(example, `[callers."*".capabilities]`+"\nenv = []\n", "", 1))
	needs := capability.Layer{Closed: true}
	for _, e := range []string{"write:${workspace}", "read:/srv/a", "write:/srv/b"} {
		c, err := capability.Parse(capability.Filesystem, e, capability.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		needs.Allow = append(needs.Allow, c)
	}
	r := Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet", Needs: needs}
	if n := testing.AllocsPerRun(100, func() {
		if !p.Authorize(r).Allowed {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAuthorize(b *testing.B) {
	p := read(b, example)
	c, err := capability.Parse(capability.Filesystem, "write:${workspace}", capability.Pos{})
	if err != nil {
		b.Fatal(err)
	}
	r := Request{Caller: "local:bob", Skill: "hello", Digest: digestA, Tool: "greet", Needs: capability.Layer{Closed: true, Allow: capability.Set{c, c, c, c}}}
	b.ReportAllocs()
	for b.Loop() {
		if !p.Authorize(r).Allowed {
			b.Fatal("refused")
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("[secrets.A]\nsource = \"env:B\"\nhosts = [\"x.com\"]\n[dangerous]\nallow = [\"exec:*\"]"))
	f.Add([]byte("skills.a = {allow=true}\ncallers.\"*\".tools.allow=[]"))
	if shipped, err := os.ReadFile("../../manifests/policy.example.toml"); err == nil {
		f.Add(shipped)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read("f", data)
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), "f") {
				t.Fatalf("%v", err)
			}
			return
		}
		// Without an approval that names its content, nothing is allowed.
		r := Request{Caller: "local:bob", Skill: "never-written-here", Digest: digestA, Tool: "x"}
		if p.Authorize(r).Allowed {
			t.Fatal("a skill that nobody named is allowed")
		}
		for name, s := range p.skills {
			r.Skill, r.Digest = name, "sha256:"+strings.Repeat("0", 63)+"g"
			if p.Authorize(r).Allowed && s.digest != AnyDigest {
				t.Fatalf("skill %q is allowed whatever its content", name)
			}
		}
		for _, edit := range []func() ([]byte, error){
			func() ([]byte, error) { return Allow(data, "never-written-here", digestA) },
			func() ([]byte, error) { return Forbid(data, "never-written-here") },
		} {
			if text, err := edit(); err == nil {
				if _, err := Read("f", text); err != nil {
					t.Fatalf("an edit breaks the file: %v", err)
				}
			}
		}
	})
}
