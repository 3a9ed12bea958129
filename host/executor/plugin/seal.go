package plugin

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/skillhost/skill/host/manifest"
	"github.com/skillhost/skill/sdk"
)

// maxProgram bounds a plugin's file, in bytes: it is kept in memory.
const maxProgram = 512 << 20

// seal returns a copy of the program of s that nobody can change any more: what
// runs is what the digest covers, whatever becomes of the skill's folder.
func seal(s *manifest.Skill) (*os.File, error) {
	if s.Home.Files == nil {
		return nil, invalid(s, "the skill has no files", "")
	}
	from, err := s.Home.Files.Open(s.Source)
	if err != nil {
		kind := sdk.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = sdk.Invalid
		}
		return nil, &sdk.Error{Kind: kind, Op: "plugin.Load", What: "the plugin's program", Err: err}
	}
	defer from.Close()
	to, err := memory(s.Name)
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "plugin.Load", What: "a place for the plugin's program", Err: err}
	}
	n, err := io.Copy(to, io.LimitReader(from, maxProgram+1))
	switch {
	case err != nil:
		err = &sdk.Error{Kind: sdk.Unavailable, Op: "plugin.Load", What: "the plugin's program cannot be read", Err: err}
	case n > maxProgram:
		err = invalid(s, "the program is too large", "at most 512 MiB")
	default:
		if err = freeze(to); err == nil {
			return to, nil
		}
		err = &sdk.Error{Kind: sdk.Internal, Op: "plugin.Load", What: "the plugin's program cannot be sealed", Err: err}
	}
	return nil, errors.Join(err, forget(to))
}
