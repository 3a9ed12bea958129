package manifests_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/host/tomlfile"
	"github.com/skillhost/skill/manifests"
)

const head = "name = \"hello\"\nversion = \"1.0.0\"\ndescription = \"d\"\nruntime = \"wasm\"\nsource = \"hello.wasm\"\n"

// The tables of the format: a manifest with a key in each that nobody knows,
// and where the schema describes the table.
var tables = []struct{ name, text, schema string }{
	{"top", head + "ZZZ = 1", ""},
	{"tool", head + "[tools.a]\nZZZ = 1", "$defs/tool"},
	{"annotations", head + "[tools.a.annotations]\nZZZ = true", "$defs/tool/properties/annotations"},
	{"icon", head + "[[tools.a.icons]]\nZZZ = 1", "$defs/icon"},
	{"narrow", head + "[tools.a.capabilities]\nZZZ = []", "$defs/narrow"},
	{"tool limits", head + "[tools.a.limits]\nZZZ = 1", "$defs/limits"},
	{"resource", head + "[resources.a]\nZZZ = 1", "$defs/resource"},
	{"resource annotations", head + "[resources.a.annotations]\nZZZ = 1", "$defs/resource/properties/annotations"},
	{"variable", head + "[resources.a.variables.b]\nZZZ = 1", "$defs/completion"},
	{"resource narrow", head + "[resources.a.capabilities]\nZZZ = []", "$defs/narrow"},
	{"prompt", head + "[prompts.a]\nZZZ = 1", "$defs/prompt"},
	{"argument", head + "[[prompts.a.arguments]]\nZZZ = 1", "$defs/prompt/properties/arguments/items"},
	{"prompt narrow", head + "[prompts.a.capabilities]\nZZZ = []", "$defs/narrow"},
	{"capabilities", head + "[capabilities]\nZZZ = []", "properties/capabilities"},
	{"secret", head + "[[capabilities.secrets]]\nZZZ = 1", "$defs/secret"},
	{"limits", head + "[limits]\nZZZ = 1", "$defs/limits"},
	{"sandbox", head + "[sandbox]\nZZZ = 1", "properties/sandbox"},
}

// The keys that the host knows are the keys that the schema knows.
func TestSameKeys(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal([]byte(manifests.SkillSchema), &doc); err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, table := range tables {
		_, err := manifest.Read("skill.toml", []byte(table.text))
		if err == nil {
			t.Fatalf("%s: the key ZZZ is known", table.name)
		}
		_, list, ok := strings.Cut(strings.TrimSuffix(err.Error(), ")"), "known here: ")
		if !ok {
			t.Fatalf("%s: %v", table.name, err)
		}
		node := doc
		if table.schema != "" {
			for _, k := range strings.Split(table.schema, "/") {
				if node, ok = node[k].(map[string]any); !ok {
					t.Fatalf("%s: the schema has no %s", table.name, table.schema)
				}
			}
		}
		properties, _ := node["properties"].(map[string]any)
		if known := strings.Join(slices.Sorted(maps.Keys(properties)), ", "); known != list {
			t.Errorf("%s:\nthe host knows   %s\nthe schema knows %s", table.name, list, known)
		}
		if node["additionalProperties"] != false {
			t.Errorf("%s: the schema lets unknown keys pass", table.name)
		}
		covered[table.schema] = true
	}
	visit(doc, "", func(path string, node map[string]any) {
		if _, ok := node["properties"]; ok && !covered[path] {
			t.Errorf("no manifest tests the table at %s", path)
		}
		if _, ok := node["type"]; ok && node["description"] == nil && !strings.HasSuffix(path, "/items") && !strings.Contains(path, "/anyOf") {
			t.Errorf("%s has no description", path)
		}
	})
}

func visit(v any, path string, f func(string, map[string]any)) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	f(path, m)
	for k, sub := range m {
		visit(sub, strings.TrimPrefix(path+"/"+k, "/"), f)
	}
}

func compile(t *testing.T) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(manifests.SkillSchema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *schema.Schema, file string, data []byte) error {
	t.Helper()
	var tree map[string]any
	if _, err := tomlfile.Decode(file, data, &tree); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return s.Check(raw)
}

// What the host reads, the schema accepts.
func TestGoodManifests(t *testing.T) {
	s := compile(t)
	files, err := filepath.Glob("../host/manifest/testdata/good/*.toml")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(t, s, file, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// An editor shows the usual mistakes before the host does.
func TestBadManifests(t *testing.T) {
	s := compile(t)
	for _, text := range []string{
		"name = \"hello\"", strings.Replace(head, "hello", "Hello", 1), strings.Replace(head, "wasm", "wsam", 1), head + "abi = \"skill/9\"",
		head + "[capabilities]\nnetworks = []", head + "[capabilities]\nnetwork = \"a.example\"", head + "[capabilities]\nfilesystem = [\"/data\"]", head + "[capabilities]\nfilesystem = [\"read:data\"]", head + "[capabilities]\nclient = [\"form\"]", head + "[capabilities]\nclient = \"sampling\"",
		head + "[limits]\nmemory = \"128MB\"", head + "[limits]\ntimeout = \"30\"", head + "[limits]\nrate = \"60/minute\"", head + "[tools.\"a b\"]", head + "[tools.a]\ninput = 3",
		head + "[[capabilities.secrets]]\nname = \"A\"", head + "[sandbox]\nisolation = \"none\"", head + "[prompts.a]\ndescription = \"d\"",
	} {
		if err := check(t, s, "skill.toml", []byte(text)); err == nil {
			t.Errorf("accepted:\n%s", text)
		}
		if _, err := manifest.Read("skill.toml", []byte(text)); err == nil {
			t.Errorf("the host accepts:\n%s", text)
		}
	}
}
