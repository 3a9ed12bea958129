// Conformance-plain answers every tool with the arguments that it was called
// with. It speaks command/1, whose manifest alone describes the tools: their
// schemas are the suite's, to the letter.
package main

import (
	"io"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	args, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("called with: " + string(args) + "\n"); err != nil {
		log.Fatal(err)
	}
}
