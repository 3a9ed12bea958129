package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/sdk"
)

// twoHosts makes a log of two hosts that take turns, a second apart.
func twoHosts(t *testing.T, dir string) {
	now := clock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	a := open(t, Options{Dir: dir, Now: now}) // 00:00:01 …
	b := open(t, Options{Dir: dir, Now: now})
	for i := range 3 {
		appendAll(t, a, call(fmt.Sprintf("a%d", i))...)
		appendAll(t, b, Event{Type: TypeRefuse, Call: fmt.Sprintf("b%d", i), Parent: "a0", Caller: "bob", Skill: "other", Tool: "rm", Decision: "deny", Kind: sdk.Denied})
	}
	closeLog(t, a)
	closeLog(t, b)
}

func TestQueryChoosesAndMerges(t *testing.T) {
	dir := logDir(t)
	twoHosts(t, dir)
	all := records(t, dir, Filter{})
	for i := 1; i < len(all); i++ {
		if all[i].Time.Before(all[i-1].Time) {
			t.Errorf("record %d is older than the one before it", i)
		}
	}
	at := func(i int) time.Time { return all[i].Time }
	for name, c := range map[string]struct {
		q    Filter
		want int
	}{
		"all":         {Filter{}, 16},
		"type":        {Filter{Type: TypeStart}, 3},
		"tool":        {Filter{Tool: "rm"}, 3},
		"skill":       {Filter{Skill: "hello"}, 6},
		"version":     {Filter{Skill: "hello@1.0.0"}, 6},
		"no_version":  {Filter{Skill: "hello@2.0.0"}, 0},
		"caller":      {Filter{Caller: "bob"}, 3},
		"call":        {Filter{Call: "a1"}, 3},
		"call_tree":   {Filter{Call: "a0"}, 6},
		"decision":    {Filter{Decision: "deny"}, 3},
		"kind":        {Filter{Kind: sdk.Denied}, 3},
		"limit":       {Filter{Limit: 2}, 2},
		"since":       {Filter{Since: at(10)}, 6},
		"until":       {Filter{Until: at(10)}, 10},
		"between":     {Filter{Since: at(4), Until: at(6)}, 2},
		"after_all":   {Filter{Since: at(15).Add(1)}, 0},
		"before_all":  {Filter{Until: at(0)}, 0},
		"two_filters": {Filter{Caller: "bob", Type: TypeStart}, 0},
	} {
		if got := len(records(t, dir, c.q)); got != c.want {
			t.Errorf("%s: %d records, want %d", name, got, c.want)
		}
	}
	for range Query(dir, Filter{}) {
		break // must not go on
	}
}

func TestQueryNamesBadLinesAndGoesOn(t *testing.T) {
	dir := logDir(t)
	boots(t, dir, 1)
	path := logFiles(t, dir)[0]
	b := readFile(t, path)
	at := strings.Index(string(b), "greet")
	b[at] = 'G'
	writeFile(t, path, b)
	good, bad := 0, 0
	for r, err := range Query(dir, Filter{}) {
		if err == nil {
			good++
			continue
		}
		bad++
		if sdk.KindOf(err) != sdk.Invalid || r.File != filepath.Base(path) || r.Line != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if good != 4 || bad != 1 {
		t.Errorf("%d good and %d bad lines", good, bad)
	}
	for _, err := range Query(filepath.Join(dir, "none"), Filter{}) {
		if sdk.KindOf(err) != sdk.Unavailable || !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

func TestTailShowsTheLast(t *testing.T) {
	dir := logDir(t)
	twoHosts(t, dir)
	all := records(t, dir, Filter{})
	for _, n := range []int{0, 1, 5, 16, 99} {
		var got []Record
		for r, err := range Tail(bg, dir, n, false) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		want := all[max(0, len(all)-n):]
		if len(got) != len(want) {
			t.Fatalf("%d records for %d", len(got), n)
		}
		for i := range got {
			if got[i].CRC != want[i].CRC {
				t.Errorf("last %d: record %d is %+v", n, i, got[i])
			}
		}
	}
}

// TestTailFollows reads what two hosts add, one of which did not exist yet
// when it began, and a rotated file.
func TestTailFollows(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir, MaxSize: 16 << 10})
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	const calls = 100
	ends := map[string]int{}
	n := 0
	for r, err := range Tail(ctx, dir, 1, true) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			go func() {
				other, err := Open(Options{Dir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				for i := range calls {
					for _, e := range call(fmt.Sprint(i)) {
						if err := errors.Join(f.Append(bg, e), other.Append(bg, e)); err != nil {
							t.Error(err)
						}
					}
				}
				if err := errors.Join(f.Close(), other.Close()); err != nil {
					t.Error(err)
				}
			}()
		}
		if r.Type == TypeEnd {
			ends[r.Boot]++
		}
		if len(ends) == 2 && ends[f.Boot()] == calls && n >= 2*(calls*3+2) {
			cancel()
		}
	}
	for boot, k := range ends {
		if k != calls {
			t.Errorf("boot %s: %d ends", boot, k)
		}
	}
}

func TestAlive(t *testing.T) {
	dir := logDir(t)
	f := open(t, Options{Dir: dir, MaxSize: 16 << 10})
	for i := range 100 { // the lock moves to the newest part
		appendAll(t, f, call(fmt.Sprint(i))...)
	}
	check := func(boot string, want bool) {
		t.Helper()
		if got, err := Alive(dir, boot); got != want || err != nil {
			t.Errorf("Alive = %v, %v", got, err)
		}
	}
	check(f.Boot(), true)
	check("0000000000000000", false)
	closeLog(t, f)
	check(f.Boot(), false)
	if _, err := Alive(filepath.Join(dir, "none"), f.Boot()); sdk.KindOf(err) != sdk.Unavailable {
		t.Errorf("without a directory: %v", err)
	}
}

func FuzzReaders(f *testing.F) {
	dir := logDir(f)
	log := open(f, Options{Dir: dir, Version: "1"})
	appendAll(f, log, call("c1")...)
	closeLog(f, log)
	name := filepath.Base(logFiles(f, dir)[0])
	whole := readFile(f, logFiles(f, dir)[0])
	f.Add(whole)
	f.Add(whole[:len(whole)-7])
	f.Add(append(whole[:len(whole):len(whole)], make([]byte, 9000)...))
	f.Add([]byte("{\"v\":1,\"seq\":-1,\"origin\":{\"heads\":[{\"file\":\"..\"}]},\"crc\":\"00000000\"}\n\n\x00\n"))
	into := logDir(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		writeFile(t, filepath.Join(into, name), b)
		r, err := Verify(into)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range Query(into, Filter{}) {
			if err == nil {
				n++
			}
		}
		if n != r.Records {
			t.Errorf("Query sees %d records and Verify %d", n, r.Records)
		}
		for range Tail(bg, into, 3, false) {
		}
	})
}
