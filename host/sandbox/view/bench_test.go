package view

import (
	"testing"

	"github.com/skillhost/skill/host/capability"
)

// The view of a shell, of the real file system.
func BenchmarkOf(b *testing.B) {
	layers := []capability.Layer{
		manifest("read:/", "write:/usr/local", "exec:*"),
		denying("read:/root/.ssh", "read:/root/.gnupg", "read:/root/.aws", "read:/etc/shadow", "write:/usr/local/.git/hooks", "write:/usr/local/.vscode"),
		{Name: "session", Speaks: []capability.Topic{writing}, Allow: caps("write:/usr/local")},
	}
	for name, strict := range map[string]bool{"strict": true, "landlock": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Of(layers, Options{Strict: strict, Tmp: "/tmp/x"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
