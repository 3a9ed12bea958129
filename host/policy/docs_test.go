package policy

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/host/tomlfile"
)

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every block of TOML on the page is a valid policy, and every key of the
// format is on the page.
func TestPage(t *testing.T) {
	page := file(t, "../../docs/policy.md")
	blocks := strings.Split(page, "```toml\n")[1:]
	var all strings.Builder
	for _, b := range blocks {
		text, _, _ := strings.Cut(b, "```")
		if _, err := Read("docs/policy.md", []byte(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		all.WriteString(text)
	}
	if len(blocks) < 6 {
		t.Errorf("%d examples", len(blocks))
	}
	for path := range keysOf(reflect.TypeFor[fileDoc](), "") {
		key := path[strings.LastIndexByte(path, '.')+1:]
		if !strings.Contains(page, "`"+key+"`") && !strings.Contains(all.String(), key+" = ") && !strings.Contains(all.String(), "."+key+"]") &&
			!strings.Contains(all.String(), "["+key) && !strings.Contains(all.String(), "."+key+".") {
			t.Errorf("%s is not documented", path)
		}
	}
	d := read(t, "[skills.hello]\nallow = true\ndigest = \"*\"\n\n\n\n\n\n\n\n\n\n\n\n\n[skills.hello.tools.sing]\nallow = false").Authorize(Request{Skill: "hello", Tool: "sing"})
	if !strings.Contains(page, "\n"+d.Err().Error()+"\n") {
		t.Errorf("the page does not show the refusal as it is:\n%v", d.Err())
	}
}

// keysOf returns the paths of all keys of a document's type; "*" is any name.
func keysOf(typ reflect.Type, at string) map[string]bool {
	keys := map[string]bool{}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Map:
		maps.Copy(keys, keysOf(typ.Elem(), at+"*."))
	case reflect.Struct:
		for i := range typ.NumField() {
			path := at + typ.Field(i).Tag.Get("toml")
			keys[path] = true
			maps.Copy(keys, keysOf(typ.Field(i).Type, path+"."))
		}
	}
	return keys
}

// The schema for editors has the keys that the host knows, each described, and
// lets no other key pass.
func TestSchemaKeys(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal([]byte(file(t, "../../manifests/policy.schema.json")), &doc); err != nil {
		t.Fatal(err)
	}
	defs := doc["$defs"].(map[string]any)
	keys := map[string]bool{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		n := v.(map[string]any)
		if ref, ok := n["$ref"].(string); ok {
			n = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		if d, _ := n["description"].(string); d == "" {
			t.Errorf("%q has no description", at)
		}
		if n["type"] != "object" {
			return
		}
		switch more := n["additionalProperties"].(type) {
		case map[string]any:
			walk(at+"*.", more)
		case bool:
			if more {
				t.Errorf("%q lets unknown keys pass", at)
			}
		default:
			t.Errorf("%q lets unknown keys pass", at)
		}
		properties, _ := n["properties"].(map[string]any)
		for k, sub := range properties {
			keys[at+k] = true
			walk(at+k+".", sub)
		}
	}
	walk("", doc)
	got, want := slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(keysOf(reflect.TypeFor[fileDoc](), "")))
	if !slices.Equal(got, want) {
		t.Errorf("the schema knows %v\nthe host knows   %v", got, want)
	}
}

// What the host reads, the schema accepts; the usual mistakes show in an editor.
func TestSchemaChecks(t *testing.T) {
	s, err := schema.Compile(json.RawMessage(file(t, "../../manifests/policy.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		tree := map[string]any{}
		if _, err := tomlfile.Decode("policy.toml", []byte(text), &tree); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		return s.Check(raw)
	}
	good := []string{"", example, file(t, "../../manifests/policy.example.toml"), "[dangerous]\nallow = [\"network:*\", \"exec:*\", \"write:/etc\"]", "[skills.a]\ndigest = \"*\""}
	for _, b := range strings.Split(file(t, "../../docs/policy.md"), "```toml\n")[1:] {
		text, _, _ := strings.Cut(b, "```")
		good = append(good, text)
	}
	for _, text := range good {
		if _, err := Read("policy.toml", []byte(text)); err != nil {
			t.Errorf("the host on\n%s\n%v", text, err)
		}
		if err := check(text); err != nil {
			t.Errorf("the schema on\n%s\n%v", text, err)
		}
	}
	for _, text := range []string{
		"[skill.a]\nallow = true", "[skills.a]\nalow = true", "[skills.a]\nallow = \"yes\"", "[skills.A]\nallow = true", "[skills.a]\ndigest = \"sha256:12\"",
		"[defaults.capabilities]\nnetworks = []", "[skills.a.capabilities]\nclient = [\"form\"]", "[defaults.deny]\nclient = true", "[defaults.deny]\nfilesystem = [\"/data\"]", "[defaults.tools]\nallow = []", "[defaults.tools]\ndeny = [\"hel*\"]",
		"[callers.\"local:*\"]\nallow = true", "[callers.\"right:\"]\nallow = true", "[callers.\"right:a b\"]\nallow = true", "[callers.\"right:a*\"]\nallow = true", "[callers.x.skills]\nallow = [\"a.b\"]", "[callers.x.tools]\nallow = [\"*.b\"]", "[secrets.A]\nsource = \"store\"", "[secrets.A]\nsource = \"keyring\"\nhosts = [\"x.com\"]",
		"[secrets.A]\nsource = \"store\"\nhosts = [\"x.com\"]\nformat = \"Bearer\"", "[dangerous]\nallow = [\"all\"]",
	} {
		if _, err := Read("policy.toml", []byte(text)); err == nil {
			t.Errorf("the host accepts\n%s", text)
		}
		if err := check(text); err == nil {
			t.Errorf("the schema accepts\n%s", text)
		}
	}
}
