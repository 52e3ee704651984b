//go:build e2e

package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// frame is one event of the stream.
type frame struct {
	id, event string
	data      map[string]any
}

// eventStream is an open stream.
type eventStream struct {
	frames chan frame // closed at its end
	stop   context.CancelFunc
}

// openStream opens the event stream after the event lastID, which may be empty.
func (w *world) openStream(t *testing.T, dashboard string, c who, lastID string) (s *eventStream) {
	t.Helper()
	// A new replica is ready before it is connected to the broker; browsers retry, too.
	harness.Eventually(t, 30*time.Second, func() error {
		var status int
		if s, status = w.tryStream(t, dashboard, c, lastID); s == nil && status != http.StatusServiceUnavailable {
			t.Fatalf("the event stream answers %d, want 200", status)
		}
		if s == nil {
			return errors.New("the event stream answers 503, want 200")
		}
		return nil
	})
	return s
}

// tryStream returns nil and the status if there is no stream.
func (w *world) tryStream(t *testing.T, dashboard string, c who, lastID string) (*eventStream, int) {
	t.Helper()
	req, err := newRequest(http.MethodGet, dashboard+"/api/v1/stream", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	ctx, stop := context.WithCancel(t.Context())
	resp, err := (&http.Client{Transport: wire, Jar: c.jar}).Do(req.WithContext(ctx))
	if err != nil {
		stop()
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		stop()
		resp.Body.Close()
		return nil, resp.StatusCode
	}
	s := &eventStream{frames: make(chan frame, 4096), stop: stop}
	go func() {
		defer close(s.frames)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		var f frame
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				f.id = value
			case "event":
				f.event = value
			case "data":
				_ = json.Unmarshal([]byte(value), &f.data)
			case "":
				if lines.Text() == "" && f.event != "" {
					select {
					case s.frames <- f:
					case <-ctx.Done():
						return
					}
				}
				if lines.Text() == "" {
					f = frame{}
				}
			}
		}
	}()
	t.Cleanup(stop)
	return s, resp.StatusCode
}

// frameLimit limits the wait for a frame.
const frameLimit = 30 * time.Second

// next waits for an event of this name and skips others.
func (s *eventStream) next(t *testing.T, name string) frame {
	t.Helper()
	return s.nextThat(t, name, func(f frame) bool { return f.event == name })
}

// nextThat waits for the event that matches and skips others.
func (s *eventStream) nextThat(t *testing.T, what string, matches func(frame) bool) frame {
	t.Helper()
	limit := time.After(frameLimit)
	for {
		select {
		case f, open := <-s.frames:
			if !open {
				t.Fatalf("the stream ended before %s", what)
			}
			if matches(f) {
				return f
			}
		case <-limit:
			t.Fatalf("no %s within %s", what, frameLimit)
		}
	}
}
