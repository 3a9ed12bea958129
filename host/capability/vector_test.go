package capability

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// Each vector is an attack: what the entry allows, what is tried, and whether
// it passes.
func TestPathVectors(t *testing.T) {
	tests := []struct {
		name  string
		entry string
		verb  Verb
		path  string
		ok    bool
	}{
		{"path_same", "read:/data", Read, "/data", true},
		{"path_child", "read:/data", Read, "/data/x/y", true},
		{"path_prefix_sibling", "read:/data", Read, "/database", false},
		{"path_prefix_sibling_dash", "read:/data", Read, "/data-2/x", false},
		{"path_parent", "read:/data/x", Read, "/data", false},
		{"path_root_covers_all", "read:/", Read, "/etc/passwd", true},
		{"path_dotdot", "read:/data", Read, "/data/../etc/passwd", false},
		{"path_dot", "read:/data", Read, "/data/./x", false},
		{"path_dotdot_at_end", "read:/data", Read, "/data/..", false},
		{"path_dots_in_name", "read:/data", Read, "/data/..x/...", true},
		{"path_double_slash", "read:/data", Read, "/data//x", false},
		{"path_slash_at_end", "read:/data", Read, "/data/", false},
		{"path_nul", "read:/data", Read, "/data/x\x00.png", false},
		{"path_relative", "read:/data", Read, "data", false},
		{"path_empty", "read:/", Read, "", false},
		{"path_case", "read:/data", Read, "/Data", false},
		{"path_write_by_read", "read:/data", Write, "/data/x", false},
		{"path_read_by_write", "write:/data", Read, "/data/x", true},
		{"path_other_verb", "write:/data", "delete", "/data/x", false},
		{"path_tmp_is_private", "write:/tmp", Write, "/tmp/x", false},
		{"path_tmp_is_symbolic", "write:/tmp", Write, "${tmp}/x", true},
		{"path_tmp_sibling", "write:/tmp", Write, "${tmp}x/y", false},
		{"path_tmp_dotdot", "write:/tmp", Write, "${tmp}/../x", false},
		{"path_tmp_beneath_root", "write:/", Write, "${tmp}/x", false},
		{"path_variable_unbound", "read:${workspace}", Read, "${workspace}/x", false},
		{"path_glob_in_target", "read:/data", Read, "/data/*", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := parseAll(t, Filesystem, tt.entry)
			a := Access{Kind: Filesystem, Verb: tt.verb, Target: tt.path}
			if got := c.Covers(a); got != tt.ok {
				t.Errorf("%s covers %s: got %v, want %v", tt.entry, tt.path, got, tt.ok)
			}
			if c[0].Covers(a) != tt.ok {
				t.Error("the entry and its list differ")
			}
			deny := parseAll(t, Filesystem, "read"+tt.entry[strings.IndexByte(tt.entry, ':'):])
			denied := NewGrant([]Layer{{Closed: true, Allow: c, Deny: deny}}, nil)
			if denied.Allows(a) {
				t.Error("denied, and passes")
			}
		})
	}
}

func TestNetVectors(t *testing.T) {
	tests := []struct {
		name, entry string
		scheme      string
		host        string // as the guest writes it
		port        uint16
		method      string
		ok          bool
	}{
		{"net_same", "example.com", "https", "example.com", 443, "GET", true},
		{"net_trailing_dot", "example.com", "https", "example.com.", 443, "GET", true},
		{"net_case", "Example.COM", "https", "eXample.com", 443, "GET", true},
		{"net_idna", "bücher.example", "https", "xn--bcher-kva.example", 443, "GET", true},
		{"net_homograph", "apple.com", "https", "аpple.com", 443, "GET", false},
		{"net_plaintext", "example.com", "http", "example.com", 443, "GET", false},
		{"net_plaintext_port", "example.com:*", "http", "example.com", 80, "GET", false},
		{"net_plaintext_listed", "http://example.com", "http", "example.com", 80, "GET", true},
		{"net_plaintext_is_not_https", "http://example.com:443", "https", "example.com", 443, "GET", false},
		{"net_other_port", "example.com", "https", "example.com", 8443, "GET", false},
		{"net_any_port", "example.com:*", "https", "example.com", 8443, "GET", true},
		{"net_unknown_scheme", "*", "gopher", "example.com", 70, "", false},
		{"net_opaque_tunnel", "https://example.com", "", "example.com", 443, "", false},
		{"net_method", "GET https://example.com", "https", "example.com", 443, "POST", false},
		{"net_method_unknown", "GET https://example.com", "https", "example.com", 443, "", false},
		{"net_method_case", "GET https://example.com", "https", "example.com", 443, "get", false},
		{"net_wildcard", "*.example.com", "https", "a.b.example.com", 443, "GET", true},
		{"net_wildcard_apex", "*.example.com", "https", "example.com", 443, "GET", false},
		{"net_wildcard_suffix", "*.example.com", "https", "evilexample.com", 443, "GET", false},
		{"net_wildcard_after", "*.example.com", "https", "example.com.evil.org", 443, "GET", false},
		{"net_parent_domain", "api.example.com", "https", "example.com", 443, "GET", false},
		{"net_star_name", "*", "https", "anything.example", 8443, "GET", true},
		{"net_star_address", "*", "https", "192.0.2.1", 443, "GET", true},
		{"net_star_plaintext", "*", "http", "example.com", 80, "GET", false},
		{"net_address", "10.1.2.3", "https", "10.1.2.3", 443, "GET", true},
		{"net_mapped_v6", "10.1.2.3", "https", "[::ffff:10.1.2.3]", 443, "GET", true},
		{"net_fullwidth_digits", "127.0.0.1", "https", "１２７.0.0.1", 443, "GET", true},
		{"net_prefix", "10.0.0.0/8", "tcp", "10.9.8.7", 5432, "", true},
		{"net_prefix_outside", "10.0.0.0/8", "tcp", "11.9.8.7", 5432, "", false},
		{"net_prefix_name", "0.0.0.0/0", "https", "example.com", 443, "GET", false},
		{"net_v6", "[2001:db8::1]", "https", "[2001:DB8:0::1]", 443, "GET", true},
		{"net_name_is_not_its_address", "localhost", "https", "127.0.0.1", 443, "GET", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host, ip, err := ParseHost(tt.host)
			if err != nil {
				t.Fatal(err)
			}
			n := Net{Scheme: tt.scheme, Host: host, IP: ip, Port: tt.port, Method: tt.method}
			a := Access{Kind: Network, Verb: Connect, Target: n.String(), Net: &n}
			if got := parseAll(t, Network, tt.entry).Covers(a); got != tt.ok {
				t.Errorf("%q covers %v: got %v, want %v", tt.entry, &n, got, tt.ok)
			}
		})
	}
}

func TestParseHostRefuses(t *testing.T) {
	tests := map[string]string{
		"net_empty":              "",
		"net_decimal_ip":         "2130706433",
		"net_hex_ip":             "0x7f000001",
		"net_hex_octets":         "0x7f.0.0.0x1",
		"net_octal_ip":           "0177.0.0.1",
		"net_short_ip":           "127.1",
		"net_numeric_tld":        "example.123",
		"net_fullwidth_decimal":  "２１３０７０６４３３",
		"net_zone":               "[fe80::1%eth0]",
		"net_zone_bare":          "fe80::1%25eth0",
		"net_userinfo":           "good.com@evil.com",
		"net_path":               "evil.com/good.com",
		"net_fullwidth_slash":    "evil.com／good.com",
		"net_fullwidth_at":       "good.com＠evil.com",
		"net_backslash":          `evil.com\good.com`,
		"net_query":              "evil.com?good.com",
		"net_fragment":           "evil.com#good.com",
		"net_nul":                "good.com\x00.evil.com",
		"net_newline":            "good.com\nHost: evil.com",
		"net_tab":                "good\t.com",
		"net_percent":            "good%2ecom",
		"net_two_dots_at_end":    "good.com..",
		"net_ideographic_dot":    "good.com。",
		"net_empty_label":        "good..com",
		"net_dot":                ".",
		"net_leading_dot":        ".good.com",
		"net_v4_in_brackets":     "[127.0.0.1]",
		"net_unclosed_bracket":   "[::1",
		"net_text_after_bracket": "[::1]x",
		"net_leading_hyphen":     "-good.com",
		"net_underscore":         "_dmarc.good.com",
		"net_bad_punycode":       "xn--a.com",
		"net_long_label":         strings.Repeat("a", 64) + ".com",
		"net_long_name":          strings.Repeat("a.", 127) + "com",
		"net_not_utf8":           "good\xff.com",
	}
	for name, host := range tests {
		if got, ip, err := ParseHost(host); err == nil {
			t.Errorf("%s: ParseHost(%q) = %q, %v", name, host, got, ip)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name  string
		kind  Kind
		entry string
	}{
		{"path_no_verb", Filesystem, "/data"},
		{"path_unknown_verb", Filesystem, "exec:/data"},
		{"path_relative", Filesystem, "read:data"},
		{"path_empty", Filesystem, "read:"},
		{"path_dotdot", Filesystem, "read:/data/../etc"},
		{"path_dotdot_after_variable", Filesystem, "read:${workspace}/../etc"},
		{"path_slash_at_end", Filesystem, "read:/data/"},
		{"path_glob", Filesystem, "read:/data/*"},
		{"path_glob_class", Filesystem, "read:/data/[ab]"},
		{"path_glob_question", Filesystem, "read:/da?ta"},
		{"path_nul", Filesystem, "read:/data\x00"},
		{"path_newline", Filesystem, "read:/data\nread:/etc"},
		{"path_bidi", Filesystem, "read:/data\u202e"},
		{"path_not_utf8", Filesystem, "read:/data\xff"},
		{"path_backslash", Filesystem, `read:C:\data`},
		{"path_home", Filesystem, "read:~/x"},
		{"path_unknown_variable", Filesystem, "read:${root}"},
		{"path_home_glued", Filesystem, "read:${home}x"},
		{"path_home_dotdot", Filesystem, "read:${home}/../other"},
		{"path_variable_glued", Filesystem, "read:${workspace}x"},
		{"path_variable_inside", Filesystem, "read:/data/${workspace}"},
		{"path_variable_shell", Filesystem, "read:/data/$HOME"},
		{"path_two_question_marks", Filesystem, "read:/data??"},
		{"net_empty", Network, ""},
		{"net_scheme", Network, "ftp://example.com"},
		{"net_path", Network, "https://example.com/x"},
		{"net_userinfo", Network, "https://u@example.com"},
		{"net_query", Network, "example.com?x"},
		{"net_public_suffix_wildcard", Network, "*.co.uk"},
		{"net_public_suffix_wildcard_private", Network, "*.github.io"},
		{"net_public_suffix_wildcard_above", Network, "*.kawasaki.jp"},
		{"net_tld_wildcard", Network, "*.com"},
		{"net_unlisted_tld_wildcard", Network, "*.internal"},
		{"net_inner_wildcard", Network, "a.*.com"},
		{"net_partial_wildcard", Network, "a*.example.com"},
		{"net_two_wildcards", Network, "*.*.example.com"},
		{"net_address_wildcard", Network, "*.10.0.0.1"},
		{"net_decimal_ip", Network, "2130706433"},
		{"net_port_zero", Network, "example.com:0"},
		{"net_port_large", Network, "example.com:65536"},
		{"net_port_leading_zero", Network, "example.com:0443"},
		{"net_port_sign", Network, "example.com:+443"},
		{"net_port_missing", Network, "example.com:"},
		{"net_port_missing_v6", Network, "[::1]:"},
		{"net_v6_bare", Network, "::1"},
		{"net_v6_bare_port", Network, "::1:443"},
		{"net_mapped_prefix", Network, "::ffff:10.0.0.0/104"},
		{"net_zone", Network, "[fe80::1%eth0]"},
		{"net_tcp_without_port", Network, "tcp://example.com"},
		{"net_tcp_methods", Network, "GET tcp://example.com:1"},
		{"net_method_lower", Network, "get https://example.com"},
		{"net_method_empty", Network, "GET,,PUT https://example.com"},
		{"net_two_spaces", Network, "GET  https://example.com"},
		{"exec_empty", Exec, ""},
		{"exec_relative", Exec, "bin/sh"},
		{"exec_dotdot", Exec, "/usr/../bin/sh"},
		{"exec_parent", Exec, ".."},
		{"exec_root", Exec, "/"},
		{"exec_option", Exec, "-rf"},
		{"exec_arguments", Exec, "git status"},
		{"exec_shell", Exec, "git;sh"},
		{"exec_partial_wildcard", Exec, "g*"},
		{"exec_directory_wildcard", Exec, "/usr/bin/*"},
		{"exec_two_wildcards", Exec, "**"},
		{"env_empty", Env, ""},
		{"env_assignment", Env, "LD_PRELOAD=/x"},
		{"env_glob", Env, "*"},
		{"secret_glob", Secrets, "*"},
		{"invoke_empty", Invoke, ""},
		{"invoke_partial_wildcard", Invoke, "hel*"},
		{"invoke_inner_wildcard", Invoke, "*.greet"},
		{"invoke_two_wildcards", Invoke, "hello.**"},
		{"invoke_dots", Invoke, "hello..*"},
		{"invoke_only_dot", Invoke, ".*"},
		{"client_empty", Client, ""},
		{"client_every", Client, "*"},
		{"client_unknown", Client, "elicitation"},
		{"client_of_the_user", Client, "form"},
		{"client_case", Client, "Sampling"},
		{"client_method", Client, "sampling/createMessage"},
		{"client_two", Client, "sampling,roots"},
		{"kind_unknown", "everything", "x"},
		{"kind_empty", "", "x"},
	}
	for _, tt := range tests {
		c, err := Parse(tt.kind, tt.entry, Pos{})
		if err == nil {
			t.Errorf("%s: %s %q is read as %q", tt.name, tt.kind, tt.entry, c.Entry())
		} else if sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: kind %q", tt.name, sdk.KindOf(err))
		}
		if c.Kind != "" && err != nil {
			t.Errorf("%s: an error and a capability", tt.name)
		}
	}
}

// A malformed access passes nothing, however wide the grant.
func TestMalformedAccess(t *testing.T) {
	l := Layer{Name: "manifest", Closed: true}
	for kind, entries := range map[Kind]string{Network: "*|http://*|0.0.0.0/0|::/0", Filesystem: "write:/", Invoke: "*", Exec: "git", Env: "LANG", Secrets: "A", Client: "sampling|roots"} {
		l.Allow = append(l.Allow, parseAll(t, kind, entries)...)
	}
	g := NewGrant([]Layer{l}, nil)
	mapped := netip.MustParseAddr("::ffff:10.0.0.1")
	zoned := netip.MustParseAddr("fe80::1%eth0")
	for name, a := range map[string]Access{
		"zero":               {},
		"kind_unknown":       {Kind: "x", Verb: Read, Target: "/"},
		"verb_unknown":       {Kind: Filesystem, Verb: "stat", Target: "/x"},
		"verb_of_other_kind": {Kind: Exec, Verb: Call, Target: "git"},
		"net_without_target": {Kind: Network, Verb: Connect, Target: "https://example.com"},
		"net_port_zero":      {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "example.com"}},
		"net_host_empty":     {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Port: 443}},
		"net_host_upper":     {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "Example.com", Port: 443}},
		"net_host_dot":       {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "example.com.", Port: 443}},
		"net_host_numeric":   {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "10.0.0.1", Port: 443}},
		"net_host_v6":        {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "::1", Port: 443}},
		"net_ip_mapped":      {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", IP: mapped, Port: 443}},
		"net_ip_zoned":       {Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", IP: zoned, Port: 443}},
		"invoke_empty":       {Kind: Invoke, Verb: Call},
		"client_empty":       {Kind: Client, Verb: Ask},
		"client_unknown":     {Kind: Client, Verb: Ask, Target: "anything"},
		"client_other_verb":  {Kind: Client, Verb: Call, Target: "sampling"},
	} {
		if err := g.Check(a); sdk.KindOf(err) != sdk.Denied {
			t.Errorf("%s passes: %v", name, err)
		}
	}
	if err := g.Check(Access{Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "example.com", Port: 443}}); err != nil {
		t.Error(err)
	}
}

// What denies, denies in every spelling.
func TestDenyIsWide(t *testing.T) {
	tests := []struct {
		name  string
		kind  Kind
		allow string
		deny  string
		a     Access
	}{
		{"deny_read_stops_write", Filesystem, "write:/data", "read:/data/x", Access{Kind: Filesystem, Verb: Write, Target: "/data/x/y"}},
		{"deny_beneath_root", Filesystem, "read:/data", "read:/data/x", Access{Kind: Filesystem, Verb: Read, Target: "/data/x"}},
		{"deny_above_root", Filesystem, "read:/data/x/y", "read:/data", Access{Kind: Filesystem, Verb: Read, Target: "/data/x/y"}},
		{"deny_program_anywhere", Exec, "/usr/bin/jq", "jq", Access{Kind: Exec, Verb: Run, Target: "/usr/bin/jq"}},
		{"deny_host_all_schemes", Network, "http://a.example", "https://a.example:80", Access{Kind: Network, Verb: Connect, Net: &Net{Scheme: "http", Host: "a.example", Port: 80}}},
		{"deny_host_all_methods", Network, "a.example", "POST https://a.example", Access{Kind: Network, Verb: Connect, Net: &Net{Scheme: "https", Host: "a.example", Port: 443, Method: "GET"}}},
		{"deny_every_program", Exec, "/usr/bin/jq", "*", Access{Kind: Exec, Verb: Run, Target: "/usr/bin/jq"}},
		{"deny_one_of_every_program", Exec, "*", "jq", Access{Kind: Exec, Verb: Run, Target: "/opt/bin/jq"}},
		{"deny_one_is_not_every_program", Exec, "*", "jq", Access{Kind: Exec, Verb: Run, Target: "*"}},
		{"deny_tool", Invoke, "*", "hello.*", Access{Kind: Invoke, Verb: Call, Target: "hello.greet"}},
	}
	for _, tt := range tests {
		allow := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, tt.kind, tt.allow)}
		if err := NewGrant([]Layer{allow}, nil).Check(tt.a); err != nil {
			t.Errorf("%s: not allowed to begin with: %v", tt.name, err)
		}
		deny := Layer{Name: "operator", Deny: parseAll(t, tt.kind, tt.deny)}
		for _, layers := range [][]Layer{{allow, deny}, {deny, allow}} {
			err := NewGrant(layers, nil).Check(tt.a)
			var e *sdk.Error
			if !errors.As(err, &e) || e.Denial.Layer != "operator" || e.Denial.File != "f.toml" || e.Denial.Line != 7 {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
	if fold("/DATA/e\u0301") != fold("/data/É") || fold("/data") == fold("/date") {
		t.Error("names that a folding platform takes for one differ")
	}
}

func TestCheckAddress(t *testing.T) {
	l := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, Network, "*")}
	op := Layer{Name: "operator", Deny: parseAll(t, Network, "203.0.113.0/24|[2001:db8::1]:443|evil.example")}
	var seen []error
	g := NewGrant([]Layer{l, op}, func(_ Access, err error) { seen = append(seen, err) })
	n := Net{Scheme: "https", Host: "good.example", Port: 443}
	a := Access{Kind: Network, Verb: Connect, Target: n.String(), Net: &n}
	for ip, ok := range map[string]bool{"198.51.100.1": true, "203.0.113.9": false, "::ffff:203.0.113.9": false, "2001:db8::1": false, "2001:db8::1%eth0": false, "2001:db8::2": true} {
		seen = nil
		err := g.CheckAddress(a, netip.MustParseAddr(ip))
		if (err == nil) != ok || len(seen) == 1 == ok {
			t.Errorf("%s: %v, reported %v", ip, err, seen)
		}
	}
	if NewGrant([]Layer{l}, nil).CheckAddress(Access{}, netip.Addr{}) == nil {
		t.Error("an access without a network target passes")
	}
}

func TestDanger(t *testing.T) {
	tests := []struct {
		kind  Kind
		entry string
		want  string
	}{
		{Network, "*", "network:*"}, {Network, "GET https://*", "network:*"}, {Network, "http://*", "network:*"},
		{Network, "0.0.0.0/0", "network:0.0.0.0/0"}, {Network, "128.0.0.0/1", "network:128.0.0.0/1"}, {Network, "::/0", "network:::/0"},
		{Network, "10.0.0.0/8", ""}, {Network, "*.example.com", ""}, {Network, "example.com:*", ""},
		{Filesystem, "write:/", "write:/"}, {Filesystem, "read:/", "read:/"}, {Filesystem, "write:C:/", "write:C:/"}, {Filesystem, "write:C:/Windows/x", "write:C:/Windows/x"},
		{Filesystem, "write:/etc/cron.d", "write:/etc/cron.d"}, {Filesystem, "write:/home", "write:/home"}, {Filesystem, "read:/etc/ssl", ""},
		{Filesystem, "write:/home/bob/x", ""}, {Filesystem, "write:/data", ""}, {Filesystem, "write:/etcetera", ""}, {Filesystem, "write:/tmp", ""},
		{Filesystem, "write:${home}", "write:${home}"}, {Filesystem, "read:${home}", "read:${home}"}, {Filesystem, "write:${home}/x", ""}, {Filesystem, "write:${workspace}", ""}, {Exec, "*", "exec:*"},
		{Exec, "sh", "exec:sh"}, {Exec, "/bin/bash", "exec:bash"}, {Exec, "python3.12", "exec:python3.12"}, {Exec, "PowerShell.exe", "exec:PowerShell.exe"},
		{Exec, "env", "exec:env"}, {Exec, "git", ""}, {Exec, "/usr/bin/jq", ""}, {Exec, "7", ""},
		{Invoke, "*", "invoke:*"}, {Invoke, "hello.*", ""}, {Env, "HOME", ""}, {Secrets, "A", ""}, {Client, "sampling", ""}, {Client, "roots", ""},
	}
	for _, tt := range tests {
		if got := parseAll(t, tt.kind, tt.entry)[0].Danger(); got != tt.want {
			t.Errorf("%s %q: got %q, want %q", tt.kind, tt.entry, got, tt.want)
		}
	}
}

// TestHints checks that what a denial suggests means the same on other machines,
// and that nothing is suggested that would not help.
func TestHints(t *testing.T) {
	l := Layer{Name: "manifest", Table: "[capabilities]", Closed: true}
	l, err := l.Bind(Vars{Workspace: "/tmp/project", SkillDir: "/opt/skill", Home: "/home/bob"}, func(p string) (string, error) { return p, nil })
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"/tmp/project/a.txt": `filesystem = ["read:${workspace}/a.txt"]`,
		"/tmp/project":       `filesystem = ["read:${workspace}"]`,
		"/opt/skill/x":       `filesystem = ["read:${skill_dir}/x"]`,
		"/home/bob/Pictures": `filesystem = ["read:${home}/Pictures"]`,
		"/home/bobby/x":      `filesystem = ["read:/home/bobby/x"]`,
		"/etc/hostname":      `filesystem = ["read:/etc/hostname"]`,
		"/tmp/other/a.txt":   "", // the host's /tmp has no name in a manifest
		"${tmp}/a.txt":       `filesystem = ["read:${tmp}/a.txt"]`,
	} {
		err := NewGrant([]Layer{l}, nil).Check(Access{Kind: Filesystem, Verb: Read, Target: target})
		var e *sdk.Error
		if !errors.As(err, &e) || e.Denial == nil || e.Denial.Allow != want {
			t.Errorf("%s: %v, want the hint %q", target, err, want)
		}
		if strings.HasPrefix(target, VarTmp) != strings.Contains(err.Error(), "private to each call") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
