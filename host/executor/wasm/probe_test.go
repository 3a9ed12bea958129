package wasm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/skillhost/skill/host/executor/wasm/codedir"
	"github.com/skillhost/skill/sdk"
)

func TestProbe(t *testing.T) {
	want := "interpreter"
	if runCompiled(t.Context(), wazero.NewRuntimeConfigCompiler()) == nil {
		want = "compiler"
	}
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "cache")} {
		if engine, err := Probe(t.Context(), dir); err != nil || engine != want {
			t.Errorf("cache %q: %q %v, want %q", dir, engine, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if engine, err := Probe(t.Context(), file); codedir.Checked && (sdk.KindOf(err) != sdk.Unavailable || engine != "") {
		t.Errorf("a cache that is a file: %q %v", engine, err)
	}
}
