package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// idleChecks is the number of checks of a process within the idle limit.
const idleChecks = 20

// watched is a source whose reads count as work: the process waits for them.
type watched struct {
	Source
	reading atomic.Bool
}

// ReadFile implements Source. One goroutine at a time calls it.
func (w *watched) ReadFile(name string, limit int64) ([]byte, error) {
	w.reading.Store(true)
	defer w.reading.Store(false)
	return w.Source.ReadFile(name, limit)
}

// awaitIdle returns true once the process has used no processor time for the limit, and false if ctx ends before. On a
// machine under load, a process that waits for a processor gets one from time to time; one that waits for something
// else does not.
func (w *watched) awaitIdle(ctx context.Context, pid int, limit time.Duration) bool {
	tick := time.NewTicker(max(limit/idleChecks, time.Millisecond))
	defer tick.Stop()
	last, since := "", time.Now()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		used, err := processTime(pid)
		switch now := time.Now(); {
		case err != nil, used != last, w.reading.Load(): // a process that has ended is not idle
			last, since = used, now
		case now.Sub(since) >= limit:
			return true
		}
	}
}

// processTime returns the processor time that the process has used, user and system, in clock ticks.
func processTime(pid int) (string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The name in brackets may hold anything; the times are the 12th and 13th field after it.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 13 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	return string(fields[11]) + " " + string(fields[12]), nil
}
