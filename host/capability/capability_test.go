package capability

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

func TestZeroDenies(t *testing.T) {
	a := Access{Kind: Env, Verb: Read, Target: "LANG"}
	if err := (Grant{}).Check(a); sdk.KindOf(err) != sdk.Denied {
		t.Errorf("the zero Grant: %v", err)
	}
	if (Grant{}).Allows(a) || (Capability{}).Covers(a) || (Capability{}).Covers(Access{}) || (Set{{}}).Covers(a) {
		t.Error("a zero value permits")
	}
	open := Layer{Name: "session", Speaks: []Topic{{Env, Read}}, Allow: parseAll(t, Env, "LANG")}
	if NewGrant([]Layer{open}, nil).Allows(a) {
		t.Error("layers that may all abstain make a grant")
	}
	if (Grant{}).WithLive(func(Access) error { return nil }).Allows(a) {
		t.Error("a live condition makes a grant")
	}
}

func TestLiveAndSee(t *testing.T) {
	a := Access{Kind: Env, Verb: Read, Target: "LANG"}
	revoked := errors.New("revoked")
	var now error
	var seen []error
	g := NewGrant([]Layer{{Closed: true, Allow: parseAll(t, Env, "LANG")}}, func(_ Access, err error) { seen = append(seen, err) })
	g = g.WithLive(func(Access) error { return now })
	if g.Check(a) != nil || !g.Allows(a) {
		t.Error("refused before it is revoked")
	}
	now = revoked
	if err := g.Check(a); !errors.Is(err, revoked) || sdk.KindOf(err) != sdk.Denied || g.Allows(a) {
		t.Errorf("passes after it is revoked: %v", err)
	}
	if len(seen) != 2 || seen[0] != nil || !errors.Is(seen[1], revoked) {
		t.Errorf("seen %v", seen)
	}
}

func TestRefusalNamesTheLine(t *testing.T) {
	manifest := Layer{Name: "manifest", Pos: Pos{"skill.toml", 12}, Table: "[capabilities]", Closed: true,
		Allow: append(parseAll(t, Filesystem, "read:/data"), parseAll(t, Network, "GET https://api.x.com|b.com")...),
		Deny:  parseAll(t, Filesystem, "read:/data/key")}
	net := func(scheme, host string, port uint16, method string) Access {
		h, ip, err := ParseHost(host)
		if err != nil {
			t.Fatal(err)
		}
		n := &Net{Scheme: scheme, Host: h, IP: ip, Port: port, Method: method}
		return Access{Kind: Network, Verb: Connect, Target: n.String(), Net: n}
	}
	tests := []struct {
		a    Access
		want string
	}{
		{Access{Kind: Filesystem, Verb: Read, Target: "/etc/passwd"}, `filesystem.read /etc/passwd (refused by manifest skill.toml:12; to allow it, write in [capabilities]: filesystem = ["read:/data", "read:/etc/passwd"])`},
		{Access{Kind: Filesystem, Verb: Read, Target: "/data/key/a"}, `filesystem.read /data/key/a (refused by manifest f.toml:7: denied by "read:/data/key")`},
		{Access{Kind: Filesystem, Verb: Write, Target: "/x\n\"(ok)"}, `filesystem.write "/x\u000A\"(ok)" (refused by manifest skill.toml:12)`},
		{Access{Kind: Filesystem, Verb: Read, Target: "/tmp/x"}, `filesystem.read /tmp/x (refused by manifest skill.toml:12)`},
		{Access{Kind: Filesystem, Verb: Read, Target: "/a/../b"}, `filesystem.read /a/../b (refused by host: the path is not a clean absolute one)`},
		{net("https", "evil.com", 443, "GET"), `network.connect GET https://evil.com:443 (refused by manifest skill.toml:12; to allow it, write in [capabilities]: network = ["GET https://api.x.com", "b.com", "https://evil.com"])`},
		{net("https", "api.x.com", 443, "PUT"), `network.connect PUT https://api.x.com:443 (refused by manifest skill.toml:12; to allow it, write in [capabilities]: network = ["GET https://api.x.com", "b.com", "PUT https://api.x.com"])`},
		{net("http", "b.com", 8080, "GET"), `network.connect GET http://b.com:8080 (refused by manifest skill.toml:12; to allow it, write in [capabilities]: network = ["GET https://api.x.com", "b.com", "http://b.com:8080"])`},
		{net("tcp", "[2001:db8::1]", 22, ""), `network.connect tcp://[2001:db8::1]:22 (refused by manifest skill.toml:12; to allow it, write in [capabilities]: network = ["GET https://api.x.com", "b.com", "tcp://[2001:db8::1]:22"])`},
		{Access{Kind: Env, Verb: Read, Target: "HOME"}, `env.read HOME (refused by manifest skill.toml:12; to allow it, add to [capabilities]: env = ["HOME"])`},
		{Access{Kind: Client, Verb: Ask, Target: "sampling"}, `client.ask sampling (refused by manifest skill.toml:12; to allow it, add to [capabilities]: client = ["sampling"])`},
	}
	g := NewGrant([]Layer{manifest}, nil)
	for _, tt := range tests {
		if err := g.Check(tt.a); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	star := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, Network, "*"), Deny: parseAll(t, Network, "evil.com")}
	if err, want := NewGrant([]Layer{star}, nil).Check(net("https", "192.0.2.1", 443, "")), `network.connect https://192.0.2.1:443 (refused by manifest f.toml:7: denied by "evil.com", whose address this may be; list the address itself, not "*")`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	session := Layer{Name: "session", Pos: Pos{File: "--workspace /w"}, Speaks: []Topic{{Filesystem, Write}}}
	wide := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, Filesystem, "write:/data")}
	err := NewGrant([]Layer{wide, session}, nil).Check(Access{Kind: Filesystem, Verb: Write, Target: "/data/x"})
	if want := "filesystem.write /data/x (refused by session --workspace /w)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The line of a hint replaces the operator's, so nothing that is in force may
// be missing from it, and it is written as the operator would write it.
func TestRefusalNamesTheWholeLine(t *testing.T) {
	realpath := func(p string) (string, error) {
		if p == "/absent" {
			return "", errors.New("no such file")
		}
		return "/real" + p, nil
	}
	topics := []Topic{{Filesystem, Read}, {Filesystem, Write}}
	for name, c := range map[string]struct {
		l    Layer
		read string
		want string
	}{
		"bound":     {Layer{Allow: parseAll(t, Filesystem, "read:${workspace}|read:/absent?|write:/data")}, "/etc/passwd", `write in [x]: filesystem = ["read:${workspace}", "read:/absent?", "write:/data", "read:/etc/passwd"])`},
		"silent":    {Layer{Closed: true}, "/etc/passwd", `add to [x]: filesystem = ["read:/etc/passwd"])`},
		"empty":     {Layer{Speaks: topics}, "/etc/passwd", `write in [x]: filesystem = ["read:/etc/passwd"])`},
		"dangerous": {Layer{Speaks: topics}, "/", `write in [x]: filesystem = ["read:/"]; the policy must allow the dangerous "read:/" as well)`},
	} {
		c.l.Name, c.l.Table, c.l.Speaks = "operator", "[x]", append(c.l.Speaks, topics[:min(len(c.l.Allow), 2)]...)
		l, err := c.l.Bind(Vars{Workspace: "/w"}, realpath)
		if err != nil {
			t.Fatal(err)
		}
		if l, err = l.Bind(Vars{Workspace: "/w"}, realpath); err != nil { // once more
			t.Fatal(err)
		}
		all := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, Filesystem, "write:/")}
		err = NewGrant([]Layer{all, l}, nil).Check(Access{Kind: Filesystem, Verb: Read, Target: c.read})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// A caller that narrows its call by a path must not learn whether there is one.
func TestNarrowingIsNoExistenceOracle(t *testing.T) {
	realpath := func(p string) (string, error) {
		switch p {
		case "/absent", "/forbidden", "/file/x":
			return "", errors.New(p)
		case "/odd":
			return `relative`, nil
		}
		return p, nil
	}
	const entries = "read:/absent|write:/forbidden|read:/file/x|read:/odd|read:/there"
	l, err := Layer{Name: "call", Speaks: []Topic{{Filesystem, Read}}, Allow: parseAll(t, Filesystem, entries)}.Bind(Vars{}, realpath)
	if err != nil || len(l.Allow) != 1 || l.Allow[0].Pattern != "/there" {
		t.Errorf("%v, %v", l.Allow, err)
	}
	all := Layer{Name: "manifest", Closed: true, Allow: parseAll(t, Filesystem, "write:/")}
	for target, want := range map[string]bool{"/there/x": true, "/absent": false, "/odd": false, "/elsewhere": false} {
		if NewGrant([]Layer{all, l}, nil).Allows(Access{Kind: Filesystem, Verb: Read, Target: target}) != want {
			t.Error(target)
		}
	}
	if _, err := (Layer{Name: "operator", Allow: parseAll(t, Filesystem, "read:/absent")}).Bind(Vars{}, realpath); err == nil {
		t.Error("the operator is not told of an absent path")
	}
}

func TestAsIs(t *testing.T) {
	link := func(p string) (string, error) { return strings.Replace(p, "/link", "/target", 1), nil }
	deny := parseAll(t, Filesystem, "write:/link")
	deny[0] = deny[0].AsIs()
	l, err := Layer{Closed: true, Allow: parseAll(t, Filesystem, "write:/"), Deny: deny}.Bind(Vars{}, link)
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{"/link": false, "/target": true} {
		if NewGrant([]Layer{l}, nil).Allows(Access{Kind: Filesystem, Verb: Write, Target: target}) != want {
			t.Error(target)
		}
	}
}

func TestFollowed(t *testing.T) {
	links := map[string]string{}
	now := func(p string) (string, error) {
		if real := links[p]; real != "" {
			return real, nil
		}
		return p, nil
	}
	deny := parseAll(t, Filesystem, "read:/late|write:/as-is|read:${tmp}/x|read:/gone")
	deny[1] = deny[1].AsIs()
	l, err := Layer{Closed: true, Allow: parseAll(t, Filesystem, "write:/"), Deny: deny}.Bind(Vars{}, now)
	if err != nil {
		t.Fatal(err)
	}
	links["/late"], links["/as-is"], links["/gone"] = "/secret", "/target", "relative"
	f := l.Followed(now)
	for target, want := range map[string][2]bool{"/late": {false, false}, "/secret": {true, false}, "/as-is": {false, false}, "/target": {true, true}, "/x": {true, true}} {
		for i, l := range []Layer{l, f} {
			if NewGrant([]Layer{l}, nil).Allows(Access{Kind: Filesystem, Verb: Write, Target: target}) != want[i] {
				t.Errorf("%s, followed %v", target, i == 1)
			}
		}
	}
}

func TestEntryRoundTrip(t *testing.T) {
	for kind, entries := range map[Kind]string{
		Filesystem: "read:/|write:/data|read:${workspace}/a b|write:${tmp}|read:${skill_dir}?|read:${home}/.ssh|read:C:/x|read:/ünï",
		Network:    "*|http://*|GET https://*|x.com|x.com:*|x.com:8443|http://x.com|http://x.com:443|tcp://x.com:443|GET,PUT https://x.com|*.x.com:1|10.0.0.0/8|tcp://10.0.0.0/8|[::1]|[::1]:80|https://[::1]:*|fd00::/8",
		Exec:       "*|git|/usr/bin/jq|C:/bin/x.exe",
		Env:        "LANG",
		Secrets:    "GITHUB_TOKEN",
		Invoke:     "*|hello.*|hello.greet|a/b/*",
		Client:     "sampling|roots",
	} {
		for _, c := range parseAll(t, kind, entries) {
			again, err := Parse(kind, c.Entry(), c.Pos)
			if err != nil || !reflect.DeepEqual(c, again) {
				t.Errorf("%s %q is read again as %q, %v", kind, c.Entry(), again.Entry(), err)
			}
			if !strings.Contains(entries, c.Entry()) {
				t.Errorf("%s %q is not how it was written", kind, c.Entry())
			}
		}
	}
}

func TestBind(t *testing.T) {
	links := map[string]string{"/link": "/real", "/w/link": "/etc", "/w": "/w", "/real": "/real", "/data": "/data", "/s": "/s", "/": "/", "/real/sub": "/real/sub", "/weird": "/a/../b"}
	realpath := func(p string) (string, error) {
		for dir, to := range links {
			if p == dir {
				return to, nil
			}
		}
		return "", fmt.Errorf("%w", fs.ErrNotExist)
	}
	vars := Vars{Workspace: "/w", SkillDir: "/s"}
	tests := []struct {
		name, allow, deny string
		vars              Vars
		want, wantDeny    string // the patterns; want "error" if Bind fails
	}{
		{"plain", "read:/data", "", vars, "/data", ""},
		{"variables", "read:${workspace}|read:${skill_dir}|write:${tmp}/x", "", vars, "/w|/s|${tmp}/x", ""},
		{"variable_without_value", "read:${workspace}|read:/data", "read:${skill_dir}", Vars{}, "/data", ""},
		{"home", "read:${home}/sub|read:/data", "read:${home}/.ssh", Vars{Home: "/real"}, "/real/sub|/data", "/real/.ssh"},
		{"home_is_a_link", "read:${home}", "read:${home}/.ssh", Vars{Home: "/link"}, "/real", "/link/.ssh|/real/.ssh"},
		{"no_home", "read:${home}|read:/data", "read:${home}/.ssh|read:/data/x", vars, "/data", "/data/x"},
		{"home_is_the_root", "", "read:${home}/.ssh", Vars{Home: "/"}, "", "/.ssh"},
		{"link", "read:/link", "", vars, "/real", ""},
		{"link_out_of_workspace", "read:${workspace}/link", "", vars, "/etc", ""},
		{"absent", "read:/nowhere", "", vars, "error", ""},
		{"absent_optional", "read:/nowhere?|read:/data", "", vars, "/data", ""},
		{"tmp_is_never_resolved", "write:/tmp", "write:/tmp/x", vars, "${tmp}", "${tmp}/x"},
		{"deny_link", "", "read:/link", vars, "", "/link|/real"},
		{"deny_absent", "", "read:/data/new", vars, "", "/data/new"},
		{"deny_absent_below_link", "", "read:/link/new/deep", vars, "", "/link/new/deep|/real/new/deep"},
		{"deny_below_link", "", "read:/link/sub", vars, "", "/link/sub|/real/sub"},
		{"unclean_realpath", "read:/weird", "", vars, "error", ""},
	}
	patterns := func(s Set) string {
		var out []string
		for _, c := range s {
			out = append(out, c.Pattern)
		}
		return strings.Join(out, "|")
	}
	for _, tt := range tests {
		l := Layer{Allow: parseAll(t, Filesystem, tt.allow), Deny: parseAll(t, Filesystem, tt.deny)}
		bound, err := l.Bind(tt.vars, realpath)
		if err != nil {
			if tt.want != "error" || sdk.KindOf(err) != sdk.Invalid || !strings.HasPrefix(err.Error(), "f.toml:7: ") {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if got, deny := patterns(bound.Allow), patterns(bound.Deny); got != tt.want || deny != tt.wantDeny {
			t.Errorf("%s: got %q deny %q, want %q deny %q", tt.name, got, deny, tt.want, tt.wantDeny)
		}
	}
}

// "*" is every program and nothing else is, in lists that allow and that deny.
func TestAnyProgram(t *testing.T) {
	entries := []string{"*", "git", "/usr/bin/git"}
	within := map[[2]string]bool{}
	for _, e := range entries {
		for _, target := range entries {
			c := parseAll(t, Exec, e)
			if got, want := c.Covers(Access{Kind: Exec, Verb: Run, Target: target}), e == "*" || e == target; got != want {
				t.Errorf("%q covers %q: %v", e, target, got)
			}
			within[[2]string{target, e}] = len(parseAll(t, Exec, target).Outside(c)) == 0
		}
	}
	for pair, got := range within {
		if want := pair[1] == "*" || pair[0] == pair[1]; got != want {
			t.Errorf("%q is within %q: %v", pair[0], pair[1], got)
		}
	}
	star := parseAll(t, Exec, "*")
	for _, a := range []Access{{Kind: Env, Verb: Read, Target: "*"}, {Kind: Exec, Verb: Call, Target: "git"}, {Kind: Exec, Verb: Run}} {
		if star.Covers(a) {
			t.Errorf("every program is also %+v", a)
		}
	}
	all, narrow := Layer{Closed: true, Allow: star}, Layer{Speaks: []Topic{{Exec, Run}}, Allow: parseAll(t, Exec, "git")}
	g := NewGrant([]Layer{all, narrow}, nil)
	if !g.Allows(Access{Kind: Exec, Verb: Run, Target: "git"}) || g.Allows(Access{Kind: Exec, Verb: Run, Target: "jq"}) || g.Allows(Access{Kind: Exec, Verb: Run, Target: "*"}) {
		t.Error("a narrower layer does not narrow")
	}
}

// Lists from one layer's root must not be left through a link into another's:
// the resolved path is checked against every layer.
func TestBindBetweenLayers(t *testing.T) {
	same := func(p string) (string, error) { return p, nil }
	link := func(p string) (string, error) { return strings.Replace(p, "/w/out", "/secret", 1), nil }
	manifest, err := Layer{Closed: true, Allow: parseAll(t, Filesystem, "read:${workspace}/out")}.Bind(Vars{Workspace: "/w"}, link)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := Layer{Speaks: []Topic{{Filesystem, Read}}, Allow: parseAll(t, Filesystem, "read:/w")}.Bind(Vars{}, same)
	if err != nil {
		t.Fatal(err)
	}
	g := NewGrant([]Layer{manifest, operator}, nil)
	if g.Allows(Access{Kind: Filesystem, Verb: Read, Target: "/secret"}) || len(g.Roots()) != 0 {
		t.Error("the link leads out of the operator's list")
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"/data": `"/data"`, `a"b\c`: `"a\"b\\c"`, "a\nb": `"a\u000Ab"`, "\x7f": `"\u007F"`, "\u202e": `"\u202E"`, "\xff": `"�"`, "\U000e0001": `"\U000E0001"`, "é": `"é"`,
	} {
		if got := Quote(s); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}

// fourLayers is a grant as a call has it: 4 layers of 10 entries.
func fourLayers(t testing.TB) Grant {
	var layers []Layer
	for i, name := range []string{"manifest", "operator", "session", "call"} {
		l := Layer{Name: name, Closed: i == 0, Speaks: []Topic{{Network, Connect}, {Filesystem, Read}, {Filesystem, Write}}}
		for j := range 4 {
			l.Allow = append(l.Allow, parseAll(t, Filesystem, fmt.Sprintf("write:/srv/data/%d", j))...)
			l.Allow = append(l.Allow, parseAll(t, Network, fmt.Sprintf("*.host%d.example.com", j))...)
		}
		l.Deny = append(parseAll(t, Filesystem, "read:/srv/data/3/secret"), parseAll(t, Network, "evil.host3.example.com")...)
		layers = append(layers, l)
	}
	return NewGrant(layers, func(Access, error) {})
}

func allowedAccesses() []Access {
	n := &Net{Scheme: "https", Host: "api.host3.example.com", Port: 443, Method: "GET"}
	ip := &Net{Scheme: "https", Host: "10.0.0.1", IP: netip.MustParseAddr("10.0.0.1"), Port: 443}
	return []Access{{Kind: Filesystem, Verb: Read, Target: "/srv/data/3/some/file.txt"}, {Kind: Network, Verb: Connect, Target: "https://api.host3.example.com:443", Net: n}, {Kind: Network, Verb: Connect, Net: ip}}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	g := fourLayers(t)
	for _, a := range allowedAccesses()[:2] {
		if n := testing.AllocsPerRun(100, func() {
			if err := g.Check(a); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", a, n)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	g := fourLayers(b)
	for _, a := range allowedAccesses() {
		b.Run(string(a.Kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = g.Check(a)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, k := range Kinds {
		for _, s := range []string{"read:/data", "write:${tmp}/x?", "*.example.com", "GET,HEAD https://x.com:8443", "tcp://10.0.0.0/8", "[::1]:80", "*", "git", "/usr/bin/jq", "hello.*", "sampling", "read:/a/../b"} {
			f.Add(string(k), s)
		}
	}
	f.Fuzz(func(t *testing.T, kind, entry string) {
		c, err := Parse(Kind(kind), entry, Pos{})
		if err != nil {
			return
		}
		again, err := Parse(c.Kind, c.Entry(), Pos{})
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Fatalf("%q is written as %q and read again as %q, %v", entry, c.Entry(), again.Entry(), err)
		}
		if len((Set{c}).Outside(Set{again})) != 0 {
			t.Fatalf("%q is outside of itself", entry)
		}
		if c.Kind == Filesystem && (strings.Contains(c.Pattern, "..") && strings.Contains(c.Pattern+"/", "/../") || strings.Contains(c.Pattern, "\x00")) {
			t.Fatalf("%q is read as %q", entry, c.Pattern)
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "bücher.example", "１２７.0.0.1", "[::ffff:1.2.3.4]", "0x7f.1", "2130706433", "a。b", "xn--bcher-kva.example", "fe80::1%eth0", "ß.example", "\u00ad.com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, ip, err := ParseHost(s)
		if err != nil {
			return
		}
		again, ip2, err := ParseHost(host)
		if err != nil || again != host || ip2 != ip {
			t.Fatalf("%q is read as %q, and that as %q, %v, %v", s, host, again, ip2, err)
		}
		n := Net{Host: host, IP: ip, Port: 443}
		if !n.wellFormed() {
			t.Fatalf("%q is read as %q, which no access may name", s, host)
		}
		if _, err := netip.ParseAddr(host); (err == nil) != ip.IsValid() {
			t.Fatalf("%q is read as the name %q and the address %v", s, host, ip)
		}
	})
}
