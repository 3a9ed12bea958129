package policy

import (
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// A skill that is allowed for one run must not take away what is denied, even
// if the file is gone by then.
func allows(p *Policy, skill string) bool {
	return p.Authorize(Request{Caller: "local:bob", Skill: skill, Digest: digestA, Tool: "x"}).Allowed
}

func TestAllowingKeepsDenials(t *testing.T) {
	p, err := Read("policy.toml", []byte("[skills.run-command]\nallow = false\n"))
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.Allowing("hello", digestA)
	if err != nil || !allows(q, "hello") || allows(p, "hello") {
		t.Fatalf("%v", err)
	}
	if q.Authorize(Request{Caller: "local:bob", Skill: "run-command", Builtin: true, Tool: "x"}).Allowed {
		t.Error("a denial is gone")
	}
	if q, err = (*Policy)(nil).Allowing("hello", digestA); err != nil || !allows(q, "hello") {
		t.Error(err)
	}
}

func TestAllowForbid(t *testing.T) {
	a, b := `"`+digestA+`"`, `"`+digestB+`"`
	tests := []struct {
		name, text string
		forbid     bool
		want       string // "" means that it must be written by hand
	}{
		{"empty", "", false, "[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"comment", "# mine\n", false, "# mine\n\n[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"no_newline", "[skills.x]\nallow = true", false, "[skills.x]\nallow = true\n\n[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"crlf", "[skills.x]\r\nallow = true\r\n", false, "[skills.x]\r\nallow = true\r\n\r\n[skills.hello]\r\nallow = true\r\ndigest = " + b + "\r\n"},
		{"update", "# a\n[skills.hello] # why\n  allow   =  false  # off\n\tdigest='" + digestA + "'# old\n\n[skills.z]\nallow = false\n", false,
			"# a\n[skills.hello] # why\n  allow   =  true  # off\n\tdigest=" + b + "# old\n\n[skills.z]\nallow = false\n"},
		{"add_keys", "[ skills . \"hello\" ]\ndangerous = [\"exec:sh\"] # ok\n[skills.z]\n", false,
			"[ skills . \"hello\" ]\nallow = true\ndigest = " + b + "\ndangerous = [\"exec:sh\"] # ok\n[skills.z]\n"},
		{"add_digest", "[skills.hello]\nallow = true\n", false, "[skills.hello]\ndigest = " + b + "\nallow = true\n"},
		{"header_at_end", "[skills.hello]", false, "[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"quoted_key", "[skills.hello]\n\"allow\" = false\n", false, "[skills.hello]\ndigest = " + b + "\n\"allow\" = true\n"},
		{"only_subtable", "[skills.hello.capabilities]\nenv = []\n", false, "[skills.hello.capabilities]\nenv = []\n\n[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"only_tool", "[skills.hello.tools.x]\nallow = false\n", false, "[skills.hello.tools.x]\nallow = false\n\n[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"prefix_name", "[skills.hello-2]\nallow = false\n", false, "[skills.hello-2]\nallow = false\n\n[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"text_in_string", "[skills.x.deny]\nfilesystem = [\"read:/[skills.hello\"]\n", false, "before"},
		{"same_key_in_comment", "[skills.hello]\n# allow = true\nallow = false\ndigest = " + a + "\n", false, "[skills.hello]\n# allow = true\nallow = true\ndigest = " + b + "\n"},
		{"multiline_digest", "[skills.hello]\nallow = true\ndigest = \"\"\"" + digestA + "\"\"\"\n", false, "[skills.hello]\nallow = true\ndigest = " + b + "\n"},
		{"inline_table", "[skills]\nhello = {allow = false}\n", false, ""},
		{"dotted", "skills.hello.allow = false\n", false, ""},
		{"keeps_sandbox", "[skills.hello]\nsandbox = \"none\" # why\nallow = false\n", false, "[skills.hello]\ndigest = " + b + "\nsandbox = \"none\" # why\nallow = true\n"},
		{"forbid_new", "", true, "[skills.hello]\nallow = false\n"},
		{"forbid_keeps_digest", "[skills.hello]\nallow = true\ndigest = " + a + "\n", true, "[skills.hello]\nallow = false\ndigest = " + a + "\n"},
		{"unchanged", "[skills.hello]\nallow = false\n", true, "[skills.hello]\nallow = false\n"},
		{"broken_before", "[skills.hello]\nalow = 1\n", true, "before"},
	}
	for _, tt := range tests {
		got, err := Allow([]byte(tt.text), "hello", digestB)
		if tt.forbid {
			got, err = Forbid([]byte(tt.text), "hello")
		}
		switch {
		case tt.want == "before":
			if err == nil {
				t.Errorf("%s: a broken file is edited", tt.name)
			}
		case tt.want == "":
			if err == nil || sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), `write into it by hand: allow = true, digest = "sha256:bbb`) {
				t.Errorf("%s: got %q, %v", tt.name, got, err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case string(got) != tt.want:
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestAllowTakesEffect(t *testing.T) {
	r := Request{Caller: "local:bob", Skill: "hello", Digest: digestB, Tool: "greet"}
	text, err := Allow([]byte(example), "hello", digestB)
	if err != nil {
		t.Fatal(err)
	}
	if d := read(t, string(text)).Authorize(r); !d.Allowed {
		t.Errorf("%+v", d)
	}
	if strings.ReplaceAll(string(text), digestB, digestA) != example {
		t.Errorf("more than the digest has changed:\n%s", text)
	}
	if text, err = Forbid(text, "hello"); err != nil {
		t.Fatal(err)
	}
	if d := read(t, string(text)).Authorize(r); d.Allowed {
		t.Error("forbidden, and allowed")
	}
}

func TestEditRefuses(t *testing.T) {
	for name, edit := range map[string]func() ([]byte, error){
		"skill_name": func() ([]byte, error) { return Allow(nil, "x]\nallow = true\n[skills.y", digestA) },
		"digest":     func() ([]byte, error) { return Allow(nil, "hello", "sha256:1") },
		"digest_toml": func() ([]byte, error) {
			return Allow(nil, "hello", digestA+"\"\n[callers.\"*\"]\nallow = true\n#")
		},
		"forbid_name":  func() ([]byte, error) { return Forbid(nil, "") },
		"secret_hosts": func() ([]byte, error) { return SetSecret(nil, "A", "store") },
		"secret_all":   func() ([]byte, error) { return SetSecret(nil, "A", "store", "*") },
		"secret_name":  func() ([]byte, error) { return SetSecret(nil, "A B", "store", "x.com") },
		"secret_src":   func() ([]byte, error) { return SetSecret(nil, "A", "hunter2", "x.com") },
	} {
		if text, err := edit(); err == nil {
			t.Errorf("%s: got %q", name, text)
		}
	}
}

func TestSetSecret(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"new", "", "[secrets.GH]\nsource = \"env:GH\"\nhosts = [\"api.github.com\", \"x.com\"]\n"},
		{"update", "[secrets.GH]\nsource = \"store\" # here\nhosts = [ # most\n  'a.com', # ]\n  \"b].com\"\n] # end\nheader = \"X\"\n", ""},
		{"update_hosts", "[secrets.GH]\nsource = \"store\" # here\nhosts = [ # most ]\n  'a.com', # ]\n  \"b.com\" ] # end\nheader = \"X\"\n",
			"[secrets.GH]\nsource = \"env:GH\" # here\nhosts = [\"api.github.com\", \"x.com\"] # end\nheader = \"X\"\n"},
	}
	for _, tt := range tests {
		got, err := SetSecret([]byte(tt.text), "GH", "env:GH", "api.github.com", "x.com")
		if (err != nil) != (tt.want == "") || string(got) != tt.want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", tt.name, err, got, tt.want)
		}
	}
}
