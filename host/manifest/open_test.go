package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/host/manifest/frontmatter"
	"github.com/skillhost/skill/host/manifest/pinned"
	"github.com/skillhost/skill/host/manifest/words"
	"github.com/skillhost/skill/sdk"
)

// folder writes files into a new directory called hello.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The schema of settings may be a file of the skill, like every other.
func TestOpenSettings(t *testing.T) {
	for want, line := range map[string]string{`{"type":"object"}`: "schema/a.json", `{"a":1}`: `{ \"a\": 1 }`} {
		files := maps.Clone(plainSkill)
		files[FileName] = strings.Replace(plainSkill[FileName], "[tools.a]", "settings = \""+line+"\"\n[tools.a]", 1)
		s, err := open(folder(t, files))
		if err != nil || string(s.Settings) != want {
			t.Errorf("settings %s, %v, want %s", s.Settings, err, want)
		}
	}
}

func open(dir string) (*Skill, error) { return Open(os.DirFS(dir), dir) }

var plainSkill = map[string]string{FileName: head + "[tools.a]\ninput = \"schema/a.json\"\n[tools.b]\noutput = \"schema/a.json\"", "hello.wasm": "\x00asm", "schema/a.json": "{ \"type\": \"object\" }\n"}

func TestOpen(t *testing.T) {
	dir := folder(t, plainSkill)
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Tools[0].Input) != `{"type":"object"}` || string(s.Tools[1].Output) != `{"type":"object"}` || s.Tools[0].Output != nil {
		t.Errorf("schemas: %+v", s.Tools)
	}
	shown := filepath.ToSlash(dir) + "/skill.toml"
	if s.Home.Dir != dir || s.Home.File != shown || s.Needs.Pos.File != shown || s.Home.Builtin || s.HasInstructions() || len(s.Home.Warnings) > 0 {
		t.Errorf("home: %+v", s.Home)
	}
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(s.Home.Digest) {
		t.Errorf("digest %q", s.Home.Digest)
	}
	if module, err := fs.ReadFile(s.Home.Files, "hello.wasm"); err != nil || string(module) != "\x00asm" {
		t.Errorf("module %q, %v", module, err)
	}
	if _, _, err := Instructions(s); sdk.KindOf(err) != sdk.NotFound {
		t.Errorf("instructions: %v", err)
	}
}

func TestOpenEmbedded(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, content := range plainSkill {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	s, err := Open(fsys, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Home.Dir != "" || s.Home.File != "hello/skill.toml" || s.Needs.Pos.File != "hello/skill.toml" || s.Home.Builtin {
		t.Errorf("home: %+v", s.Home)
	}
	disk, err := open(folder(t, plainSkill))
	if err != nil || disk.Home.Digest != s.Home.Digest {
		t.Errorf("the digest depends on where the files are: %v", err)
	}
	if err := fstest.TestFS(s.Home.Files, "hello.wasm", "schema/a.json", "skill.toml"); err != nil {
		t.Error(err)
	}
}

func TestOpenEscapes(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		make       func(dir string) error
		want       string
	}{
		{"source_dotdot", strings.Replace(head, "hello.wasm", "../hello.wasm", 1) + "[tools.a]", nil, `source "../hello.wasm": ".." leaves the skill's directory`},
		{"source_missing", strings.Replace(head, "hello.wasm", "helo.wasm", 1) + "[tools.a]", nil, `skill.toml:5: no file "helo.wasm" in the skill's directory (did you mean "hello.wasm"?`},
		{"source_is_folder", strings.Replace(head, "hello.wasm", "schema", 1) + "[tools.a]", nil, `no file "schema" in the skill's directory`},
		{"source_in_git", strings.Replace(head, "hello.wasm", ".git/hello.wasm", 1) + "[tools.a]", func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, ".git"), 0o755), os.WriteFile(filepath.Join(dir, ".git", "hello.wasm"), nil, 0o644))
		}, `no file ".git/hello.wasm" in the skill's directory`},
		{"source_symlink", head + "[tools.a]", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "hello.wasm")), os.Symlink("/etc/passwd", filepath.Join(dir, "hello.wasm")))
		}, `hello.wasm": a symbolic link`},
		{"symlink_inside", head + "[tools.a]", func(dir string) error { return os.Symlink("hello.wasm", filepath.Join(dir, "link")) }, `link": a symbolic link`},
		{"symlink_folder", head + "[tools.a]", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "etc")) }, `etc": a symbolic link`},
		{"symlink_manifest", head + "[tools.a]", func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, FileName), filepath.Join(dir, "x")), os.Symlink("x", filepath.Join(dir, FileName)))
		}, `skill.toml": a symbolic link`},
		{"schema_missing", head + "[tools.a]\ninput = \"schema/b.json\"", nil, `skill.toml:7: no file "schema/b.json" in the skill's directory (did you mean "schema/a.json"?`},
		{"schema_not_json", head + "[tools.a]\ninput = \"hello.wasm\"", nil, `hello.wasm: the schema: not JSON`},
		{"schema_large", head + "[tools.a]\ninput = \"big\"", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte(" "), maxSchema+1), 0o644)
		}, `big: the schema: 262145 bytes are too many`},
		{"manifest_large", head + "[tools.a]\n#" + strings.Repeat("x", maxManifest), nil, `at most 1048576`},
		{"resource_missing", head + "[resources.r]\nuri = \"a://b\"\nfile = \"none\"", nil, `no file "none" in the skill's directory`},
		{"instructions_missing", strings.Replace(strings.Replace(head, "wasm", "instructions", 1), "source = \"hello.wasm\"\n", "", 1), nil, `no file "SKILL.md" in the skill's directory`},
		{"control_in_name", head + "[tools.a]", func(dir string) error { return os.WriteFile(filepath.Join(dir, "a\nb"), nil, 0o644) }, `a control character in the name`},
		{"no_skill", "", func(dir string) error { return os.Remove(filepath.Join(dir, FileName)) }, `holds no skill (a skill has a skill.toml or a SKILL.md)`},
		{"too_many_files", head + "[tools.a]", func(dir string) error {
			for i := range pinned.MaxFiles {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), nil, 0o644); err != nil {
					return err
				}
			}
			return nil
		}, `the directory has too many files (at most 2048 in a skill)`},
		{"too_large", head + "[tools.a]", func(dir string) error {
			f, err := os.Create(filepath.Join(dir, "sparse"))
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(pinned.MaxContent+1), f.Close())
		}, `the directory is too large (at most 256 MiB in a skill)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (strings.Contains(tc.name, "symlink") || strings.Contains(tc.name, "control")) {
				t.Skip("windows has no such names, and links only for administrators")
			}
			dir := folder(t, map[string]string{FileName: tc.text, "hello.wasm": "\x00asm", "schema/a.json": "{}"})
			if tc.make != nil {
				if err := tc.make(dir); err != nil {
					t.Fatal(err)
				}
			}
			s, err := open(dir)
			if err == nil {
				t.Fatalf("opened: %+v", s)
			}
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\ngot  %v (%v)\nwant %s", err, sdk.KindOf(err), tc.want)
			}
		})
	}
}

// A device cannot be made by everybody, so the tree says that it is one.
func TestOpenDevice(t *testing.T) {
	for _, mode := range []fs.FileMode{fs.ModeDevice, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeCharDevice | fs.ModeDevice, fs.ModeIrregular} {
		fsys := fstest.MapFS{FileName: {Data: []byte(head + "[tools.a]")}, "hello.wasm": {Mode: mode}}
		if _, err := Open(fsys, ""); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

const skillMD = "---\nname: hello\ndescription: Use when greeting\nlicense: MIT\nmetadata:\n  version: 1.2.3\n  n: 3\nallowed-tools: Bash(git:*) Read\n---\n# Hello\n\nBody\n"

func TestOpenInstructions(t *testing.T) {
	dir := folder(t, map[string]string{InstructionsName: skillMD, "scripts/x.sh": "rm -rf /"})
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Runtime != "instructions" || s.Name != "hello" || s.Description != "Use when greeting" || s.Version != "1.2.3" || s.License != "MIT" || len(s.Tools) != 0 || len(s.Home.Warnings) != 0 || !s.HasInstructions() {
		t.Errorf("%+v", s)
	}
	if !s.Needs.Closed || len(s.Needs.Allow) != 1 || s.Needs.Allow[0].Kind != capability.Filesystem || s.Needs.Allow[0].Entry() != "read:${skill_dir}" {
		t.Errorf("needs %+v", s.Needs)
	}
	front, body, err := Instructions(s)
	if err != nil || body != "# Hello\n\nBody\n" ||
		string(front) != `{"name":"hello","description":"Use when greeting","license":"MIT","metadata":{"version":"1.2.3","n":3},"allowed-tools":"Bash(git:*) Read"}` {
		t.Errorf("%s\n%q\n%v", front, body, err)
	}
}

func TestInstructionsLenient(t *testing.T) {
	for _, tc := range []struct{ name, text, skill, description, warning string }{
		{"colon_in_value", "---\nname: hello\ndescription: Use when: greeting\n---\n", "hello", "Use when: greeting", "put quotes around values that contain a colon"},
		{"starts_with_at", "---\nname: hello\ndescription: @all of you\n---\n", "hello", "@all of you", "no valid YAML"},
		{"other_name", "---\nname: other\ndescription: d\n---\n", "other", "d", `the name "other" is not that of the directory, "hello"`},
		{"bad_name", "---\nname: Hello World\ndescription: d\n---\n", "hello", "d", `the name "Hello World" is missing or malformed`},
		{"no_name", "---\ndescription: d\n---\n", "hello", "d", `the name "" is missing or malformed`},
		{"folded", "---\nname: hello\ndescription: >\n  a\n  b\n---\n", "hello", "a b", ""},
		{"crlf", "---\r\nname: hello\r\ndescription: d\r\n---\r\nx", "hello", "d", ""},
		{"bom", "\uFEFF---\nname: hello\ndescription: d\n---", "hello", "d", ""},
		{"dashes_in_body", "---\nname: hello\ndescription: d\n---\n---\nname: evil\n---\n", "hello", "d", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := open(folder(t, map[string]string{InstructionsName: tc.text}))
			if err != nil {
				t.Fatal(err)
			}
			if warnings := strings.Join(s.Home.Warnings, "\n"); s.Name != tc.skill || s.Description != tc.description || (tc.warning == "") != (warnings == "") || !strings.Contains(warnings, tc.warning) {
				t.Errorf("%q %q %q", s.Name, s.Description, warnings)
			}
		})
	}
}

func TestInstructionsErrors(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no_frontmatter", "# Hello", `SKILL.md:1: the frontmatter has no description`},
		{"no_description", "---\nname: hello\n---\n", `SKILL.md:1: the frontmatter has no description`},
		{"blank_description", "---\nname: hello\ndescription: \"  \"\n---\n", `the frontmatter has no description`},
		{"open", "---\nname: hello\n", `SKILL.md:1: the frontmatter does not end`},
		{"list", "---\n- a\n---\n", `SKILL.md:2: frontmatter: want "key: value" lines`},
		{"broken", "---\nname: hello\ndescription: d\n  x: [\n---\n", `frontmatter: `},
		{"duplicate_key", "---\nname: hello\ndescription: a\ndescription: b\n---\n", `frontmatter: duplicate key "description"`},
		{"alias_bomb", "---\ndescription: d\na: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n---\n", `anchors and aliases are not read`},
		{"deep", "---\ndescription: d\na: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n---\n", `nested more than 32 deep`},
		{"large", "---\ndescription: " + strings.Repeat("x", frontmatter.MaxSize) + "\n---\n", `at most 65536 are read`},
		{"invisible", "---\nname: hello\ndescription: \"a\u202eb\"\n---\n", `the invisible character U+202E`},
		{"not_utf8", "---\ndescription: \xff\n---\n", `the file is not UTF-8`},
		{"too_large", "---\ndescription: d\n---\n" + strings.Repeat("x", maxManifest), `SKILL.md: the file is too large`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := open(folder(t, map[string]string{InstructionsName: tc.text}))
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\ngot  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestOpenBoth(t *testing.T) {
	s, err := open(folder(t, map[string]string{FileName: head + "[tools.a]", "hello.wasm": "x", InstructionsName: strings.Replace(skillMD, "hello", "hullo", 1)}))
	if err != nil {
		t.Fatal(err)
	}
	if s.Runtime != "wasm" || s.Name != "hello" || !s.HasInstructions() || len(s.Home.Warnings) != 1 || !strings.Contains(s.Home.Warnings[0], `SKILL.md calls the skill "hullo", skill.toml "hello"`) {
		t.Errorf("%+v", s)
	}
	if _, body, err := Instructions(s); err != nil || !strings.HasPrefix(body, "# Hello") {
		t.Errorf("%q, %v", body, err)
	}
}

func FuzzInstructions(f *testing.F) {
	f.Add([]byte(skillMD))
	f.Add([]byte("---\ndescription: Use when: greeting\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Open(fstest.MapFS{InstructionsName: {Data: text}}, "")
		if err != nil {
			if sdk.KindOf(err) != sdk.Invalid {
				t.Fatal(err)
			}
			return
		}
		if !words.IsSkillName(s.Name) || s.Description == "" || !s.Needs.Closed {
			t.Fatalf("%+v", s)
		}
		if _, _, err := Instructions(s); err != nil {
			t.Fatal(err)
		}
	})
}
