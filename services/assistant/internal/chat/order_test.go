package chat_test

import (
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/service"

	"github.com/mlp-platform/platform/services/assistant/internal/caller"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

// A request with several faults is refused for the first one in the API's order, also behind the platform's server.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	const key = "ki-ro-0123456789abcdef"
	callers, err := caller.New(caller.Config{ReadonlyKeys: key, Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s := service.New(service.Options{Name: "assistant", BodyLimits: map[string]int64{
		route: math.MaxInt64, "": math.MaxInt64, // "" is the limit for paths without a route
	}})
	s.Echo.HTTPErrorHandler = fault.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	s.Echo.POST(route, func(c echo.Context) error {
		_, _, err := chat.Read(c, chat.MaxBody)
		return err
	}, callers.Middleware)

	large := strings.Repeat("{", chat.MaxBody+1)
	for _, tc := range []struct {
		name, method, path, key, media, body, session string
		status                                        int
		code                                          string
	}{
		{"route", "POST", "/v1/nothing", "", "text/plain", large, "a b", 404, "not_found"},
		{"method", "PUT", route, "", "text/plain", large, "a b", 405, "method_not_allowed"},
		{"key", "POST", route, "ki-ro-x", "text/plain", large, "a b", 401, "unauthenticated"},
		{"media type", "POST", route, key, "text/plain", large, "a b", 415, "unsupported_media_type"},
		{"size", "POST", route, key, "application/json", large, "a b", 413, "body_too_large"},
		{"body", "POST", route, key, "application/json", "{", "a b", 422, "validation_error"},
		{"session id", "POST", route, key, "application/json", "{" + ask + "}", "a b", 422, "validation_error"},
		{"none", "POST", route, key, "application/json", "{" + ask + "}", "a", 200, ""},
	} {
		r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.media)
		r.Header.Set("X-Session-ID", tc.session)
		r.Header.Set("Authorization", "Bearer "+tc.key)
		w := httptest.NewRecorder()
		s.Echo.ServeHTTP(w, r)
		if w.Code != tc.status || tc.code != "" && !strings.Contains(w.Body.String(), `"code":"`+tc.code+`","request_id"`) {
			t.Errorf("%s: %d %s; want w.Code == tc.status && (tc.code == \"\" || strings.Contains(w.Body.String(), `\"code\":\"`+tc.code+`\",\"request_id\"`))", tc.name, w.Code, w.Body)
		}
		if tc.status != http.StatusOK && !strings.Contains(w.Body.String(), `"error":{"message":"`) {
			t.Errorf("%s: no error member: %s; want (tc.status == http.StatusOK || strings.Contains(w.Body.String(), `\"error\":{\"message\":\"`))", tc.name, w.Body)
		}
	}
}
