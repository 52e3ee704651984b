package testenv

import (
	"testing/synctest"
	"time"
)

// Advance lets d of a synctest bubble's fake clock pass, and waits until what that set in motion is idle. It must be
// called in a bubble, by the test's own goroutine; outside one it panics.
func Advance(d time.Duration) {
	time.Sleep(d) // of the bubble's clock: no real time passes
	synctest.Wait()
}
