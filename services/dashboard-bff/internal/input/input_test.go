package input_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

func TestUnknownAndRepeatedQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"": "", "cluster=a": "", "clutser=a": "clutser", "cluster=a&cluster=b": "given more than once",
		"cluster=%00": "U+0000", "cluster=%zz": "name=value",
	} {
		c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/?"+query, nil), httptest.NewRecorder())
		err := input.CheckQuery(c, "cluster")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("?%s: error = %v, want one with %q", query, err, want)
		}
	}
}
