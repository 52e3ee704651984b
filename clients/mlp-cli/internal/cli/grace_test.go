package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// slowServer answers once release is closed; arrived tells that a request is there.
func slowServer(t *testing.T, contentType string) (url string, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		arrived <- struct{}{}
		if contentType == "text/event-stream" {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, arrived, release
}

func TestInterruptedChangeGetsItsAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		method      string
		grace       time.Duration
		answers     bool // the server answers after the interrupt
		wantErr     error
		wantContent string
	}{
		"a change is answered":       {http.MethodPost, time.Minute, true, nil, "done"},
		"a change without an answer": {http.MethodPost, time.Millisecond, false, context.Canceled, ""},
		"a question ends at once":    {http.MethodGet, time.Minute, false, context.Canceled, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, arrived, release := slowServer(t, "text/plain")
			ctx, interrupt := context.WithCancel(t.Context())
			go func() {
				<-arrived
				interrupt()
				if c.answers {
					close(release)
				}
			}()
			req, err := http.NewRequestWithContext(ctx, c.method, url, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: graceTransport{&http.Transport{DisableKeepAlives: true}, c.grace}}
			content := ""
			resp, err := client.Do(req)
			if err == nil {
				defer resp.Body.Close()
				b, readErr := io.ReadAll(resp.Body)
				content, err = string(b), readErr
			}
			if !errors.Is(err, c.wantErr) || content != c.wantContent {
				t.Errorf("got %q, %v, want %q, %v", content, err, c.wantContent, c.wantErr)
			}
		})
	}
}

// A stream that somebody leaves ends there and then, and a deadline is one.
func TestGraceIsForAnswersAlone(t *testing.T) {
	t.Parallel()
	t.Run("a stream", func(t *testing.T) {
		t.Parallel()
		url, arrived, _ := slowServer(t, "text/event-stream")
		go func() { <-arrived }()
		ctx, interrupt := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: graceTransport{&http.Transport{DisableKeepAlives: true}, time.Hour}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		interrupt()
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("got the end of the stream, want an error: it was cut off")
		}
	})
	t.Run("a deadline", func(t *testing.T) {
		t.Parallel()
		url, arrived, _ := slowServer(t, "text/plain")
		go func() { <-arrived }()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: graceTransport{&http.Transport{DisableKeepAlives: true}, time.Hour}}).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	})
}
