package admission_test

import (
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
)

// enterSlot takes a slot and fails unless the result is as wanted.
func enterSlot(t *testing.T, c *admission.Control, want admission.Refusal) admission.Slot {
	t.Helper()
	s, got := c.Enter()
	if got != want {
		t.Fatalf("refusal %d, want %d", got, want)
	}
	return s
}

func swapSlot(t *testing.T, s *admission.Slot, want admission.Refusal) {
	t.Helper()
	if got := s.ToStream(); got != want {
		t.Fatalf("refusal %d, want %d", got, want)
	}
}

func isIdle(c *admission.Control) bool {
	select {
	case <-c.Idle():
		return true
	default:
		return false
	}
}

// TestBounds takes both kinds of slot to their bound and one past it, at the smallest, the usual and the largest
// numbers.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{1, 1}, {16, 8}, {1024, 64}} {
		c := admission.New(size[0], size[1])
		var streams, requests []admission.Slot
		for range size[1] {
			s := enterSlot(t, c, admission.None)
			swapSlot(t, &s, admission.None)
			streams = append(streams, s)
		}
		// Streams take nothing from requests.
		for range size[0] {
			requests = append(requests, enterSlot(t, c, admission.None))
		}
		enterSlot(t, c, admission.Overloaded)
		want := admission.Stats{Requests: size[0], MaxRequests: size[0], Streams: size[1], MaxStreams: size[1], Overloaded: 1}
		if got := c.Stats(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		// One stream too many keeps its request slot for the answer.
		swapSlot(t, &requests[0], admission.TooManyStreams)
		enterSlot(t, c, admission.Overloaded)
		streams[0].Release()
		swapSlot(t, &requests[0], admission.None)
		last := enterSlot(t, c, admission.None)
		for _, s := range append(append(streams, requests...), last) {
			s.Release()
			s.Release() // does nothing
		}
		want = admission.Stats{MaxRequests: size[0], MaxStreams: size[1], Overloaded: 3}
		if got := c.Stats(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	c := admission.New(2, 1)
	a, b := enterSlot(t, c, admission.None), enterSlot(t, c, admission.None)
	swapSlot(t, &b, admission.None)
	c.Drain()
	c.Drain()
	enterSlot(t, c, admission.Draining)
	swapSlot(t, &a, admission.Draining)
	if isIdle(c) {
		t.Error("idle with a request and a stream")
	}
	a.Release()
	if isIdle(c) {
		t.Error("idle with a stream")
	}
	b.Release()
	if !isIdle(c) {
		t.Error("not idle")
	}
	enterSlot(t, c, admission.Draining)
	want := admission.Stats{MaxRequests: 2, MaxStreams: 1, Drained: 3, Draining: true}
	if got := c.Stats(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFullAndDraining: the drain is the reason.
func TestFullAndDraining(t *testing.T) {
	t.Parallel()
	c := admission.New(1, 1)
	a := enterSlot(t, c, admission.None)
	swapSlot(t, &a, admission.None)
	b := enterSlot(t, c, admission.None)
	c.Drain()
	enterSlot(t, c, admission.Draining)
	swapSlot(t, &b, admission.Draining)
	if got := c.Stats(); got.Overloaded != 0 || got.Drained != 2 {
		t.Errorf("%+v; want got.Overloaded == 0 && got.Drained == 2", got)
	}
}

func TestDrainOfAnIdleServer(t *testing.T) {
	t.Parallel()
	c := admission.New(1, 1)
	if isIdle(c) {
		t.Error("idle without a drain")
	}
	var none admission.Slot // of /healthz
	none.Release()
	c.Drain()
	if !isIdle(c) {
		t.Error("not idle")
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	c := admission.New(4, 2)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 500 {
				s, refusal := c.Enter()
				if refusal == admission.None {
					_ = s.ToStream()
				}
				if got := c.Stats(); got.Requests > 4 || got.Streams > 2 || got.Requests < 0 || got.Streams < 0 {
					t.Errorf("%+v; want got.Requests <= 4 && got.Streams <= 2 && got.Requests >= 0 && got.Streams >= 0", got)
				}
				s.Release()
			}
		})
	}
	wg.Wait()
	if got := c.Stats(); got.Requests != 0 || got.Streams != 0 {
		t.Errorf("%+v; want got.Requests == 0 && got.Streams == 0", got)
	}
}
