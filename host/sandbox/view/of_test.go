package view

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// caps reads entries such as "read:/a" and "exec:git".
func caps(entries ...string) (s capability.Set) {
	for _, e := range entries {
		verb, p, _ := strings.Cut(e, ":")
		c := capability.Capability{Kind: capability.Filesystem, Verb: capability.Verb(verb), Pattern: p}
		if verb == "exec" {
			c.Kind, c.Verb = capability.Exec, capability.Run
		}
		s = append(s, c)
	}
	return s
}

func manifest(entries ...string) capability.Layer {
	return capability.Layer{Name: "manifest", Closed: true, Allow: caps(entries...)}
}

func denying(entries ...string) capability.Layer {
	return capability.Layer{Name: "operator", Deny: caps(entries...)}
}

func mustOf(t *testing.T, o Options, layers ...capability.Layer) View {
	t.Helper()
	v, err := Of(layers, o)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, v)
	return v
}

func texts[T any](list []T) []string {
	var out []string
	for _, x := range list {
		out = append(out, fmt.Sprint(x))
	}
	return out
}

func (l Link) String() string { return l.Path + "->" + l.Target }

// part reports whether all of want are in got, and none of not.
func part(t *testing.T, got []string, want, not string) {
	t.Helper()
	for _, w := range strings.Fields(want) {
		if !slices.Contains(got, w) {
			t.Errorf("no %s in %v", w, got)
		}
	}
	for _, n := range strings.Fields(not) {
		if slices.Contains(got, n) {
			t.Errorf("%s in %v", n, got)
		}
	}
}

func TestMounts(t *testing.T) {
	ws := grow("/ws/.git/hooks/h", "/ws/.git/config", "/ws/a/b", "/ws/.vscode -> /ws/a", "/ws/file", "/usr/lib/x", "/data/x", "/tmp/ws/a", "/sk/x", "/etc/passwd",
		"/lib -> /usr/lib", "/ws/x/y/l -> /ws/a", "/run/x", "/dev/shm -> /run/shm", "/run/shm/", "/etc/ssl/certs -> /opt/certs", "/opt/certs/key", "/etc/localtime -> /usr/share/zoneinfo/UTC", "/usr/share/zoneinfo/UTC")
	for name, c := range map[string]struct {
		allow, deny string
		want, not   string
	}{
		"nothing":            {"", "", "rw:/tmp=/var/private ro:/usr/lib ro:/etc/localtime=/usr/share/zoneinfo/UTC ro:/etc/ssl/certs=/opt/certs", "ro:/lib ro:/lib=/usr/lib ro:/ws ro:/etc/passwd"},
		"denied_in_base":     {"", "read:/opt/certs/key", "", "ro:/etc/ssl/certs=/opt/certs"},
		"denied_link_read":   {"read:/ws", "read:/ws/.vscode", "ro:/ws", "hidden:/ws/.vscode"},
		"denied_link_deep":   {"write:/ws", "write:/ws/x/y/l", "rw:/ws pinned:/ws/x ro:/ws/x/y", ""},
		"denied_link_top":    {"write:/", "write:/lib", "rw:/", "rw:/usr ro:/"},
		"denied_own":         {"write:/", "write:/run/x", "rw:/", "ro:/run/x"},
		"denied_write":       {"write:/ws", "write:/ws/.git/hooks", "rw:/ws pinned:/ws/.git ro:/ws/.git/hooks", ""},
		"denied_read":        {"read:/ws", "read:/ws/.git/hooks", "ro:/ws hidden:/ws/.git/hooks", "pinned:/ws/.git"},
		"denied_read_write":  {"write:/ws", "read:/ws/.git", "rw:/ws hidden:/ws/.git", ""},
		"denied_both":        {"write:/ws", "read:/ws/.git/hooks write:/ws/.git", "rw:/ws ro:/ws/.git hidden:/ws/.git/hooks", "pinned:/ws/.git"},
		"denied_outside":     {"read:/ws", "read:/data", "ro:/ws", "hidden:/data ro:/data"},
		"denied_readonly":    {"read:/ws", "write:/ws/a", "ro:/ws", "ro:/ws/a"},
		"denied_exactly":     {"write:/ws", "write:/ws", "ro:/ws", "rw:/ws"},
		"denied_all":         {"write:/ws", "read:/", "rw:/tmp=/var/private", "rw:/ws ro:/usr/lib hidden:/"},
		"denied_absent":      {"write:/ws", "write:/ws/no/such", "rw:/ws pinned:/ws/no ro:/ws/no/such", ""}, // all of it Maybe
		"denied_beyond_file": {"write:/ws", "write:/ws/file/x", "rw:/ws", "ro:/ws/file/x pinned:/ws/file"},
		"denied_by_link":     {"write:/ws", "read:/ws/.vscode/b", "rw:/ws", "hidden:/ws/.vscode/b"}, // Bind adds the real path
		"denied_link":        {"write:/ws", "write:/ws/.vscode", "ro:/ws rw:/ws/a rw:/ws/.git rw:/ws/file", "rw:/ws/.vscode ro:/ws/.vscode"},
		"denied_link_deny":   {"write:/ws", "write:/ws/.vscode write:/ws/a write:/ws/.git/config", "ro:/ws ro:/ws/a rw:/ws/.git ro:/ws/.git/config", ""},
		"denied_link_above":  {"write:/ws", "write:/ws/.vscode write:/ws", "ro:/ws", "rw:/ws/a rw:/ws/.git"},
		"denied_base":        {"", "read:/usr", "", "ro:/usr/lib ro:/etc/localtime=/usr/share/zoneinfo/UTC"},
		"root":               {"read:/", "", "ro:/ rw:/tmp=/var/private", "ro:/usr/lib ro:/etc/localtime=/usr/share/zoneinfo/UTC ro:/etc/passwd=/etc-ours/passwd"},
		"root_written":       {"write:/", "write:/ws/a", "rw:/ pinned:/ws ro:/ws/a", ""},
		"nested":             {"read:/ws write:/ws/a", "", "ro:/ws rw:/ws/a", ""},
		"within_base":        {"write:/usr/lib/x", "", "ro:/usr/lib rw:/usr/lib/x", ""},
		"around_base":        {"write:/usr", "", "rw:/usr", "ro:/usr/lib"},
		"below_tmp":          {"write:/tmp/ws", "write:/tmp/ws/a", "rw:/tmp=/var/private rw:/tmp/ws ro:/tmp/ws/a", ""},
		"denied_host_tmp":    {"", "read:/tmp/ws", "rw:/tmp=/var/private", "hidden:/tmp/ws"}, // of the host, which is not there
		"denied_tmp":         {"", "read:${tmp}", "", "rw:/tmp=/var/private ro:/tmp=/var/private"},
		"denied_tmp_write":   {"", "write:${tmp}", "ro:/tmp=/var/private", "rw:/tmp=/var/private"},
		"proc":               {"write:/proc write:/dev/sda", "", "", "rw:/proc rw:/dev/sda"},
	} {
		t.Run(name, func(t *testing.T) {
			o := ws.options(true)
			if name == "root" {
				o.Etc = "/etc-ours"
			}
			v := mustOf(t, o, manifest(strings.Fields(c.allow)...), denying(strings.Fields(c.deny)...))
			part(t, texts(v.Mounts), c.want, c.not)
			if !slices.IsSortedFunc(v.Mounts, func(a, b Mount) int { return strings.Compare(a.Path, b.Path) }) {
				t.Errorf("not sorted: %v", v.Mounts)
			}
			for _, m := range v.Mounts { // what is denied and there must be mounted, or nothing runs
				denied := m.Kind == Hidden || m.Kind == ReadOnly && slices.Contains(strings.Fields(c.deny), "write:"+m.Path) && !slices.Contains(strings.Fields(c.allow), "write:"+m.Path)
				if there := ws[m.Path] != ""; m.Source == "" && (denied || m.Kind == Pinned) && there == m.Maybe || m.Source == "" && !denied && m.Kind == Writable && !m.Maybe {
					t.Errorf("%v: maybe %v", m, m.Maybe)
				}
			}
		})
	}
}

// A private root has the process's own directories, which no layer takes away.
func TestOwn(t *testing.T) {
	o := grow("/ws/a", "/sk/x", "/bin -> /usr/bin", "/usr/bin/x", "/etc/x").options(true)
	o.Home, o.Sockets, o.Serves, o.Etc, o.Workspace, o.SkillDir, o.Hidden = "/st/home", "/st/run", "/run/skill", "/st/etc", "/ws", "/sk", []string{"/st"}
	v := mustOf(t, o, manifest("read:/ws"), denying("read:/run", "read:/st"))
	part(t, texts(v.Mounts), "rw:/run/home=/st/home rw:/run/skill=/st/run ro:/etc/passwd=/st/etc/passwd ro:/etc/group=/st/etc/group ro:/etc/hosts=/st/etc/hosts rw:/tmp=/var/private", "")
	part(t, texts(v.Links), "/workspace->/ws /bin->/usr/bin", "/skill->/sk") // the skill's folder is not granted
	for _, s := range v.Rulesets {
		part(t, texts(s.Rules), "rw:/run/home rw:/tmp r:/etc/passwd r:/etc/hosts", "rw:/proc")
	}
	last := v.Rulesets[len(v.Rulesets)-1]
	if part(t, texts(last.Rules), "rws:/run/skill", ""); last.Handles != Read|Write|Exec|Socket {
		t.Errorf("handles %v", last.Handles)
	}
	v = mustOf(t, o, manifest("read:/ws", "read:/sk"), denying("read:/etc/passwd"))
	part(t, texts(v.Links), "/skill->/sk", "")
	part(t, texts(v.Mounts), "", "ro:/etc/passwd=/st/etc/passwd")
}

// A private home that stays as it is can be read, on both levels.
func TestHomeStays(t *testing.T) {
	for _, strict := range []bool{true, false} {
		o := grow("/ws/a", "/st/home/x").options(strict)
		o.Home, o.HomeStays = "/st/home", true
		if !strict {
			o.HomePath = o.Home
		}
		v := mustOf(t, o, manifest("write:/ws"))
		if strict {
			part(t, texts(v.Mounts), "ro:/run/home=/st/home", "rw:/run/home=/st/home")
		}
		for _, s := range v.Rulesets {
			part(t, texts(s.Rules), "r:"+o.HomePath, "rw:"+o.HomePath+" w:"+o.HomePath)
		}
	}
}

// A workspace in the host's /tmp is shown to whoever may read everything and
// write nothing there: "/" shows the private one.
func TestWorkspaceInTmp(t *testing.T) {
	tmp := grow("/tmp/ws/plan", "/tmp/ws/a", "/tmp/other/b", "/usr/x")
	session := capability.Layer{Name: "session", Speaks: []capability.Topic{writing}, Allow: caps("write:${tmp}")}
	for name, c := range map[string]struct {
		layers    []capability.Layer
		want, not string
	}{
		"read":       {[]capability.Layer{manifest("read:/", "write:/tmp/ws"), session}, "ro:/ ro:/tmp/ws rw:/tmp=/var/private", "rw:/tmp/ws ro:/tmp/other"},
		"write":      {[]capability.Layer{manifest("read:/", "write:/tmp/ws")}, "ro:/ rw:/tmp/ws", "ro:/tmp/ws"},
		"one file":   {[]capability.Layer{manifest("read:/", "write:/tmp/ws"), {Name: "session", Speaks: []capability.Topic{writing}, Allow: caps("write:/tmp/ws/plan")}}, "ro:/tmp/ws rw:/tmp/ws/plan", "rw:/tmp/ws"},
		"not at all": {[]capability.Layer{manifest("read:/usr")}, "ro:/usr", "ro:/tmp/ws"},
		"denied":     {[]capability.Layer{manifest("read:/"), denying("read:/tmp/ws")}, "ro:/", "ro:/tmp/ws"},
	} {
		o := tmp.options(true)
		o.Workspace = "/tmp/ws"
		t.Run(name, func(t *testing.T) { part(t, texts(mustOf(t, o, c.layers...).Mounts), c.want, c.not) })
	}
}

func TestPrograms(t *testing.T) {
	bin := grow("/usr/bin/git*", "/usr/bin/bash*", "/usr/bin/sh -> /usr/bin/dash", "/usr/bin/dash*", "/usr/local/bin/jq*", "/usr/bin/jq*", "/bin -> /usr/bin", "/usr/bin/text",
		"/usr/bin/awk -> /etc/alternatives/awk", "/etc/alternatives/awk -> /usr/bin/mawk", "/usr/bin/mawk*", "/opt/x/tool*", "/opt/x/name -> /opt/x/tool", "/usr/lib/x")
	operator := func(entries ...string) capability.Layer {
		return capability.Layer{Name: "operator", Speaks: []capability.Topic{running}, Allow: caps(entries...)}
	}
	for name, c := range map[string]struct {
		layers []capability.Layer
		want   string // what may be executed, but for the loader
		links  string
	}{
		"bare":           {[]capability.Layer{manifest("exec:git")}, "rx:/usr/bin/git", ""},
		"order":          {[]capability.Layer{manifest("exec:jq")}, "rx:/usr/local/bin/jq", ""},
		"path":           {[]capability.Layer{manifest("exec:/opt/x/tool")}, "rx:/opt/x/tool", ""},
		"link":           {[]capability.Layer{manifest("exec:sh")}, "rx:/usr/bin/dash", "/usr/bin/sh->/usr/bin/dash"},
		"path_link":      {[]capability.Layer{manifest("exec:/bin/sh")}, "rx:/usr/bin/dash", "/usr/bin/sh->/usr/bin/dash"},
		"alternative":    {[]capability.Layer{manifest("exec:awk")}, "rx:/usr/bin/mawk", "/usr/bin/awk->/usr/bin/mawk"},
		"absent":         {[]capability.Layer{manifest("exec:nosuch")}, "", ""},
		"not_executable": {[]capability.Layer{manifest("exec:text")}, "", ""},
		"directory":      {[]capability.Layer{manifest("exec:/usr/bin")}, "", ""},
		"both":           {[]capability.Layer{manifest("exec:git", "exec:bash"), operator("exec:git", "exec:jq")}, "rx:/usr/bin/git", ""},
		"spelling":       {[]capability.Layer{manifest("exec:git"), operator("exec:/usr/bin/git")}, "", ""}, // as the Grant says
		"silent":         {[]capability.Layer{manifest("exec:git"), {Name: "session"}}, "rx:/usr/bin/git", ""},
		"any_one":        {[]capability.Layer{manifest("exec:*"), operator("exec:git")}, "rx:/usr/bin/git", ""},
		"any":            {[]capability.Layer{manifest("exec:*"), {Name: "session"}}, "x:/", ""},
		"any_both":       {[]capability.Layer{manifest("exec:*"), operator("exec:*")}, "x:/", ""},
		"any_but":        {[]capability.Layer{manifest("exec:*"), denying("exec:git")}, "", ""},
		"denied":         {[]capability.Layer{manifest("exec:git", "exec:jq"), denying("exec:git")}, "rx:/usr/local/bin/jq", ""},
		"denied_path":    {[]capability.Layer{manifest("exec:git"), denying("exec:/usr/bin/git")}, "", ""},
		"denied_alias":   {[]capability.Layer{manifest("exec:sh"), denying("exec:dash")}, "", ""},
		"denied_other":   {[]capability.Layer{manifest("exec:mawk"), denying("exec:awk")}, "", ""},
		"denied_file":    {[]capability.Layer{manifest("exec:git"), denying("read:/usr/bin")}, "", ""},
		"denied_all":     {[]capability.Layer{manifest("exec:git"), denying("exec:*")}, "", ""},
		"denied_base":    {[]capability.Layer{manifest("exec:/opt/x/name"), denying("exec:tool")}, "", ""},
		"no_layer":       {nil, "", ""},
	} {
		for _, strict := range []bool{true, false} {
			t.Run(fmt.Sprint(name, strict), func(t *testing.T) {
				o := bin.options(strict)
				v := mustOf(t, o, c.layers...)
				runnable := slices.DeleteFunc(texts(v.Rulesets[len(v.Rulesets)-1].Rules), func(r string) bool {
					return !strings.Contains(strings.Split(r, ":")[0], "x")
				})
				if got := strings.Join(runnable, " "); got != c.want {
					t.Errorf("may execute %q, want %q", got, c.want)
				}
				for _, s := range v.Rulesets[:max(0, len(v.Rulesets)-1)] {
					if s.Handles&Exec == 0 {
						t.Errorf("%s does not handle execution", s.Name)
					}
				}
				if !strict {
					return
				}
				part(t, texts(v.Links), c.links, "")
				for _, w := range strings.Fields(strings.ReplaceAll(c.want, "rx:", "ro:")) {
					if strings.HasPrefix(w, "ro:") {
						part(t, texts(v.Mounts), w, "")
					}
				}
			})
		}
	}
	v := mustOf(t, bin.options(true), manifest("read:/usr", "exec:sh"))
	part(t, texts(v.Links), "/bin->/usr/bin", "/usr/bin/sh->/usr/bin/dash") // it is there
	// A program that the host itself names needs no list, but may be denied.
	o := bin.options(true)
	o.Programs = []string{"/opt/x/tool"}
	v = mustOf(t, o, manifest())
	part(t, texts(v.Rulesets[0].Rules), "rx:/opt/x/tool", "")
	part(t, texts(v.Mounts), "ro:/opt/x/tool", "")
	v = mustOf(t, o, manifest(), denying("read:/opt"))
	part(t, texts(v.Rulesets[0].Rules), "", "rx:/opt/x/tool")
	part(t, texts(v.Mounts), "", "ro:/opt/x/tool")
	// A link of the host's leads nowhere but to a program of the host's.
	o.Programs = []string{"/bin/awk", "/usr/bin/mawk", "/usr/bin/sh"}
	v = mustOf(t, o, manifest())
	part(t, texts(v.Rulesets[0].Rules), "rx:/usr/bin/mawk", "rx:/usr/bin/dash rx:/usr/bin/sh rx:/bin/awk")
	part(t, texts(v.Links), "/usr/bin/awk->/usr/bin/mawk", "/usr/bin/sh->/usr/bin/dash")
	part(t, texts(v.Mounts), "ro:/usr/bin/mawk", "ro:/usr/bin/dash")
}

// Each rule set holds what its layer says, whatever the other one does.
func TestLayerRules(t *testing.T) {
	open := capability.Layer{Name: "open", Closed: true, Allow: caps("write:/")}
	for _, l := range modes {
		for _, allow := range lists(2) {
			l.Allow = set(allow)
			g := capability.NewGrant([]capability.Layer{l, open}, nil)
			v := mustOf(t, world.options(false), l, open)
			own := slices.DeleteFunc(slices.Clone(v.Rulesets), func(s Ruleset) bool { return s.Name != l.Name })
			c := cage{view: View{Rulesets: own}}
			for p, what := range world {
				for verb, r := range map[capability.Verb]Rights{capability.Read: Read, capability.Write: Write} {
					if strings.HasPrefix(what, "/") || r == Read && free(p, false) {
						continue
					}
					if got, want := c.ruled(p, r), g.Allows(capability.Access{Kind: capability.Filesystem, Verb: verb, Target: p}); got != want {
						t.Fatalf("%+v: %s of %s: %v, want %v\n%v", l, verb, p, got, want, own)
					}
				}
			}
		}
	}
}

// What is carved follows no link: a rule for one would be for what it leads to.
func TestCarve(t *testing.T) {
	ws := grow("/ws/.git/hooks/h", "/ws/.git/config", "/ws/out -> /etc", "/ws/a/b", "/ws/f", "/etc/shadow", "/st/x", "/st/y")
	o := ws.options(false)
	v := mustOf(t, o, manifest("write:/ws"), denying("write:/ws/.git/hooks"))
	part(t, texts(v.Rulesets[len(v.Rulesets)-1].Rules), "r:/ws rw:/var/private w:/ws/a w:/ws/f w:/ws/.git/config", "rw:/ws w:/ws w:/ws/.git w:/ws/.git/hooks w:/ws/out r:/ws/out")
	v = mustOf(t, o, manifest("write:/ws"), denying("read:/ws/.git"))
	part(t, texts(v.Rulesets[len(v.Rulesets)-1].Rules), "rw:/ws/a rw:/ws/f", "r:/ws r:/ws/.git rw:/ws/.git/config")
	v = mustOf(t, o, manifest("write:/ws"), denying("read:/ws/none"))
	part(t, texts(v.Rulesets[len(v.Rulesets)-1].Rules), "rw:/ws", "") // absent: not held
	o.Hidden, o.Tmp = []string{"/st"}, "/st/x"
	v = mustOf(t, o, manifest("read:/"))
	part(t, texts(v.Rulesets[len(v.Rulesets)-1].Rules), "rw:/st/x r:/ws r:/etc", "r:/ r:/st r:/st/y")

	v = mustOf(t, ws.options(false), manifest(), denying("write:${tmp}"))
	part(t, texts(v.Rulesets[0].Rules), "r:/var/private", "")
	shm := grow("/dev/shm -> /run/shm", "/run/shm/x").options(true)
	v = mustOf(t, shm, manifest("read:/"))
	part(t, texts(v.Rulesets[0].Rules), "rw:/dev/shm", "rw:/run/shm")

	broken := ws.options(false)
	broken.Names = func(string) ([]string, error) { return nil, fs.ErrPermission }
	v = mustOf(t, broken, manifest("write:/ws"), denying("write:/ws/.git"))
	part(t, texts(v.Rulesets[len(v.Rulesets)-1].Rules), "r:/ws", "rw:/ws w:/ws")
}

func TestLimits(t *testing.T) {
	o := world.options(true)
	var layers []capability.Layer
	for i := range MaxRulesets {
		layers = append(layers, capability.Layer{Name: "call", Closed: true, Allow: caps("read:/a", fmt.Sprintf("read:/a%d", i))})
	}
	if _, err := Of(layers[:MaxRulesets-1], o); err != nil {
		t.Errorf("%d layers: %v", MaxRulesets-1, err)
	}
	var e *sdk.Error
	if _, err := Of(layers, o); !errors.As(err, &e) || e.Kind != sdk.Limit {
		t.Errorf("%d layers: %v", MaxRulesets, err)
	}
	same := slices.Repeat(layers[:1], 40) // lists that say the same need no rule sets of their own
	if v, err := Of(same, o); err != nil || len(v.Rulesets) != 2 {
		t.Errorf("%v %v", v.Rulesets, err)
	}
	many := grow("/ws/denied").options(false)
	many.Names = func(string) ([]string, error) {
		var out []string
		for i := range maxRules + 1 {
			out = append(out, fmt.Sprint(i))
		}
		return out, nil
	}
	mode := many.Mode
	many.Mode = func(p string) (fs.FileMode, error) {
		if strings.HasPrefix(p, "/ws/") && p != "/ws/denied" {
			return 0o644, nil
		}
		return mode(p)
	}
	if _, err := Of([]capability.Layer{manifest("read:/ws"), denying("read:/ws/denied")}, many); !errors.As(err, &e) || e.Kind != sdk.Limit {
		t.Errorf("many rules: %v", err)
	}
	for _, p := range []string{"write:/tmp", "read:/run"} {
		if _, err := Of([]capability.Layer{manifest(p)}, o); !errors.As(err, &e) || e.Kind != sdk.Invalid {
			t.Errorf("%s: %v", p, err)
		}
		if _, err := Of([]capability.Layer{manifest(p)}, world.options(false)); err != nil {
			t.Errorf("%s without a private root: %v", p, err)
		}
	}
}

// Nothing in the baseline can be written but devices that hold nothing, nothing
// can be executed but the loader, and nothing is the user's.
func TestBaseline(t *testing.T) {
	for _, e := range slices.Concat(linux, darwin) {
		if e.rights&Write != 0 && !strings.HasPrefix(e.path, "/dev/") {
			t.Errorf("%s can be written", e.path)
		}
		if e.rights&Exec != 0 && !strings.Contains(e.path, "/ld") && e.path != "/usr/lib" {
			t.Errorf("%s can be executed", e.path)
		}
		if e.rights&Exec != 0 && e.path == "/usr/lib" && e.where != shared {
			t.Errorf("%s can be executed", e.path)
		}
		for _, secret := range []string{"/etc/shadow", "/etc/passwd", "/etc/ssl/private/key", "/etc/machine-id", "/etc/resolv.conf", "/root/x", "/home/x", "/var/x", "/etc/gitconfig"} {
			if within(secret, e.path) {
				t.Errorf("%s shows %s", e.path, secret)
			}
		}
	}
}

func TestGranted(t *testing.T) {
	got := texts(Granted([]capability.Layer{manifest("read:/a", "write:/a/b", "read:${tmp}", "exec:git", "exec:sh"), denying("exec:sh", "read:/a/x")}))
	if want := []string{"{${tmp} 1 }", "{/a 1 }", "{/a/b 3 }", "{ 5 git}"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Whatever the lists are, a View never allows more than the Grant.
func FuzzOf(f *testing.F) {
	f.Add("read:/a\nwrite:/a/b", "write:/a/link", "read:/a/b/c", true, true)
	f.Add("write:/\nexec:*", "read:/a\nexec:git", "read:/ab", false, false)
	f.Fuzz(func(t *testing.T, allow, denied, second string, speaks, strict bool) {
		parse := func(text string) (s capability.Set) {
			for _, line := range strings.Split(text, "\n") {
				kind, entry := capability.Filesystem, line
				if e, ok := strings.CutPrefix(line, "exec:"); ok {
					kind, entry = capability.Exec, e
				}
				if c, err := capability.Parse(kind, entry, capability.Pos{}); err == nil && len(s) < 8 {
					s = append(s, c)
				}
			}
			return s
		}
		l := capability.Layer{Name: "manifest", Closed: true, Allow: parse(allow), Deny: parse(denied)}
		o := capability.Layer{Name: "operator", Allow: parse(second)}
		if speaks {
			o.Speaks = []capability.Topic{reading, running}
		}
		var layers []capability.Layer
		for _, l := range []capability.Layer{l, o} {
			bound, err := l.Bind(capability.Vars{Workspace: "/a", SkillDir: "/ab"}, world.Real)
			if err != nil {
				return
			}
			layers = append(layers, bound)
		}
		if _, err := Of(layers, world.options(strict)); err != nil {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatal(err)
			}
			return
		}
		var n lost
		check(t, layers, strict, &n)
	})
}
