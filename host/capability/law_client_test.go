package capability

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// clientLists is every list of entries of Client, by the bits of what is on it.
func clientLists(t testing.TB) (lists [4]Set) {
	for mask := range lists {
		for i, e := range []string{"sampling", "roots"} {
			if mask&(1<<i) != 0 {
				lists[mask] = append(lists[mask], parseAll(t, Client, e)...)
			}
		}
	}
	return lists
}

// Every manifest, operator and session that can be written about a client's
// model and roots, asked about both. What other kinds call "sampling" is none.
func TestClientWorld(t *testing.T) {
	lists := clientLists(t)
	var others Set
	for _, k := range []Kind{Exec, Env, Secrets, Invoke} {
		others = append(others, parseAll(t, k, "sampling|roots")...)
	}
	layers := func(name string, closed bool, speaks, allow, deny int) Layer {
		l := Layer{Name: name, Pos: Pos{File: name + ".toml", Line: 3}, Table: "[" + name + "]", Closed: closed, Allow: append(lists[allow][:len(lists[allow]):len(lists[allow])], others...), Deny: lists[deny]}
		if speaks != 0 {
			l.Speaks = []Topic{{Client, Ask}}
		}
		return l
	}
	asked, passed := 0, 0
	for m := range 4 * 4 {
		manifest := layers("manifest", true, 0, m%4, m/4)
		for o := range 2 * 4 * 4 {
			operator := layers("operator", false, o%2, o/2%4, o/8)
			for s := range 2 * 4 * 4 {
				session := layers("session", false, s%2, s/2%4, s/8)
				var seen []error
				g := NewGrant([]Layer{manifest, operator, session}, func(_ Access, err error) { seen = append(seen, err) })
				for bit, what := range []string{"sampling", "roots"} {
					on := func(list int) bool { return list&(1<<bit) != 0 }
					denied := on(m/4) || on(o/8) || on(s/8)
					first := "" // the layer whose list does not have it
					switch {
					case !on(m % 4):
						first = "manifest"
					case o%2 != 0 && !on(o/2%4):
						first = "operator"
					case s%2 != 0 && !on(s/2%4):
						first = "session"
					}
					want := !denied && first == ""
					a := Access{Kind: Client, Verb: Ask, Target: what}
					seen = nil
					err := g.Check(a)
					asked++
					if (err == nil) != want || g.Allows(a) != want || len(seen) != 1 || seen[0] != err {
						t.Fatalf("manifest %d, operator %d, session %d: %s: %v, told %v, want %v", m, o, s, what, err, seen, want)
					}
					if want {
						passed++
						continue
					}
					checkClientRefusal(t, err, what, denied, first)
				}
			}
		}
	}
	if passed == 0 || passed == asked {
		t.Fatalf("%d of %d passed", passed, asked)
	}
}

// checkClientRefusal wants the line that would allow, unless a deny refuses.
func checkClientRefusal(t *testing.T, err error, what string, denied bool, first string) {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || e.Kind != sdk.Denied || e.Denial == nil || e.Denial.Capability != "client.ask" || e.Denial.Resource != what {
		t.Fatalf("%s: %v", what, err)
	}
	if denied {
		if e.Denial.Allow != "" || !strings.Contains(e.Hint, "denied by") {
			t.Fatalf("%s: %v, %+v", what, err, e.Denial)
		}
		return
	}
	if e.Denial.Layer != first || !strings.Contains(e.Hint, "["+first+"]") || !strings.HasPrefix(e.Denial.Allow, "client = [") || !strings.HasSuffix(e.Denial.Allow, fmt.Sprintf("%q]", what)) {
		t.Fatalf("%s: %v, %+v, want it of %s", what, err, e.Denial, first)
	}
}

// A list of a tool is within its skill's if each of its entries is on that.
func TestClientOutsideWorld(t *testing.T) {
	lists := clientLists(t)
	for in := range lists {
		for out := range lists {
			if got := len(lists[in].Outside(lists[out])) == 0; got != (in&^out == 0) {
				t.Errorf("%d within %d: %v", in, out, got)
			}
		}
	}
	for _, k := range []Kind{Exec, Env, Secrets, Invoke} {
		if len(lists[3].Outside(parseAll(t, k, "sampling|roots"))) != 2 {
			t.Errorf("%s entries give those of the client", k)
		}
	}
}

// Whoever allows an entry of Client is told what it means; nobody takes it for
// one that is as good as everything.
func TestClientCaution(t *testing.T) {
	for _, k := range Kinds {
		entry := map[Kind]string{Network: "*", Filesystem: "read:/", Exec: "sampling", Env: "sampling", Secrets: "roots", Invoke: "*"}[k]
		if k == Client {
			continue
		}
		if c := parseAll(t, k, entry)[0]; c.Caution() != "" {
			t.Errorf("%s %s: %s", k, entry, c.Caution())
		}
	}
	said := map[string]bool{}
	for _, c := range clientLists(t)[3] {
		if c.Caution() == "" || said[c.Caution()] {
			t.Errorf("%s: %q", c.Entry(), c.Caution())
		}
		said[c.Caution()] = true
	}
}
