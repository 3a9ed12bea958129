package library

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

func skill(files fstest.MapFS) *manifest.Skill {
	s := &manifest.Skill{Home: manifest.Home{Files: files, File: "demo/skill.toml"}}
	s.Name, s.Description = "demo", "A demonstration"
	return s
}

const text = "---\nname: demo\ndescription: A demonstration\nextra: {a: [1, 2]}\n---\n\nBody.\n"

func TestEntry(t *testing.T) {
	s := skill(fstest.MapFS{"SKILL.md": {Data: []byte(text)}, "references/a b.md": {Data: []byte("reference\n")}})
	got, err := Entry(s)
	want := fmt.Sprintf(`{"uri":"skill://demo/SKILL.md","frontmatter":{"name":"demo","description":"A demonstration","extra":{"a":[1,2]}},"resources":[`+
		`{"uri":"skill://demo/SKILL.md","digest":"sha256:%x","size":%d},{"uri":"skill://demo/references/a%%20b.md","digest":"sha256:%x","size":10}]}`,
		sha256.Sum256([]byte(text)), len(text), sha256.Sum256([]byte("reference\n")))
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if !Holds(s) || Holds(skill(fstest.MapFS{"other.md": {}})) {
		t.Error("Holds")
	}
}

// A frontmatter that does not name the skill is completed: clients check it.
func TestEntryNames(t *testing.T) {
	for _, front := range []string{"", "---\nname: other\n---\n", "---\nname: [1]\ndescription: \"\"\n---\n"} {
		got, err := Entry(skill(fstest.MapFS{"SKILL.md": {Data: []byte(front + "Body")}}))
		var e struct {
			Frontmatter struct{ Name, Description string }
		}
		if err != nil || json.Unmarshal(got, &e) != nil || e.Frontmatter.Name != "demo" || e.Frontmatter.Description != "A demonstration" {
			t.Errorf("%q: %s, %v", front, got, err)
		}
	}
}

func TestEntryOfALargeSkill(t *testing.T) {
	files := fstest.MapFS{"SKILL.md": {Data: []byte(text)}}
	big := strings.Repeat("x", maxBytes/2)
	files["a"], files["b"] = &fstest.MapFile{Data: []byte(big)}, &fstest.MapFile{Data: []byte(big)}
	if got, err := Entry(skill(files)); err != nil || !strings.HasSuffix(string(got), `"resources":"dynamic"}`) {
		t.Errorf("got %.200s, %v", got, err)
	}
}

func TestDirectory(t *testing.T) {
	s := skill(fstest.MapFS{"SKILL.md": {Data: []byte(text)}, "references/REF.md": {Data: []byte("r")}})
	for dir, want := range map[string]string{
		".":          `[{"uri":"skill://demo/SKILL.md","name":"SKILL.md","mimeType":"text/markdown","size":74},{"uri":"skill://demo/references","name":"references","mimeType":"inode/directory"}]`,
		"references": `[{"uri":"skill://demo/references/REF.md","name":"REF.md","mimeType":"text/markdown","size":1}]`,
	} {
		l, err := Directory(s, dir)
		got, _ := json.Marshal(l)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v\nwant %s", dir, got, err, want)
		}
	}
	for _, dir := range []string{"SKILL.md", "nothing", "../x"} {
		if _, err := Directory(s, dir); sdk.KindOf(err) != sdk.Invalid {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// One file has one URI: no other spelling of it leads anywhere.
func TestParse(t *testing.T) {
	for uri, want := range map[string]string{
		"skill://demo":                "demo .",
		"skill://demo/SKILL.md":       "demo SKILL.md",
		"skill://demo/a%20b/c":        "demo a b/c",
		"skill://demo/":               "",
		"skill://demo/.":              "",
		"skill://demo/../x":           "",
		"skill://demo/a/../b":         "",
		"skill://demo/a//b":           "",
		"skill://demo/%2e%2e/x":       "",
		"skill://demo/a%2Fb":          "",
		"skill://demo/%53KILL.md":     "",
		"skill://demo/a%2":            "",
		"skill://demo/a%zz":           "",
		"skill://demo/a%00":           "",
		"skill://demo/a b":            "",
		"skill://Demo/SKILL.md":       "",
		"skill://a--b/SKILL.md":       "",
		"skill://x@demo/SKILL.md":     "",
		"skill://demo/SKILL.md?x=1":   "",
		"skill://demo/SKILL.md#a":     "",
		"SKILL://demo/SKILL.md":       "",
		"skill:///SKILL.md":           "",
		"file:///etc/passwd":          "",
		"skill://demo/\xff":           "",
		"skill://demo/caf%C3%A9.md":   "demo café.md",
		"skill://demo/back%5Cslash":   `demo back\slash`,
		"skill://demo/a%0Ab/SKILL.md": "demo a\nb/SKILL.md",
	} {
		skill, file, ok := Parse(uri)
		if got := strings.TrimSpace(skill + " " + file); ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %v, want %q", uri, got, ok, want)
		}
	}
}

// FuzzParse: what is accepted is the one spelling of a valid path.
func FuzzParse(f *testing.F) {
	f.Add("skill://demo/a%20b/c")
	f.Add("skill://demo/%2e%2e/%2e%2e/etc/passwd")
	f.Fuzz(func(t *testing.T, uri string) {
		skill, file, ok := Parse(uri)
		if !ok {
			return
		}
		if URI(skill, file) != uri || strings.Contains("/"+file+"/", "/../") || strings.HasPrefix(file, "/") {
			t.Fatalf("%q: %q %q", uri, skill, file)
		}
	})
}
