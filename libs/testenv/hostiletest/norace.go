//go:build !race

package hostiletest

// Race says that the race detector is on.
const Race = false
