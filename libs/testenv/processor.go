package testenv

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is how long do used a processor, without what it waited for one: what a bound on cost compares, since
// a machine that is busy makes everything wait. do must not start goroutines.
func ProcessorTime(t testing.TB, do func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	start := used()
	do()
	return used() - start
}
