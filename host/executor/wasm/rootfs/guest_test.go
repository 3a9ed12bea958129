package rootfs

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// TestGuest runs a real guest, built by the Go toolchain, on wazero.
func TestGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and compiles a guest")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/guest.wasm", "./testdata/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	module, err := os.ReadFile(dir + "/guest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	guarded := []string{h.base + "/ro", h.base + "/out", h.base + "/ws2", h.base + "/skill"}
	before := state(t, guarded...)

	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out, stderr bytes.Buffer
	config := wazero.NewModuleConfig().WithArgs("guest", h.base).WithEnv("PWD", "/workspace").WithStdout(&out).WithStderr(&stderr).
		WithSysWalltime().WithFSConfig(wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(h.fs, "/"))
	m, err := r.InstantiateWithConfig(ctx, module, config)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out.Bytes(), stderr.Bytes())
	}
	m.Close(ctx)
	if len(h.fs.files) != 0 {
		t.Errorf("%d files left open", len(h.fs.files))
	}
	if after := state(t, guarded...); after != before {
		t.Errorf("the host changed:\n%s\nwas:\n%s", after, before)
	}
	if got := out.String(); got != guestSays {
		t.Errorf("the guest says:\n%s\nwant:\n%s", got, guestSays)
	}
	if denied := strings.Join(h.rec.denied, "\n"); !strings.Contains(denied, h.base+"/out/secret") || !strings.Contains(denied, "read:/etc/passwd") {
		t.Errorf("on record as denied: %s", denied)
	}
}

const guestSays = `read: content of ws/a.txt
read relative: content of ws/sub/b.txt
read host path: content of ro/r.txt
read link: content of ws/sub/b.txt
write: <nil>
append: <nil>
reread: made by the guest and more
mkdirall: <nil>
mkdirall host path: <nil>
rename: <nil>
symlink: <nil>
through symlink: made by the guest and more
hard link: <nil>
chtimes: <nil>
stat: <nil>
mtime: 2
temp: true
list: [hard y]
list root: true
walk: 7
removeall: <nil>
gone: No such file or directory
dir handle: content of ws/sub/b.txt
dotdot: Permission denied
outside: Permission denied
passwd: Permission denied
link out: Permission denied
dir link out: [open /workspace/out-dir: Permission denied]
truncate read-only: Permission denied
create read-only: Permission denied
evil symlink: Operation not permitted
evil symlink abs: Operation not permitted
evil readlink: Permission denied
evil rename: Permission denied
evil dir handle: Permission denied
fd cap: 255
`
