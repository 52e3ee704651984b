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

// slowServer answers once release is closed; arrived signals that a request has arrived.
func slowServer(t *testing.T) (url string, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		arrived <- struct{}{}
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
		key         string
		grace       time.Duration
		answers     bool // the server answers after the interrupt
		wantErr     error
		wantContent string
	}{
		"a change is answered":       {"a-key", time.Hour, true, nil, "done"},
		"a change without an answer": {"a-key", time.Millisecond, false, context.Canceled, ""},
		"all else ends at once":      {"", time.Hour, false, context.Canceled, ""}, // the test would not end
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, arrived, release := slowServer(t)
			ctx, interrupt := context.WithCancel(t.Context())
			go func() {
				<-arrived
				interrupt()
				if c.answers {
					close(release)
				}
			}()
			content := ""
			resp, err := send(ctx, t, url, c.key, c.grace)
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

// A deadline is kept: it is not the interrupt of a person.
func TestGraceKeepsDeadlines(t *testing.T) {
	t.Parallel()
	url, arrived, _ := slowServer(t)
	go func() { <-arrived }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	resp, err := send(ctx, t, url, "a-key", time.Hour)
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

func send(ctx context.Context, t *testing.T, url, key string, grace time.Duration) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return (&http.Client{Transport: graceTransport{&http.Transport{DisableKeepAlives: true}, grace}}).Do(req)
}
