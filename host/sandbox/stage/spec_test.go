package stage

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func example() *Spec {
	return &Spec{
		Flags: Namespaces | Restrict | Proxy, Filter: "\x00\xff", Serves: "/run/s", Dir: "/workspace",
		Args: []string{"bash", "-c", "true", ""}, Env: []string{"PATH=/bin"},
		Memory: 1 << 40, Processes: 64, PidMax: 301, FileSize: 1<<64 - 1, Files: 127,
		Mounts: []Mount{{Path: "/a", Source: "/b", Kind: Writable, Maybe: true}, {Path: "/c", Kind: Hidden}},
		Rulesets: []Ruleset{{Name: "manifest", Handles: Read | Write, Rules: []Rule{{Path: "/a", Rights: Read, Maybe: true}, {Path: "/c", Rights: Write}}},
			{Name: "host", Rules: []Rule{}}},
		Links: []Link{{Path: "/l", Target: "t"}},
	}
}

func TestEncode(t *testing.T) {
	want := example()
	got, err := decode(want.Encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// Every field of a Spec travels.
func TestEncodeMissesNoField(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want int
	}{{Spec{}, 14}, {Mount{}, 4}, {Ruleset{}, 3}, {Rule{}, 3}, {Link{}, 2}} {
		if n := reflect.TypeOf(tt.v).NumField(); n != tt.want {
			t.Errorf("%T has %d fields now, not %d: encode them", tt.v, n, tt.want)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	b := example().Encode()
	for n := range b {
		if s, err := decode(b[:n]); err == nil {
			t.Fatalf("%d of %d bytes are %+v", n, len(b), s)
		}
	}
	if _, err := decode(append(b, 0)); err == nil {
		t.Error("a byte too many")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(example().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(s.Encode())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

// The stage runs before the rest of the binary is initialised, because of what
// it does not import: see the package comment.
func TestImports(t *testing.T) {
	few := []string{"errors", "os", "path", "runtime", "slices", "strconv", "strings", "syscall", "unsafe", "golang.org/x/sys/unix"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if p := strings.Trim(i.Path.Value, `"`); !slices.Contains(few, p) {
				t.Errorf("%s imports %s", name, p)
			}
		}
	}
}
