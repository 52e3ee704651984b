package controltower

import (
	"context"
	"time"
)

// Pause is the wait that a policy requires.
func Pause(p RetryPolicy, attempt int, err error, jitter float64) (time.Duration, bool) {
	return p.pause(attempt, err, jitter)
}

// Sleep waits as a client does.
func Sleep(ctx context.Context, d time.Duration) error { return sleepFor(ctx, d) }

// Blocks reads a stream that arrives in these chunks, and returns the content of
// each block up to the first fault.
func Blocks(bound int, chunks ...[]byte) (out []string) {
	f := frames{max: bound}
	first := true
	for _, chunk := range chunks {
		f.push(chunk)
		for {
			text, ok, err := f.next()
			if err == nil && !ok {
				break
			}
			var b block
			if err == nil {
				b, err = parseBlock(text, first)
			}
			switch {
			case err != nil:
				return append(out, "fault")
			case b.event != nil:
				out = append(out, b.event.event+"\x00"+b.event.data)
			default:
				out = append(out, "end "+b.end)
			}
			first = false
		}
	}
	return out
}
