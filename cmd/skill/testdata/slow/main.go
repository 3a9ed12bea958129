// Slow is a guest that takes its time: it sleeps, or it spins without a single
// call of the host.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
)

func main() {
	log.SetFlags(0)
	var in struct {
		Spin bool `json:"spin"`
		Ms   int  `json:"ms"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	for n := uint(0); in.Spin; n++ {
		if n == 0 {
			n = 1
		}
	}
	time.Sleep(time.Duration(in.Ms) * time.Millisecond)
	fmt.Println(`{"slept":true}`)
}
