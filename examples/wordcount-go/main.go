// Wordcount is a skill in plain Go without any SDK: under the ABI command/1 a
// module is a program that reads the call's arguments, a JSON object, from
// stdin and writes its result to stdout (docs/abi.md). Whatever goes wrong is
// said on stderr, with an exit status that is not 0.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
	"unicode/utf8"
)

func main() {
	log.SetFlags(0)
	var in struct {
		Text string `json:"text"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	lines := strings.Count(in.Text, "\n")
	if in.Text != "" && !strings.HasSuffix(in.Text, "\n") {
		lines++
	}
	err := json.NewEncoder(os.Stdout).Encode(map[string]int{
		"words":      len(strings.Fields(in.Text)),
		"lines":      lines,
		"characters": utf8.RuneCountInString(in.Text),
	})
	if err != nil {
		log.Fatal(err)
	}
}
