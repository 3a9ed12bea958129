package wasm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

// The modules of docs/abi.md build with the commands printed there, and work.
func TestDocumentedModules(t *testing.T) {
	doc, err := os.ReadFile(filepath.FromSlash("../../../docs/abi.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(doc), "```c\n")
	if len(parts) != 3 {
		t.Fatalf("%d modules in C, want 2", len(parts)-1)
	}
	for i, c := range []struct{ abi, args, text string }{
		{abiCommand, `{"a": "two words"}`, "{\"words\": 3}\n"},
		{abiSkill, `{}`, "hello from C"},
	} {
		t.Run(c.abi, func(t *testing.T) {
			source, rest, _ := strings.Cut(parts[i+1], "```")
			command := strings.Fields(strings.Split(strings.TrimSpace(rest), "\n")[0])
			dir := t.TempDir()
			file := filepath.Join(dir, command[len(command)-1])
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			build := exec.Command(command[0], command[1:]...)
			build.Dir = dir
			if out, err := build.CombinedOutput(); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Skipf("LEFT OUT: no clang that builds for WebAssembly: %v", err)
			}
			module, err := os.ReadFile(strings.TrimSuffix(file, ".c") + ".wasm")
			if err != nil {
				t.Fatal(err)
			}
			p := load(t, newExecutor(t), skillOf(c.abi, module))
			r, err := p.Run(t.Context(), jobOf(c.args))
			if err != nil || len(r.Content) != 1 || r.Content[0].Text != c.text {
				t.Errorf("got %+v, %v; want the text %q", r, err, c.text)
			}
		})
	}
}

// Numbers that docs/abi.md prints are those of the code.
func TestDocumentedNumbers(t *testing.T) {
	doc, err := os.ReadFile(filepath.FromSlash("../../../docs/abi.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| -6 | `EAGAIN`", "| -8 | `EBADF`", "| -11 | `ECANCELED`", "| -21 | `EFAULT`", "| -28 | `EINVAL`", "| -52 | `ENOSYS`", "| -61 | `EOVERFLOW`",
		"| 1 result |", "| 2 progress |", "| 3 partial |", "| 4 log |",
		"at most 64 MiB", "100,000 elements", "64 operations", "4096 were started", "exceeds 4 MiB", "64 KiB (a log", "65,536 events", "at most 4 KiB", "last 2 KiB", "16 MiB",
	} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("docs/abi.md does not say %q", want)
		}
	}
	same := [][2]int{
		{sdk.ErrAgain, -6}, {sdk.ErrBadf, -8}, {sdk.ErrCanceled, -11}, {sdk.ErrFault, -21}, {sdk.ErrInval, -28}, {sdk.ErrNoSys, -52}, {sdk.ErrOverflow, -61},
		{sdk.EmitResult, 1}, {sdk.EmitProgress, 2}, {sdk.EmitPartial, 3}, {sdk.EmitLog, 4},
		{maxModule, 64 << 20}, {maxTable, 100_000}, {maxOpen, 64}, {maxStarted, 4096}, {maxOpHeader, 4 << 20}, {maxMessage, 64 << 10},
		{maxEvents, 65_536}, {maxLastWord, 4 << 10}, {maxTail, 2 << 10}, {sdk.MaxHeader, 16 << 20},
	}
	for i, s := range same {
		if s[0] != s[1] {
			t.Errorf("number %d is %d in the code and %d in docs/abi.md", i, s[0], s[1])
		}
	}
}
