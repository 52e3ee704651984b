package sse_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mlp-platform/platform/libs/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWriterOverHTTP(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.Send([]byte("id: 1\ndata: x\n\n")); err != nil {
			t.Error(err)
		}
		<-next // the client has the first event before the second is sent
		if err := s.Send([]byte("data: 2\n\ndata: 3\n\n")); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for name, want := range map[string]string{"Content-Type": sse.ContentType, "X-Accel-Buffering": "no", "Cache-Control": "no-cache"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	body := bufio.NewReader(resp.Body)
	first := make([]byte, len("id: 1\ndata: x\n\n"))
	_, err = io.ReadFull(body, first)
	close(next)
	if got, want := string(first), "id: 1\ndata: x\n\n"; err != nil || got != want {
		t.Errorf("first event %q, %v; want %q", got, err, want)
	}
	rest, err := io.ReadAll(body)
	if got, want := string(rest), "data: 2\n\ndata: 3\n\n"; err != nil || got != want {
		t.Errorf("the rest is %q, %v; want %q", got, err, want)
	}
}

// A client that stops reading loses its stream at the write deadline.
func TestWriterGivesUpOnStuckReader(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, 50*time.Millisecond)
		for err == nil {
			err = s.Send(make([]byte, 256<<10))
		}
		ended <- err
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still writing")
	}
}

func TestWriterNeedsDeadlines(t *testing.T) {
	t.Parallel()
	if _, err := sse.NewWriter(httptest.NewRecorder(), 0); err == nil {
		t.Error("took a writer without deadlines")
	}
}

// Hasten ends a write that waits already, however long its time was.
func TestHastenEndsAWaitingWrite(t *testing.T) {
	t.Parallel()
	began, ended := make(chan *sse.Writer, 1), make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, time.Hour)
		began <- s
		for err == nil {
			err = s.Send(make([]byte, 256<<10))
		}
		ended <- err
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	(<-began).Hasten(50 * time.Millisecond)
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the write ended with %v, want a deadline", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still writing")
	}
}

// A deadline is not set again for each of many writes, yet none is cut off while the client reads.
func TestManyWritesOutliveTheTimeout(t *testing.T) {
	t.Parallel()
	const timeout, span = 600 * time.Millisecond, 1500 * time.Millisecond // a busy machine pauses for 100 ms
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, timeout)
		for began := time.Now(); err == nil && time.Since(began) < span; {
			err = s.Send([]byte("data: x\n\n"))
		}
		if err != nil {
			t.Errorf("a write failed: %v; want nil", err)
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}
