package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
)

// respond is the response of a client call to a service that sends status, header and body.
func respond(status int, header http.Header, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(body),
		Request: &http.Request{URL: &url.URL{Path: "/runs"}},
	}
}

func TestDecodeBody(t *testing.T) {
	t.Parallel()
	type run struct {
		ID string `json:"id"`
	}
	got, err := wire.Decode[[]run](respond(http.StatusCreated, nil, strings.NewReader(`[{"id": "a"}]`)), nil)
	if err != nil || len(got) != 1 || got[0].ID != "a" {
		t.Errorf("Decode = %v, %v; want one run with id a", got, err)
	}
}

func TestDecodeKeepsRetryAfter(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	kind := problem.RateLimited
	if err := kind.New("Wait a little.").After(7*time.Second).Write(rec, httptest.NewRequest(http.MethodGet, "/runs", nil)); err != nil {
		t.Fatal(err)
	}
	resp := rec.Result()
	resp.Request = &http.Request{URL: &url.URL{Path: "/runs"}}
	_, err := wire.Decode[[]string](resp, nil)
	var got *problem.Error
	if !errors.As(err, &got) || got.Kind != kind || got.RetryAfter != 7*time.Second {
		t.Errorf("Decode error = %#v, want problem %v with Retry-After 7s", err, kind)
	}
}

func TestDecodeRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"html":     strings.NewReader("<html>"),
		"too long": io.MultiReader(strings.NewReader(`"`), strings.NewReader(strings.Repeat("a", wire.MaxBody)), strings.NewReader(`"`)),
	} {
		if _, err := wire.Decode[string](respond(http.StatusOK, nil, body), nil); !errors.Is(err, wire.ErrUnreadable) {
			t.Errorf("%s: error = %v, want %v", name, err, wire.ErrUnreadable)
		}
	}
}

func TestDecodePassesTransportErrors(t *testing.T) {
	t.Parallel()
	if _, err := wire.Decode[string](nil, io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error = %v, want %v", err, io.ErrUnexpectedEOF)
	}
}
