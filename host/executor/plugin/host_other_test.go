//go:build unix && !linux

package plugin

func beHost() {}
