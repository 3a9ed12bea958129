//go:build !race

package view

const sparse = 1
