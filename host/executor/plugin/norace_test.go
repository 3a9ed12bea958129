//go:build !race

package plugin

const raced = false
