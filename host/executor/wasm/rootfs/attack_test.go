package rootfs

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// oldKernel runs all tests as if there were no openat2; see TestOldKernel.
var oldKernel = flag.Bool("rootfs.oldkernel", false, "walk instead of openat2")

// TestOldKernel runs the tests once more without openat2.
func TestOldKernel(t *testing.T) {
	if *oldKernel || runtime.GOOS != "linux" {
		t.Skip("is already so")
	}
	*oldKernel = true
	defer func() { *oldKernel = false }()
	t.Run("attacks", TestAttacks)
	t.Run("oracle", TestExistenceOracle)
	t.Run("readlink", TestReadlink)
	t.Run("rename", TestRename)
	t.Run("links", TestLinksInside)
	t.Run("open", TestOpenFlags)
	t.Run("small world", TestSmallWorld)
	t.Run("race", TestRace)
}

func errnoOf[T any](_ T, errno sys.Errno) sys.Errno { return errno }

const (
	creating   = sys.O_WRONLY | sys.O_CREAT
	truncating = sys.O_WRONLY | sys.O_CREAT | sys.O_TRUNC
)

// Whoever makes the ancestor of a denied path decides what it is: the host
// would find its own files beneath a link or a file of the guest's.
func TestAncestorOfDenied(t *testing.T) {
	const config = "/workspace/.config"
	for name, c := range map[string]struct {
		do   func(h *house) sys.Errno
		want sys.Errno
	}{
		"symlink_at_ancestor_of_denied":       {func(h *house) sys.Errno { return h.fs.Symlink("evil", config) }, sys.EACCES},
		"symlink_at_ancestor_of_denied_deep":  {func(h *house) sys.Errno { return h.fs.Symlink("../evil", "/workspace/has/skill") }, sys.EACCES},
		"symlink_at_ancestor_of_denied_case":  {func(h *house) sys.Errno { return h.fs.Symlink("evil", "/workspace/.CONFIG") }, sys.EACCES},
		"symlink_at_ancestor_of_denied_slash": {func(h *house) sys.Errno { return h.fs.Symlink("evil", config+"/") }, sys.EACCES},
		"symlink_at_denied":                   {func(h *house) sys.Errno { return h.fs.Symlink("../../a.txt", "/workspace/has/skill/policy.toml") }, sys.EACCES},
		"link_at_ancestor_of_denied":          {func(h *house) sys.Errno { return h.fs.Link("/workspace/a.txt", config) }, sys.EACCES},
		"create_at_ancestor_of_denied":        {func(h *house) sys.Errno { return h.put(config, "x", creating) }, sys.EACCES},
		"create_at_ancestor_of_denied_case":   {func(h *house) sys.Errno { return h.put("/workspace/.Config", "x", creating|sys.O_EXCL) }, sys.EACCES},
		"rename_at_ancestor_of_denied":        {func(h *house) sys.Errno { return h.fs.Rename("/workspace/evil", config) }, sys.EACCES},
		"mkdir_at_ancestor_of_denied":         {func(h *house) sys.Errno { return h.fs.Mkdir(config, 0o700) }, 0},
		"mkdir_at_denied": {func(h *house) sys.Errno {
			if errno := h.fs.Mkdir("/workspace/has/skill", 0o700); errno != 0 {
				return errno
			}
			return h.fs.Mkdir("/workspace/has/skill/policy.toml", 0o700)
		}, sys.EACCES},
		"symlink_below_made_ancestor": {func(h *house) sys.Errno {
			if errno := h.fs.Mkdir(config, 0o700); errno != 0 {
				return errno
			}
			return h.fs.Symlink("../evil/skill", config+"/skill")
		}, sys.EACCES},
		"symlink_elsewhere": {func(h *house) sys.Errno { return h.fs.Symlink("evil", "/workspace/.cache") }, 0},
		"create_elsewhere":  {func(h *house) sys.Errno { return h.put("/workspace/.configs", "x", creating) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "!write:@/ws/.config/skill/policy.toml", "!write:@/ws/has/skill/policy.toml")
			plant(t, h.base, "ws/evil/skill/policy.toml", "ws/has/")
			h.rec.reset()
			if errno := c.do(h); errno != c.want {
				t.Errorf("got %v, want %v", errno, c.want)
			}
			if c.want == sys.EACCES && len(h.rec.denied) == 0 {
				t.Error("not on record")
			}
			for _, p := range []string{"/ws/.config/skill/policy.toml", "/ws/has/skill/policy.toml"} {
				if _, err := os.Stat(h.base + p); err == nil {
					t.Error("the host finds the guest's", p)
				}
			}
		})
	}
}

// Every attack must end in its errno, leave all that it has no right to as it
// was, and, where it is refused with EACCES, be on record as denied.
var attacks = []struct {
	name string
	do   func(h *house) sys.Errno
	want sys.Errno
}{
	{"dotdot_read", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/../out/secret")) }, sys.EACCES},
	{"dotdot_read_relative", func(h *house) sys.Errno { return errnoOf(h.read("../../../../etc/passwd")) }, sys.EACCES},
	{"dotdot_deep", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/sub/../../out/secret")) }, sys.EACCES},
	{"dotdot_through_link", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/to-ro/../out/secret")) }, sys.EACCES},
	{"dotdot_write", func(h *house) sys.Errno { return h.put("/workspace/../out/secret", "x", truncating) }, sys.EACCES},
	{"dotdot_mkdir", func(h *house) sys.Errno { return h.fs.Mkdir("/workspace/../out/new", 0o700) }, sys.EACCES},
	{"prefix_sibling", func(h *house) sys.Errno { return errnoOf(h.read("@/ws2/sibling")) }, sys.EACCES},
	{"prefix_sibling_file", func(h *house) sys.Errno { return errnoOf(h.read("@/wsx")) }, sys.EACCES},
	{"etc_passwd", func(h *house) sys.Errno { return errnoOf(h.read("/etc/passwd")) }, sys.EACCES},
	{"proc_self_environ", func(h *house) sys.Errno { return errnoOf(h.read("/proc/self/environ")) }, sys.EACCES},
	{"nul", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/a.txt\x00.png")) }, sys.EINVAL},
	{"long", func(h *house) sys.Errno { return errnoOf(h.read("/workspace" + strings.Repeat("/x", 4096))) }, sys.ENAMETOOLONG},
	{"host_tmp", func(h *house) sys.Errno { return errnoOf(h.list("/workspace/host-tmp/")) }, sys.EACCES},
	{"host_root_then_tmp", func(h *house) sys.Errno { return errnoOf(h.list("/workspace/host-root/tmp")) }, sys.EACCES},
	{"tmp_by_real_name", func(h *house) sys.Errno { return errnoOf(h.list("@/tmp")) }, sys.EACCES},

	{"read_symlink_out_abs", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/out-abs")) }, sys.EACCES},
	{"read_symlink_out_rel", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/out-rel")) }, sys.EACCES},
	{"read_symlink_out_dir", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/out-dir/secret")) }, sys.EACCES},
	{"read_symlink_chain", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/hop/secret")) }, sys.EACCES},
	{"read_symlink_self", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/self/self/out-rel")) }, sys.EACCES},
	{"read_symlink_climb", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/climb/out/secret")) }, sys.EACCES},
	{"read_symlink_from_ro", func(h *house) sys.Errno { return errnoOf(h.read("@/ro/to-secret")) }, sys.EACCES},
	{"stat_symlink_out", func(h *house) sys.Errno { return errnoOf(h.fs.Stat("/workspace/out-rel")) }, sys.EACCES},
	{"list_symlink_out", func(h *house) sys.Errno { return errnoOf(h.list("/workspace/out-dir")) }, sys.EACCES},
	{"list_symlink_out_slash", func(h *house) sys.Errno { return errnoOf(h.list("/workspace/out-dir/")) }, sys.EACCES},
	{"create_symlink_out", func(h *house) sys.Errno { return h.put("/workspace/out-dir/new", "x", creating) }, sys.EACCES},
	{"create_symlink_dangling_out", func(h *house) sys.Errno { return h.put("/workspace/out-missing", "x", creating) }, sys.EACCES},
	{"truncate_symlink_out", func(h *house) sys.Errno { return h.put("/workspace/out-rel", "x", truncating) }, sys.EACCES},
	{"append_symlink_out", func(h *house) sys.Errno { return h.put("/workspace/out-rel", "x", sys.O_WRONLY|sys.O_APPEND) }, sys.EACCES},
	{"mkdir_symlink_out", func(h *house) sys.Errno { return h.fs.Mkdir("/workspace/out-dir/new", 0o700) }, sys.EACCES},
	{"unlink_symlink_out", func(h *house) sys.Errno { return h.fs.Unlink("/workspace/out-dir/secret") }, sys.EACCES},
	{"rmdir_symlink_out", func(h *house) sys.Errno { return h.fs.Rmdir("/workspace/out-dir/empty") }, sys.EACCES},
	{"rename_from_symlink_out", func(h *house) sys.Errno { return h.fs.Rename("/workspace/out-dir/secret", "/workspace/stolen") }, sys.EACCES},
	{"rename_to_symlink_out", func(h *house) sys.Errno { return h.fs.Rename("/workspace/a.txt", "/workspace/out-dir/secret") }, sys.EACCES},
	{"link_from_symlink_out", func(h *house) sys.Errno { return h.fs.Link("/workspace/out-dir/secret", "/workspace/stolen") }, sys.EACCES},
	{"link_to_symlink_out", func(h *house) sys.Errno { return h.fs.Link("/workspace/a.txt", "/workspace/out-dir/new") }, sys.EACCES},
	{"link_of_symlink", func(h *house) sys.Errno { return h.fs.Link("/workspace/out-rel", "/workspace/sub/new") }, sys.EPERM},
	{"symlink_through_symlink_out", func(h *house) sys.Errno { return h.fs.Symlink("x", "/workspace/out-dir/new") }, sys.EACCES},
	{"utimens_symlink_out", func(h *house) sys.Errno { return h.fs.Utimens("/workspace/out-rel", 1, 1) }, sys.EACCES},
	{"chmod_symlink_out", func(h *house) sys.Errno { return h.fs.Chmod("/workspace/out-rel", 0o777) }, sys.EACCES},

	{"guest_symlink_abs", func(h *house) sys.Errno { return h.fs.Symlink(h.path("@/out/secret"), "/workspace/l") }, sys.EPERM},
	{"guest_symlink_abs_granted", func(h *house) sys.Errno { return h.fs.Symlink(h.path("@/ro"), "/workspace/l") }, sys.EPERM},
	{"guest_symlink_out", func(h *house) sys.Errno { return h.fs.Symlink("../out/secret", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_parent", func(h *house) sys.Errno { return h.fs.Symlink("..", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_deep_out", func(h *house) sys.Errno { return h.fs.Symlink("../../../out", "/workspace/sub/deep/l") }, sys.EPERM},
	{"guest_symlink_other_root", func(h *house) sys.Errno { return h.fs.Symlink("../ro/r.txt", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_through_link", func(h *house) sys.Errno { return h.fs.Symlink("self/../../out/secret", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_through_link_once", func(h *house) sys.Errno { return h.fs.Symlink("self/../out/secret", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_zigzag", func(h *house) sys.Errno { return h.fs.Symlink("sub/../../out/secret", "/workspace/l") }, sys.EPERM},
	{"guest_symlink_in_ro", func(h *house) sys.Errno { return h.fs.Symlink("r.txt", h.path("@/ro/l")) }, sys.EACCES},
	{"guest_symlink_from_tmp", func(h *house) sys.Errno { return h.fs.Symlink("../out", "/tmp/l") }, sys.EPERM},
	{"guest_symlink_moved_up", func(h *house) sys.Errno {
		if errno := h.fs.Symlink("../../a.txt", "/workspace/sub/deep/l"); errno != 0 {
			return errno
		}
		h.rec.reset()
		return h.fs.Rename("/workspace/sub/deep/l", "/workspace/l")
	}, sys.EPERM},
	{"guest_symlink_dir_moved_up", func(h *house) sys.Errno {
		if errno := h.fs.Symlink("../../a.txt", "/workspace/sub/deep/l"); errno != 0 {
			return errno
		}
		h.rec.reset()
		return h.fs.Rename("/workspace/sub/deep", "/workspace/deep")
	}, sys.EPERM},

	{"readlink_abs", func(h *house) sys.Errno { return errnoOf(h.fs.Readlink("/workspace/out-abs")) }, sys.EACCES},
	{"readlink_rel", func(h *house) sys.Errno { return errnoOf(h.fs.Readlink("/workspace/out-rel")) }, sys.EACCES},
	{"readlink_outside", func(h *house) sys.Errno { return errnoOf(h.fs.Readlink(h.path("@/out/dir"))) }, sys.EACCES},

	{"readonly_trunc", func(h *house) sys.Errno { return h.put("@/ro/r.txt", "", sys.O_RDONLY|sys.O_TRUNC) }, sys.EACCES},
	{"readonly_trunc_by_link", func(h *house) sys.Errno { return h.put("/workspace/to-ro-abs", "", sys.O_RDONLY|sys.O_TRUNC) }, sys.EACCES},
	{"readonly_write", func(h *house) sys.Errno { return h.put("@/ro/r.txt", "x", sys.O_WRONLY) }, sys.EACCES},
	{"readonly_rdwr", func(h *house) sys.Errno { return h.put("/workspace/to-ro/r.txt", "x", sys.O_RDWR) }, sys.EACCES},
	{"readonly_append", func(h *house) sys.Errno { return h.put("@/ro/r.txt", "x", sys.O_RDONLY|sys.O_APPEND) }, sys.EACCES},
	{"readonly_create", func(h *house) sys.Errno { return h.put("@/ro/new", "x", sys.O_RDONLY|sys.O_CREAT) }, sys.EACCES},
	{"readonly_create_existing", func(h *house) sys.Errno { return h.put("@/ro/r.txt", "x", sys.O_RDONLY|sys.O_CREAT) }, sys.EACCES},
	{"readonly_mkdir", func(h *house) sys.Errno { return h.fs.Mkdir(h.path("@/ro/new"), 0o700) }, sys.EACCES},
	{"readonly_unlink", func(h *house) sys.Errno { return h.fs.Unlink("/workspace/to-ro/r.txt") }, sys.EACCES},
	{"readonly_utimens", func(h *house) sys.Errno { return h.fs.Utimens(h.path("@/ro/r.txt"), 1, 1) }, sys.EACCES},
	{"readonly_chmod", func(h *house) sys.Errno { return h.fs.Chmod(h.path("@/ro/r.txt"), 0o777) }, sys.EACCES},
	{"readonly_rename_out", func(h *house) sys.Errno { return h.fs.Rename(h.path("@/ro/r.txt"), "/workspace/stolen") }, sys.EACCES},
	{"readonly_rename_in", func(h *house) sys.Errno { return h.fs.Rename("/workspace/a.txt", h.path("@/ro/new")) }, sys.EACCES},
	{"readonly_link_out", func(h *house) sys.Errno { return h.fs.Link(h.path("@/ro/r.txt"), "/workspace/new") }, sys.EACCES},
	{"readonly_fd_write", func(h *house) sys.Errno {
		x, errno := h.fs.OpenFile("/workspace/a.txt", sys.O_RDONLY, 0)
		if errno != 0 {
			return errno
		}
		defer x.Close()
		for _, errno := range []sys.Errno{errnoOf(x.Write([]byte("x"))), errnoOf(x.Pwrite([]byte("x"), 0)), x.Truncate(0)} {
			if errno != sys.EBADF {
				return errno
			}
		}
		return x.Utimens(1, 1)
	}, sys.EPERM},
	{"skill_write", func(h *house) sys.Errno { return h.put("/skill/skill.toml", "x", truncating) }, sys.EACCES},

	{"denied_read", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/private/key")) }, sys.EACCES},
	{"denied_stat", func(h *house) sys.Errno { return errnoOf(h.fs.Stat("@/ws/private")) }, sys.EACCES},
	{"denied_by_symlink", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/to-private")) }, sys.EACCES},
	{"denied_by_symlink_dir", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/to-private-dir/key")) }, sys.EACCES},
	{"denied_by_ro_alias", func(h *house) sys.Errno { return errnoOf(h.read("@/ro/to-ws/private/key")) }, sys.EACCES},
	{"denied_rename_itself", func(h *house) sys.Errno { return h.fs.Rename("/workspace/private", "/workspace/public") }, sys.EACCES},
	{"denied_rename_parent", func(h *house) sys.Errno { return h.fs.Rename("/workspace/vault", "/workspace/public") }, sys.EACCES},
	{"denied_rename_onto", func(h *house) sys.Errno { return h.fs.Rename("/workspace/empty", "/workspace/vault") }, sys.EACCES},
	{"denied_rmdir_parent", func(h *house) sys.Errno { return h.fs.Rmdir("/workspace/vault") }, sys.EACCES},
	{"denied_hard_link", func(h *house) sys.Errno { return h.fs.Link("/workspace/private/key", "/workspace/public") }, sys.EACCES},
	{"denied_create_missing", func(h *house) sys.Errno { return h.put("/workspace/absent", "x", creating) }, sys.EACCES},
	{"denied_create_in_other_case", func(h *house) sys.Errno { return h.put("/workspace/ABSENT", "x", creating) }, sys.EACCES},
	{"denied_mkdir_in_other_case", func(h *house) sys.Errno { return h.fs.Mkdir("/workspace/Private", 0o700) }, sys.EACCES},

	{"root_rmdir", func(h *house) sys.Errno { return h.fs.Rmdir("/workspace") }, sys.EACCES},
	{"root_rename", func(h *house) sys.Errno { return h.fs.Rename(h.path("@/ws"), h.path("@/w")) }, sys.EACCES},
	{"root_replace", func(h *house) sys.Errno { return h.fs.Rename("/workspace/empty", h.path("@/ro")) }, sys.EACCES},
	{"tmp_rmdir", func(h *house) sys.Errno { return h.fs.Rmdir("/tmp") }, sys.EACCES},
	{"ancestor_mkdir", func(h *house) sys.Errno { return h.fs.Mkdir(h.path("@/new"), 0o700) }, sys.EACCES},
	{"ancestor_create", func(h *house) sys.Errno { return h.put("@/new", "x", creating) }, sys.EACCES},
	{"ancestor_open_for_writing", func(h *house) sys.Errno { return h.put("@", "x", sys.O_RDWR) }, sys.EACCES},
	{"ancestor_rename", func(h *house) sys.Errno { return h.fs.Rename(h.path("@"), "/workspace/x") }, sys.EACCES},
	{"ancestor_utimens", func(h *house) sys.Errno { return h.fs.Utimens(h.path("@"), 1, 1) }, sys.EACCES},

	{"loop", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/loop")) }, sys.ELOOP},
	{"loop_of_two", func(h *house) sys.Errno { return errnoOf(h.fs.Stat("/workspace/loop1")) }, sys.ELOOP},
	{"nofollow", func(h *house) sys.Errno {
		return errnoOf(h.fs.OpenFile("/workspace/in", sys.O_RDONLY|sys.O_NOFOLLOW, 0))
	}, sys.ELOOP},
	{"excl_on_dangling_link", func(h *house) sys.Errno { return h.put("/workspace/dangling", "x", creating|sys.O_EXCL) }, sys.EEXIST},
	{"file_as_directory", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/a.txt/../sub/b.txt")) }, sys.ENOTDIR},
	{"file_with_slash", func(h *house) sys.Errno { return errnoOf(h.read("/workspace/a.txt/")) }, sys.ENOTDIR},
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			h := newHouse(t, "!read:@/ws/private", "!read:@/ws/vault/deep/key", "!read:@/ws/absent")
			plant(t, h.base, "ws/vault/deep/key", "ws/vault/x")
			guarded := []string{h.base + "/ro", h.base + "/out", h.base + "/ws2", h.base + "/wsx", h.base + "/skill", h.base + "/ws/private", h.base + "/ws/vault"}
			before, fds := state(t, guarded...), openFiles()
			if got := a.do(h); got != a.want {
				t.Errorf("got %v, want %v", got, a.want)
			}
			if h.fs.Close(); openFiles() != fds {
				t.Errorf("%d files are open, and were %d", openFiles(), fds)
			}
			if after := state(t, guarded...); after != before {
				t.Errorf("the host changed:\n%s\nwas:\n%s", after, before)
			}
			if a.want == sys.EACCES && !strings.HasPrefix(a.name, "readlink_") && len(h.rec.denied) == 0 {
				t.Errorf("refused without a record; allowed: %q", h.rec.allowed)
			}
			for _, s := range []string{"w", "new"} {
				if _, err := os.Lstat(h.base + "/" + s); err == nil {
					t.Errorf("%s was made", s)
				}
			}
			if dup := duplicate(h.rec.allowed); dup != "" {
				t.Errorf("recorded twice: %s", dup)
			}
		})
	}
}

// TestSkillIsReadOnly pins that /skill stays so even if the skill's folder is
// in the workspace, as that of one under development is.
func TestSkillIsReadOnly(t *testing.T) {
	h := newHouse(t, "write:@/skill")
	plant(t, h.base, "skill/sub/x")
	before := state(t, h.base+"/skill")
	for what, errno := range map[string]sys.Errno{
		"write": h.put("/skill/skill.toml", "x", sys.O_WRONLY), "create": h.put("/skill/new", "x", creating), "mkdir": h.fs.Mkdir("/skill/sub/d", 0o700),
		"unlink": h.fs.Unlink("/skill/sub/../skill.toml"), "rename": h.fs.Rename("/skill/skill.toml", "/workspace/x"),
		"into": h.fs.Rename("/workspace/a.txt", "/skill/sub/a"), "utimens": h.fs.Utimens("/skill/sub/", 1, 1),
	} {
		if errno != sys.EROFS {
			t.Errorf("%s: %v", what, errno)
		}
	}
	if after := state(t, h.base+"/skill"); after != before {
		t.Errorf("changed:\n%s\nwas:\n%s", after, before)
	}
	if errno := h.put("@/skill/skill.toml", "x", truncating); errno != 0 {
		t.Errorf("by its own name: %v", errno)
	}
}

// openFiles counts the open files of this process where the kernel tells.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func duplicate(s []string) string {
	s = slices.Sorted(slices.Values(s))
	for i := range s {
		if i > 0 && s[i] == s[i-1] {
			return s[i]
		}
	}
	return ""
}

// TestSymlinkBetweenLayers is the attack that the lexical intersection of
// layers falls to: one layer grants the link, another grants what it leads to.
func TestSymlinkBetweenLayers(t *testing.T) {
	for name, layers := range map[string][2][]string{
		"read_symlink_between_layers":  {{"read:@/a"}, {"read:@/b"}},
		"both_grant_link_one_target":   {{"read:@/a", "read:@/b"}, {"read:@/a"}},
		"denied_target_in_other_layer": {{"read:@/a", "read:@/b"}, {"read:@/a", "read:@/b", "!read:@/b/target"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := scratch(t)
			plant(t, base, "a/link -> ../b/target", "b/target")
			rec := new(record)
			f := New(newGrant(t, base, rec, layers[0], layers[1]), noDirs)
			defer f.Close()
			if _, errno := read(f, base+"/a/link"); errno != sys.EACCES {
				t.Errorf("got %v", errno)
			}
			if len(rec.denied) != 1 || len(rec.allowed) != 0 {
				t.Errorf("on record: %+v", rec)
			}
		})
	}
}
