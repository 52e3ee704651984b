package direct

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(t *testing.T, ctx context.Context, link *Link) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost:18001/predict/a%2Fb?x=1", strings.NewReader("rows"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := (&http.Client{Transport: link}).Do(req)
	if got := req.Header.Get("X-Changed"); got != "" {
		t.Errorf("the caller's header was changed to %q; want it as it was", got)
	}
	return resp, err
}

func TestHandlerGetsTheRequestAndItsAnswerComesBack(t *testing.T) {
	t.Parallel()
	link := &Link{}
	link.Attach(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		got := strings.Join([]string{r.Method, r.Host, r.URL.Path, r.URL.RawPath, r.RequestURI, r.Header.Get("Authorization"), string(body)}, " ")
		if want := "POST localhost:18001 /predict/a/b /predict/a%2Fb /predict/a%2Fb?x=1 Bearer secret rows"; got != want || err != nil {
			t.Errorf("the handler got %q (%v); want %q", got, err, want)
		}
		r.Header.Set("X-Changed", "yes")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "later")
	}))
	resp, err := post(t, t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || string(body) != "later" {
		t.Errorf("got %d %v %q (%v); want 503, Retry-After 1, later", resp.StatusCode, resp.Header, body, err)
	}
}

func TestNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		handler http.HandlerFunc
		want    error
	}{
		{"not attached", t.Context(), nil, errNotAttached},
		{"aborted", t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, io.ErrUnexpectedEOF},
		{"given up before", ended, func(http.ResponseWriter, *http.Request) {}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			link := &Link{}
			if c.handler != nil {
				link.Attach(c.handler)
			}
			resp, err := post(t, c.ctx, link)
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("got %v; want %v", err, c.want)
			}
		})
	}
}
