package limit

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_764_000_000, 0)
	r := NewRate(60, 3, func() time.Time { return now })
	for range 3 {
		if w := r.Take("a"); w != 0 {
			t.Fatalf("wait %s within the burst; want 0", w)
		}
	}
	if w := r.Take("a"); w != time.Second {
		t.Errorf("wait %s, want 1s", w)
	}
	if w := r.Take("b"); w != 0 {
		t.Errorf("another key waits %s; want 0", w)
	}
	now = now.Add(time.Second)
	if w := r.Take("a"); w != 0 {
		t.Errorf("wait %s after a second; want 0", w)
	}
	if w := r.Take("a"); w <= 0 {
		t.Error("two requests passed in one second")
	}
	now = now.Add(time.Hour)
	for i := range 4 {
		if w := r.Take("a"); (w == 0) != (i < 3) {
			t.Errorf("request %d after an hour waits %s; want (w == 0) == (i < 3)", i, w)
		}
	}
}

func TestNoRate(t *testing.T) {
	t.Parallel()
	r := NewRate(0, 1, time.Now)
	for range 1000 {
		if w := r.Take("a"); w != 0 {
			t.Fatal(w, "want 0")
		}
	}
}

// However many keys there are, memory is bounded; a key in regular use keeps its bucket.
func TestRateForgetsTheIdle(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_764_000_000, 0)
	r := NewRate(1, 1, func() time.Time { return now })
	if r.Take("busy") != 0 {
		t.Fatal("first request waits")
	}
	for i := range 3 * maxKeys {
		r.Take(strconv.Itoa(i))
		if i%1000 == 0 && r.Take("busy") == 0 {
			t.Fatalf(`bucket lost after %d keys; want (i %% 1000 != 0 || r.Take("busy") != 0)`, i)
		}
	}
	if n := len(r.recent) + len(r.former); n > 2*maxKeys {
		t.Errorf("%d buckets; want n <= 2 * maxKeys", n)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	s := NewSlots(2)
	one, ok := s.Take("a")
	if !ok {
		t.Fatal("no slot")
	}
	if _, ok := s.Take("a"); !ok {
		t.Fatal("no second slot")
	}
	if _, ok := s.Take("a"); ok {
		t.Fatal("a third slot")
	}
	if !s.Full("a") || s.Full("b") || s.Most() != 2 {
		t.Fatal("it does not know what it holds")
	}
	if _, ok := s.Take("b"); !ok {
		t.Fatal("keys share slots")
	}
	one()
	if _, ok := s.Take("a"); !ok {
		t.Fatal("a slot given back is lost")
	}
}

func TestSlotsAtOnce(t *testing.T) {
	t.Parallel()
	s := NewSlots(5)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 100 {
				if release, ok := s.Take("a"); ok {
					release()
				}
			}
		})
	}
	wg.Wait()
	if len(s.held) != 0 {
		t.Errorf("left: %v; want len(s.held) == 0", s.held)
	}
}
