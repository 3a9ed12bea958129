package native

import (
	"golang.org/x/sys/unix"

	"github.com/skillhost/skill/host/capability"
)

// addHeld adds what is at the paths that layers deny. A cage keeps its process
// from what was there when it was made: a file that was made or put into the
// place of another since is a reason for another process. What is written into
// a file is none.
func (t *text) addHeld(layers []capability.Layer) {
	for i := range layers {
		for j := range layers[i].Deny {
			c := &layers[i].Deny[j]
			if c.Kind != capability.Filesystem || c.Pattern == "" || c.Pattern[0] != '/' {
				continue
			}
			t.addInode(c.Pattern, unix.AT_SYMLINK_NOFOLLOW)
		}
	}
}

func (t *text) addInode(path string, flags int) {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, flags|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_BTIME|unix.STATX_CTIME, &st) != nil {
		t.count(0)
		return
	}
	since := st.Btime // numbers of inodes are used again
	if st.Mask&unix.STATX_BTIME == 0 {
		since = st.Ctime
	}
	t.count(1, int64(st.Dev_major), int64(st.Dev_minor), int64(st.Ino), since.Sec, int64(since.Nsec))
	if st.Mode&unix.S_IFMT == unix.S_IFLNK && flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		t.addInode(path, 0)
	}
}
