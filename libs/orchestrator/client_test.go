package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func startAPI(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return New(srv.URL+"/api/", srv.Client())
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"detail":"Deployment not found"}`:                                                                                                "Deployment not found",
		`{"detail":[{"loc":["body","limit",0],"msg":"too large"},{"loc":["q"],"msg":"no"}]}`:                                               "body.limit.0: too large; q: no",
		`{"exception_message":"Invalid request received.","exception_detail":[{"loc":["body","name"],"msg":"Field required","input":{}}]}`: "body.name: Field required",
		`{"exception_message":"Service Unavailable"}`:                                                                                      "Service Unavailable",
		`{}`:                     "Conflict",
		``:                       "Conflict",
		`<html>bad gateway`:      "<html>bad gateway",
		strings.Repeat("x", 500): strings.Repeat("x", 200) + "…",
	} {
		c := startAPI(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, body)
		})
		_, err := c.ReadFlowRun(t.Context(), uuid.Nil)
		var e *Error
		if !errors.As(err, &e) || e.Status != http.StatusConflict || e.Detail != want || e.Temporary() {
			t.Errorf("%.60s: %v; want errors.As(err, &e) && e.Status == http.StatusConflict && e.Detail == want && !e.Temporary()", body, err)
		}
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%.60s: %v is taken for another kind; want !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnreachable)", body, err)
		}
	}
	for status, temporary := range map[int]bool{400: false, 404: false, 408: true, 422: false, 429: true, 500: true, 503: true, 302: false} {
		c := startAPI(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := c.ReadFlowRun(t.Context(), uuid.Nil)
		var e *Error
		if !errors.As(err, &e) || e.Temporary() != temporary || errors.Is(err, ErrNotFound) != (status == 404) {
			t.Errorf("%d: %v; want errors.As(err, &e) && e.Temporary() == temporary && errors.Is(err, ErrNotFound) == (status == 404)", status, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	if _, err := New(srv.URL, nil).Version(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody listens: %v; want errors.Is(err, ErrUnreachable)", err)
	}

	c := startAPI(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Health(ctx); !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer in time: %v; want errors.Is(err, ErrUnreachable) && errors.Is(err, context.DeadlineExceeded)", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := c.Health(gone); errors.Is(err, ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("caller left: %v; want !errors.Is(err, ErrUnreachable) && errors.Is(err, context.Canceled)", err)
	}

	cut := startAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"id":`)
	})
	if _, err := cut.ReadFlowRun(t.Context(), uuid.Nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("cut off: %v; want errors.Is(err, ErrUnreachable)", err)
	}
	ill := startAPI(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "false") })
	if err := ill.Health(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("unhealthy: %v; want errors.Is(err, ErrUnreachable)", err)
	}
}

func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	c := startAPI(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	if _, err := c.ReadFlowRun(t.Context(), uuid.Nil); err == nil || !strings.Contains(err.Error(), "is the address right") {
		t.Errorf(`another program answers: %v; want an error && strings.Contains(err.Error(), "is the address right")`, err)
	}
	c = startAPI(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.CopyN(w, spaces{}, maxAnswer+1)
	})
	if _, err := c.ReadFlowRun(t.Context(), uuid.Nil); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxAnswer)) {
		t.Errorf("endless answer: %v; want an error && strings.Contains(err.Error(), fmt.Sprint(maxAnswer))", err)
	}
	hops := startAPI(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	})
	hops.http = New("", nil).http
	var e *Error
	if _, err := hops.ReadFlowRun(t.Context(), uuid.Nil); !errors.As(err, &e) || e.Status != http.StatusFound {
		t.Errorf("redirect: %v; want errors.As(err, &e) && e.Status == http.StatusFound", err)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestEveryCallHasADeadline: a context without one gets DefaultTimeout.
func TestEveryCallHasADeadline(t *testing.T) {
	t.Parallel()
	var left time.Duration
	c := New("http://orchestrator.test/api", &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if d, ok := r.Context().Deadline(); ok {
			left = time.Until(d)
		}
		return nil, errors.New("no network here")
	})})
	if err := c.Health(context.Background()); err == nil {
		t.Fatal("no error")
	}
	if left <= 0 || left > DefaultTimeout {
		t.Fatalf("%v left, want up to %v", left, DefaultTimeout)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzDetail(f *testing.F) {
	f.Add([]byte(`{"detail":[{"loc":["a",1],"msg":"x"}]}`))
	f.Add([]byte(`{"exception_detail":null}`))
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s := errorDetail(body, http.StatusConflict); s == "" {
			t.Errorf(`%q: no reason; want s != ""`, body)
		}
	})
}
