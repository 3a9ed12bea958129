//go:build !linux

package browser

import "os"

// A process is a browser, which there is no cage for on this system.
type process struct{ in, out *os.File }

func start(string, string) (*process, error) {
	return nil, failed("there is no cage for a browser on this system", nil)
}

func (*process) kill()        {}
func (*process) wait()        {}
func (*process) said() string { return "" }
func (*process) pss() int64   { return 0 }
