package host_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/skillhost/skill/"

// rooms is the floor plan: each package and the packages of this module that
// it may import. docs/architecture.md draws it. Packages under examples/,
// skills/ and bench/ are foreign code and have rules of their own below.
var rooms = map[string]string{
	"sdk":                              "",
	"sdk/guest":                        "sdk",
	"host/nearest":                     "",
	"host/capability":                  "sdk",
	"host/tomlfile":                    "sdk host/capability host/nearest",
	"host/schema":                      "sdk",
	"host/manifest":                    "sdk host/capability host/manifest/frontmatter host/manifest/pinned host/manifest/rewrite host/manifest/uri host/manifest/words host/tomlfile",
	"host/manifest/frontmatter":        "sdk host/capability host/manifest/words",
	"host/manifest/pinned":             "sdk",
	"host/manifest/rewrite":            "sdk host/capability host/manifest/words host/tomlfile",
	"host/manifest/uri":                "",
	"host/manifest/words":              "host/nearest",
	"host/policy":                      "sdk host/capability host/nearest host/tomlfile",
	"host/policy/disk":                 "sdk host/policy host/tomlfile",
	"host/config":                      "sdk host/capability host/nearest host/tomlfile",
	"host/ask":                         "sdk host/ask/form",
	"host/ask/form":                    "",
	"host/ask/socket":                  "sdk host/ask",
	"host/ask/tty":                     "host/ask host/ask/form",
	"host/ask/tty/ptytest":             "",
	"host/session":                     "sdk host/capability host/schema host/store",
	"host/settings":                    "sdk host/manifest host/nearest host/schema",
	"host/audit":                       "sdk host/audit/journal host/audit/redact",
	"host/store":                       "sdk",
	"host/boot":                        "",
	"host/audit/journal":               "sdk",
	"host/audit/redact":                "sdk",
	"host/executor/wasm/codedir":       "sdk",
	"host/executor/wasm/linear":        "",
	"host/executor/wasm/segments":      "",
	"sdk/guest/internal/schema":        "",
	"sdk/guest/guesttest":              "sdk sdk/guest",
	"host/store/memory":                "sdk host/store",
	"host/store/sqlite":                "sdk host/store",
	"host/store/storetest":             "host/store sdk",
	"host/egress":                      "sdk host/capability",
	"host/executor":                    "sdk host/capability host/manifest",
	"host/executor/executortest":       "sdk host/capability host/executor host/manifest",
	"host/executor/executortest/probe": "sdk",
	"host/executor/command":            "sdk host/capability host/executor host/executor/native host/manifest host/manifest/template host/sandbox",
	"host/executor/native":             "sdk host/capability host/executor host/manifest host/sandbox host/sandbox/view",
	"host/executor/plugin":             "sdk sdk/plugin sdk/plugin/wire host/capability host/executor host/executor/native host/manifest host/sandbox",
	"host/executor/jsonvalue":          "",
	"host/sandbox":                     "sdk host/sandbox/stage host/sandbox/view",
	"host/sandbox/stage":               "host/sandbox/view",
	"host/sandbox/view":                "sdk host/capability",
	"host/tasks":                       "sdk host/boot host/store host/tasks/ring",
	"host/tasks/ring":                  "",
	"host/tasks/timer":                 "sdk host/boot host/store host/tasks/timer/row",
	"host/tasks/timer/row":             "",
	"plugins/shell":                    "sdk sdk/guest",
	"plugins/web":                      "sdk sdk/guest plugins/web/browser plugins/web/extract",
	"plugins/web/browser":              "sdk",
	"plugins/web/browser/relay":        "sdk",
	"plugins/web/extract":              "",
	"sdk/plugin":                       "sdk sdk/guest sdk/plugin/wire",
	"sdk/plugin/wire":                  "",
	"host/manifest/template":           "sdk host/manifest/words",
	"host/executor/instructions":       "sdk host/capability host/executor host/manifest",
	"host/executor/wasm":               "sdk host/capability host/executor host/executor/wasm/meter host/executor/wasm/rootfs host/manifest host/nearest host/executor/wasm/codedir host/executor/wasm/linear host/executor/wasm/segments",
	"host/executor/wasm/meter":         "",
	"host/executor/wasm/rootfs":        "sdk host/capability host/executor",
	"host/ops":                         "sdk host/capability host/egress host/executor host/manifest host/store host/tasks host/tasks/timer",
	"host/library":                     "sdk host/manifest",
	"host/catalog":                     "sdk host/library host/manifest host/manifest/uri host/nearest host/schema host/capability",
	"host/dispatch":                    "sdk host/audit host/capability host/catalog host/executor host/manifest host/ops host/policy host/schema host/session host/store host/egress host/tasks host/tasks/timer",
	"host/mcp":                         "sdk host/mcp/conversation host/mcp/relay host/mcp/wire",
	"host/mcp/certificate":             "sdk",
	"host/mcp/answer":                  "sdk host/ask host/ask/form",
	"host/mcp/neighbour":               "",
	"host/mcp/conversation":            "sdk host/ask/form host/mcp/message host/mcp/relay host/mcp/task host/mcp/wire",
	"host/mcp/bearer":                  "sdk",
	"host/mcp/message":                 "sdk host/ask/form host/mcp/task host/mcp/wire",
	"host/mcp/task":                    "sdk host/boot host/store",
	"host/mcp/streamable":              "sdk host/mcp/conversation host/mcp/message host/mcp/streamable/bound host/mcp/streamable/head host/mcp/streamable/mirror host/mcp/streamable/shelf host/mcp/wire",
	"host/mcp/streamable/bound":        "",
	"host/mcp/streamable/head":         "",
	"host/mcp/streamable/shelf":        "host/mcp/wire",
	"host/mcp/streamable/mirror":       "sdk host/mcp/conversation host/mcp/message host/mcp/wire",
	"host/mcp/relay":                   "host/mcp/wire",
	"host/mcp/wire":                    "",
	"host/mcp/wire/wiretest":           "",
	"host": "sdk host/ask host/ask/socket host/audit host/boot host/capability host/catalog host/config host/dispatch host/egress host/executor host/executor/command host/executor/instructions host/executor/native host/executor/plugin host/executor/wasm " +
		"host/library host/manifest host/mcp/conversation host/mcp/task host/ops host/policy host/policy/disk host/sandbox host/session host/settings host/store host/store/memory host/store/sqlite host/tasks host/tasks/timer manifests skills",
	"skills/websearch/loopback": "",
	"manifests":                 "",
	"skills":                    "",
	"cmd/skill/view":            "sdk host host/ask host/ask/form host/audit host/capability host/catalog host/dispatch host/manifest host/manifest/template",
	"cmd/skill":                 "sdk host host/ask host/ask/form host/ask/socket host/ask/tty host/mcp/answer host/audit host/capability host/catalog host/config host/dispatch host/executor host/manifest host/mcp host/mcp/bearer host/mcp/certificate host/mcp/conversation host/mcp/neighbour host/mcp/streamable host/policy host/policy/disk host/session host/tomlfile cmd/skill/view host/executor/wasm plugins/shell plugins/web sdk/plugin",
}

// doors names the packages that may import each dependency.
var doors = map[string][]string{
	"github.com/tetratelabs/wazero":                {"host/executor/wasm", "host/executor/wasm/rootfs"},
	"github.com/BurntSushi/toml":                   {"host/tomlfile"},
	"github.com/santhosh-tekuri/jsonschema":        {"host/schema"},
	"github.com/modelcontextprotocol/go-sdk":       {"host/mcp/conversation", "host/mcp/message", "host/mcp/streamable", "host/mcp/streamable/mirror", "bench/stock"},
	"modernc.org/sqlite":                           {"host/store/sqlite"},
	"github.com/spf13/cobra":                       {"cmd/skill"},
	"github.com/spf13/pflag":                       {"cmd/skill"},
	"github.com/fsnotify/fsnotify":                 {"host/catalog", "host/policy/disk"},
	"go.yaml.in/yaml":                              {"host/manifest/frontmatter"},
	"github.com/yosida95/uritemplate":              {"host/manifest/uri"},
	"golang.org/x/time":                            {"host/dispatch", "host/mcp/streamable/bound"},
	"golang.org/x/image":                           {"skills/read-image"},
	"golang.org/x/net":                             {"host/capability", "host/egress", "plugins/web/extract"},
	"github.com/hashicorp/go-plugin":               {"host/executor/plugin", "sdk/plugin"},
	"github.com/hashicorp/go-hclog":                {"host/executor/plugin", "sdk/plugin"},
	"google.golang.org/grpc":                       {"host/executor/plugin", "sdk/plugin", "sdk/plugin/wire"},
	"google.golang.org/protobuf":                   {"sdk/plugin/wire"},
	"github.com/rogpeppe/go-internal":              {},
	"charm.land/huh":                               {"host/ask/tty"},
	"charm.land/bubbletea":                         {"host/ask/tty"},
	"github.com/chromedp/chromedp":                 {"plugins/web/browser"},
	"github.com/chromedp/cdproto":                  {"plugins/web/browser"},
	"codeberg.org/readeck/go-readability":          {"plugins/web/extract"},
	"github.com/JohannesKaufmann/html-to-markdown": {"plugins/web/extract"},
	"github.com/andybalholm/cascadia":              {"plugins/web/extract"},
	"github.com/ledongthuc/pdf":                    {"plugins/web/extract"},
	"github.com/go-jose/go-jose":                   {"host/mcp/bearer"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Dir        string
	GoFiles    []string
}

// TestInit fails on an init function where none is allowed: docs/adr/0007. The
// protocol's generated code has one as well.
func TestInit(t *testing.T) {
	allowed := map[string]bool{"host/sandbox/stage": true, "sdk/plugin/wire": true}
	found := map[string]bool{}
	for _, p := range list(t, "linux") {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nfunc init() {") {
				found[name] = true
				if !allowed[name] {
					t.Errorf("%s/%s has an init function", name, file)
				}
			}
		}
	}
	for name := range allowed {
		if !found[name] {
			t.Errorf("%s has no init function: it need not be allowed", name)
		}
	}
}

// TestFloorPlan fails on any import that the floor plan does not name.
func TestFloorPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, goos := range []string{"linux", "darwin", "windows", "wasip1"} {
		for _, p := range list(t, goos) {
			name := strings.TrimPrefix(p.ImportPath, module)
			seen[name] = true
			check(t, name, p)
		}
	}
	for name := range rooms {
		if !seen[name] {
			t.Errorf("%s is on the floor plan but does not exist", name)
		}
	}
}

func check(t *testing.T, name string, p pkg) {
	t.Helper()
	top, _, _ := strings.Cut(name, "/")
	allowed, ok := rooms[name]
	switch {
	case ok:
	case top == "skills" || top == "examples":
		allowed = "sdk sdk/guest host/manifest host/tomlfile host/executor/wasm host/executor host/capability"
		if path.Base(name) != "build" { // guests see the sdk only; their build program may look at manifests
			allowed = "sdk sdk/guest sdk/plugin"
		}
	case top == "bench":
		allowed = strings.Join(slices.Collect(func(yield func(string) bool) {
			for r := range rooms {
				if !yield(r) {
					return
				}
			}
		}), " ") + " bench/load"
	default:
		t.Errorf("%s is not on the floor plan", name)
		return
	}
	for _, imp := range p.Imports {
		if own, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(strings.Fields(allowed), own) && !strings.HasPrefix(own, name+"/") {
			t.Errorf("%s must not import %s", name, own)
		}
		if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") || strings.HasPrefix(imp, module) {
			continue
		}
		if err := door(name, imp); err != nil {
			t.Errorf("%s imports %s: %v", name, imp, err)
		}
	}
}

func door(name, imp string) error {
	if strings.HasPrefix(imp, "golang.org/x/sys") || strings.HasPrefix(imp, "golang.org/x/text") {
		return nil
	}
	for dep, who := range doors {
		if imp == dep || strings.HasPrefix(imp, dep+"/") {
			if slices.Contains(who, name) {
				return nil
			}
			return errors.New("only " + strings.Join(who, ", ") + " may")
		}
	}
	return errors.New("a new dependency needs a door in the floor plan and an ADR")
}

func list(t *testing.T, goos string) (pkgs []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Dir,GoFiles", module+"...")
	cmd.Env = append(cmd.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	if goos == "wasip1" {
		cmd.Env = append(cmd.Env, "GOARCH=wasm")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
