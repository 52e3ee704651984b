//go:build !race

package hostiletest

// Race reports whether the race detector is on.
const Race = false
