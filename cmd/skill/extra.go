//go:build !bench

package main

import "github.com/skillhost/skill/host"

// extra is what a build adds to the product: nothing, but in the benchmark's.
func extra() host.Extra { return host.Extra{} }
