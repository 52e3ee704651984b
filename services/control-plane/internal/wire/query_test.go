package wire

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

// A path names the same object however it is escaped.
func TestTextUnescapesParametersOnce(t *testing.T) {
	t.Parallel()
	e := echo.New()
	var got string
	e.GET("/budgets/:project", func(c echo.Context) error {
		got = c.Param("project")
		return c.NoContent(http.StatusNoContent)
	}, RequireStorableText)
	for path, want := range map[string]string{
		"/budgets/ml": "ml", "/budgets/%6d%6C": "ml", "/budgets/hpc%2Fml": "hpc/ml", "/budgets/hpc%2fml": "hpc/ml",
		"/budgets/%c3%a9": "é", "/budgets/%C3%A9": "é", "/budgets/%252F": "%2F", "/budgets/%252f%2f": "%2f/", "/budgets/a+b": "a+b",
		"/budgets/a%20b%2f": "a b/", "/budgets/%ff": "�", "/budgets/%00%2f": "�/",
	} {
		r, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
		got = ""
		if e.ServeHTTP(w, r); w.Code != 204 || got != want {
			t.Errorf("%s: %d %q, want %q", path, w.Code, got, want)
		}
	}
}

// A filter that cannot be parsed is never ignored.
func TestTextRefusesWhatIsNoQuery(t *testing.T) {
	t.Parallel()
	next := func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }
	for query, ok := range map[string]bool{
		"": true, "status=pending": true, "status=%70ending&limit=5": true, "status=a%3Bb": true, "a=1&": true,
		"status=%zz": false, "status=pending&x=%": false, "status=pending;x=1": false, "status=%00": false, "status=%ff": false, "a=1&a=2": false,
	} {
		r := httptest.NewRequest("GET", "/approvals", nil)
		r.URL.RawQuery = query
		err := RequireStorableText(next)(echo.New().NewContext(r, httptest.NewRecorder()))
		if ok != (err == nil) || (!ok && !problem.Validation.Has(err)) {
			t.Errorf("%q: %v; want ok == (err == nil) && (ok || problem.Validation.Has(err))", query, err)
		}
	}
}
