// Skill is a host for tools that AI agents call over MCP: foreign code, each
// call in a cage, under a manifest and the operator's policy, on record.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/cmd/skill/view"
	"github.com/skillhost/skill/sdk"
)

func main() {
	ignoreSignals()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := root()
	err := c.ExecuteContext(ctx)
	stop()
	if err != nil {
		complain(c, err)
		os.Exit(exitCode(err))
	}
}

// complain says what went wrong on standard error, in JSON if that was asked
// for.
func complain(c *cobra.Command, err error) {
	if errors.Is(err, errShown) {
		return
	}
	asJSON, _ := c.PersistentFlags().GetBool("json")  // the flag is there
	if asJSON || slices.Contains(os.Args, "--json") { // a bad flag may stand before it
		if view.JSON(c.ErrOrStderr(), view.NewError(err)) == nil {
			return
		}
	}
	fmt.Fprintln(c.ErrOrStderr(), "skill:", err)
}

// errShown is the error of a command that has said everything itself.
var errShown = errors.New("")

// exitCode maps an error to the process's exit status (docs/errors.md).
func exitCode(err error) int {
	switch sdk.KindOf(err) {
	case sdk.Invalid, sdk.NotFound:
		return 2
	case sdk.Denied:
		return 3
	case sdk.Limit:
		return 4
	case sdk.Canceled:
		return 130
	}
	return 1
}
