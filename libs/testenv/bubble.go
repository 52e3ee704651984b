package testenv

import (
	"testing/synctest"
	"time"
)

// Advance advances a synctest bubble's fake clock by d, and waits until the bubble is idle. It must be called in a
// bubble, by the test's own goroutine; outside one it panics.
func Advance(d time.Duration) {
	time.Sleep(d) // of the bubble's clock: no real time passes
	synctest.Wait()
}
