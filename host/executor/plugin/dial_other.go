//go:build !linux

package plugin

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// dial connects to the socket name in the directory dir, which only the process
// and the host's user can write to.
func dial(ctx context.Context, dir, name string, pid int) (net.Conn, error) {
	at := filepath.Join(dir, name)
	info, err := os.Lstat(at)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%q is not a socket", name)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", at)
	if err != nil {
		return nil, err
	}
	if err := isPeer(conn.(*net.UnixConn), pid); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
