//go:build race

package plugin

const raced = true
