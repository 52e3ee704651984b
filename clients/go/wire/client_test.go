package wire_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mlp-platform/platform/clients/go/wire"
)

// sent is a request as a server saw it.
type sent struct{ Method, URI, Header, ContentType, Body string }

// send sends a call through a client with the base path /base and returns what arrived.
func send(t *testing.T, call wire.Call, editors ...wire.Editor) sent {
	t.Helper()
	var got sent
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = sent{r.Method, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), string(body)}
	}))
	defer srv.Close()
	c, err := wire.NewClient(srv.URL+"/base/", wire.WithHTTPClient(srv.Client()))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Send(t.Context(), call, editors...)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return got
}

func TestSendPutsParametersWhereTheyBelong(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	limit, key := 5, "k 1"
	params := &struct {
		Limit  *int       `form:"limit,omitempty" json:"limit,omitempty"`
		Cursor *string    `form:"cursor,omitempty" json:"cursor,omitempty"`
		Since  *time.Time `form:"since,omitempty" json:"since,omitempty"`
		Alias  []string   `form:"alias,omitempty" json:"alias,omitempty"`
		Key    *string    `json:"Idempotency-Key,omitempty"`
	}{Limit: &limit, Since: &since, Alias: []string{"a", "b&c"}, Key: &key}
	got := send(t, wire.Call{Method: http.MethodPost, Path: "/runs", Params: params, Body: map[string]int{"n": 1}})
	want := sent{"POST", "/base/runs?alias=a&alias=b%26c&limit=5&since=2026-11-22T10%3A00%3A00Z", "k 1", "application/json", `{"n":1}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestSendWithoutParametersOrBody(t *testing.T) {
	t.Parallel()
	type listParams struct {
		Limit *int `form:"limit,omitempty" json:"limit,omitempty"`
	}
	got := send(t, wire.Call{Method: http.MethodGet, Path: "/runs", Params: (*listParams)(nil)})
	if diff := cmp.Diff(sent{Method: "GET", URI: "/base/runs"}, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestSendAppliesEditors(t *testing.T) {
	t.Parallel()
	got := send(t, wire.Call{Method: http.MethodGet, Path: "/runs"}, func(_ context.Context, req *http.Request) error {
		req.Header.Set("Idempotency-Key", "edited")
		return nil
	})
	if got.Header != "edited" {
		t.Errorf("header = %q, want %q", got.Header, "edited")
	}
}

func TestPathParametersStayInTheirSegment(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("01930000-0000-7000-8000-000000000001")
	for _, c := range []struct {
		param any
		want  string
	}{
		{"JPCP", "/models/JPCP/meta"}, {"a/b?c#d", "/models/a%2Fb%3Fc%23d/meta"}, {"..", "/models/%2E%2E/meta"},
		{"%2f", "/models/%252f/meta"}, {id, "/models/" + id.String() + "/meta"}, {7, "/models/7/meta"},
	} {
		if got := wire.Path("/models/%s/meta", c.param); got != c.want {
			t.Errorf("Path(%v) = %q, want %q", c.param, got, c.want)
		}
	}
}
