package openinference

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

// Below /v2 each problem document has the member error, whatever its origin; elsewhere none has.
func TestErrorsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		err  error
		want string
	}{
		{"/v2/models/m/infer", problem.Draining.New("The service is shutting down."), "The service is shutting down."},
		{"/v2/models/m/infer", problem.BodyTooLarge.New("Too large."), "Too large."},
		{"/v2", &problem.Error{Kind: problem.Unavailable}, "Unavailable"},
		{"/v2/nothing", echo.ErrNotFound, "There is no such route; /openapi.json lists them."},
		{"/v20", problem.Draining.New("Shutting down."), ""},
		{"/predict/m", problem.Draining.New("Shutting down."), ""},
	} {
		e, w := echo.New(), httptest.NewRecorder()
		AddError(problem.Handler(slog.New(slog.DiscardHandler)))(c.err, e.NewContext(httptest.NewRequest(http.MethodPost, c.path, nil), w))
		var got struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Error != c.want {
			t.Errorf("%s: error %q, %v in %s; want %q", c.path, got.Error, err, w.Body, c.want)
		}
	}
}
