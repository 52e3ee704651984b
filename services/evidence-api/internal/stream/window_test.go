package stream

import (
	"bytes"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/store"
)

// makeBatch builds n events above a sequence, with envelopes of size bytes.
func makeBatch(after int64, n, size int) []store.Event {
	events := make([]store.Event, n)
	for i := range events {
		events[i] = store.Event{Sequence: after + int64(i) + 1, Type: "run.created", Envelope: bytes.Repeat([]byte("x"), size)}
	}
	return events
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := &tailer{low: 100, high: 100, wake: make(chan struct{})}
	check := func(at int64, frames int, history bool) {
		t.Helper()
		got, high, past, _ := w.view(at)
		if len(got) != frames || past != history || high != w.high {
			t.Errorf("after %d: %d frames, high %d, history %v; want %d, %d, %v", at, len(got), high, past, frames, w.high, history)
		}
		if len(got) > 0 && (got[0].Sequence != at+1 || got[len(got)-1].Sequence != high) {
			t.Errorf("after %d: %d to %d; want (len(got) <= 0 || !got[0].Sequence != at+1 || got[len(got)-1].Sequence != high)", at, got[0].Sequence, got[len(got)-1].Sequence)
		}
	}
	check(100, 0, false)
	check(99, 0, true)
	check(105, 0, false) // a stream that opened later than the tailer's last look

	_, _, _, wake := w.view(100)
	w.publish(makeBatch(100, batchSize, 10), 100+batchSize)
	select {
	case <-wake:
	default:
		t.Error("nobody was woken")
	}
	check(100, batchSize, false)
	check(100+batchSize-1, 1, false)

	// The window is full, then moves on.
	w.publish(makeBatch(300, batchSize, 10), 500)
	check(100, windowSize, false)
	held, _, _, _ := w.view(499)
	w.publish(makeBatch(500, 1, 10), 501)
	check(100, 0, true)
	check(101, windowSize, false)
	check(501, 0, false)

	// Streams share encoded events.
	a, _, _, _ := w.view(499)
	if &a[0].text[0] != &held[0].text[0] || a[0].Envelope != nil {
		t.Error("a frame was encoded or kept twice")
	}

	// Bytes bound it too; an event that is too large for it is read from the store.
	w.publish(makeBatch(501, 100, windowBytes/64), 601)
	if w.bytes > windowBytes || len(w.frames) < 60 {
		t.Errorf("%d frames, %d bytes; want w.bytes <= windowBytes && len(w.frames) >= 60", len(w.frames), w.bytes)
	}
	check(601-int64(len(w.frames)), len(w.frames), false)
	check(601-int64(len(w.frames))-1, 0, true)
	w.publish(makeBatch(601, 1, windowBytes+1), 602)
	if len(w.frames) != 0 || w.bytes != 0 {
		t.Errorf("%d frames, %d bytes; want len(w.frames) == 0 && w.bytes == 0", len(w.frames), w.bytes)
	}
	check(601, 0, true)
	check(602, 0, false)
}
