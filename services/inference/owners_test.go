package inference_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/service"
	inference "github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
)

// A model's records belong to its owner: to another tenant each read answers the same, to the byte, whether there were
// requests or not.
func TestAnotherTenantFindsAndChangesNothing(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("tagged", "Production", reg.Register("tagged", tagged(t, 0), nil))
	owners := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"items":[{"model":"OTHERS","tenant":"other"}],"next_cursor":null}`))
	}))
	t.Cleanup(owners.Close)
	credentials, _ := json.Marshal(map[string]any{
		"secret-of-the-owner-123": map[string]any{"principal": "ada", "tenant": "default", "scopes": []string{"admin"}},
		"secret-of-a-stranger-12": map[string]any{"principal": "eve", "tenant": "other", "scopes": []string{"admin"}},
	})
	i := start(t, reg, func(cfg *inference.Config) {
		cfg.Credentials, cfg.ControlPlaneURL = service.Secret(credentials), owners.URL
	})
	as := func(bearer, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, i.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+bearer)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Request-ID", "same")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	const owner, stranger = "secret-of-the-owner-123", "secret-of-a-stranger-12"
	reads := []string{
		"/series/tagged?metric=prediction_mean&step=1", "/series/tagged?metric=requests", "/drift/status", "/drift/status?model=tagged", "/drift/input/status",
		"/drift/input/tagged/report", "/traffic-rules", "/traffic-rules/tagged", "/shadow-rules", "/shadow-rules/tagged",
	}
	before := map[string]string{}
	for _, path := range reads {
		status, body := as(stranger, "GET", path, "")
		if before[path] = body; strings.Contains(path, "/tagged") && status != 404 {
			t.Errorf("%s: got %d %s, want 404", path, status, body)
		}
	}
	for _, w := range []struct{ method, path, body string }{
		{"PUT", "/traffic-rules/tagged", `{"Production":50,"Canary":50}`}, {"DELETE", "/traffic-rules/tagged", ""},
		{"PUT", "/shadow-rules/tagged", `{"alias":"Canary","percent":10}`}, {"POST", "/drift/tagged/reset", "{}"}, {"POST", "/drift/tagged/baseline", "{}"},
		{"POST", "/drift/input/tagged/reset", "{}"}, {"POST", "/reload/tagged", ""},
	} {
		if status, body := as(stranger, w.method, w.path, w.body); status != 404 {
			t.Errorf("%s %s: got %d %s, want 404", w.method, w.path, status, body)
		}
	}
	if status, body := as(owner, "PUT", "/traffic-rules/tagged", `{"Production":100,"Canary":0}`); status != 200 {
		t.Fatalf("got %d %s, want the owner's rules", status, body)
	}
	i.Bearer = owner
	i.predicts(1, 5, 5)
	for _, path := range reads {
		if _, body := as(stranger, "GET", path, ""); body != before[path] {
			t.Errorf("%s: got %s after a request of the owner, want as before, %s", path, body, before[path])
		}
		if status, body := as(owner, "GET", path, ""); status == 404 && strings.Contains(path, "/traffic-rules") {
			t.Errorf("%s: got %d %s for the owner", path, status, body)
		}
	}
}
