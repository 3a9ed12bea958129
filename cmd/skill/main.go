// Skill is a host for tools that AI agents call over MCP: foreign code, each
// call in a cage, under a manifest and the operator's policy, on record.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/skillhost/skill/sdk"
)

func main() {
	ignoreSignals()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, errShown) {
			fmt.Fprintln(os.Stderr, "skill:", err)
		}
		os.Exit(exitCode(err))
	}
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
