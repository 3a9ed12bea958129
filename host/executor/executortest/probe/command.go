//go:build !plugin && (!skill1 || !wasip1)

package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// main is a command: arguments on stdin, the result on stdout.
func main() {
	var t task
	if err := json.NewDecoder(os.Stdin).Decode(&t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Print(perform(t))
}

// imports has nothing: a command has no operations to ask for.
func imports(string, []string) (string, bool) { return "", false }
