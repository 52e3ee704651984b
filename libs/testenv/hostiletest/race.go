//go:build race

package hostiletest

// Race reports whether the race detector is on, which takes several times the memory and the
// time.
const Race = true
