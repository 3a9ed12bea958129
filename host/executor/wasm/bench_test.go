package wasm

import (
	"os"
	"testing"

	"github.com/skillhost/skill/host/executor/executortest"
)

// One whole call in a fresh instance, as dispatch makes it.
func BenchmarkCall(b *testing.B) {
	for name, c := range map[string]struct {
		abi    string
		module func() []byte
	}{
		"skill_by_hand": {abiSkill, func() []byte { return undescribed(replyHello).bytes() }},
		"skill_go":      {abiSkill, func() []byte { return probe(b, executortest.Skill) }},
		"command_go":    {abiCommand, func() []byte { return probe(b, executortest.Command) }},
	} {
		b.Run(name, func(b *testing.B) {
			p := load(b, newExecutor(b), skillOf(c.abi, c.module()))
			job := jobOf(`{"do":[["say","hello"]]}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Run(b.Context(), job); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The same for a program that a C compiler made: examples/wordcount-c, counting
// the words of a sentence.
func BenchmarkCallC(b *testing.B) {
	module, err := os.ReadFile("../../../examples/wordcount-c/wordcount-c.wasm")
	if err != nil {
		b.Skipf("LEFT OUT: no compiled C guest (make guests, with clang and wasi-libc): %v", err)
	}
	p := load(b, newExecutor(b), skillOf(abiCommand, module))
	job := jobOf(`{"text":"the quick brown fox jumps over the lazy dog"}`)
	b.ReportAllocs()
	for b.Loop() {
		r, err := p.Run(b.Context(), job)
		if err != nil || len(r.Structured) == 0 {
			b.Fatal(r, err)
		}
	}
}

// Loading with the native code at hand from an earlier process.
func BenchmarkLoadCached(b *testing.B) {
	dir := b.TempDir()
	s := skillOf(abiSkill, probe(b, executortest.Skill))
	once := func() {
		x := New(Options{CacheDir: dir + "/cache"})
		p, err := x.Load(b.Context(), s)
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	once()
	for b.Loop() {
		once()
	}
}
