package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

var cases = map[string]error{
	"no_key":               fault.NoKey("Send a key."),
	"bad_key":              fault.BadKey("This key is not known here, or has expired."),
	"not_permitted":        fault.NotPermitted("This session belongs to another caller."),
	"turn_active":          fault.Busy(),
	"session_not_found":    fault.SessionNotFound.New("There is no such session."),
	"action_not_found":     fault.ActionNotFound.New("There is no such action."),
	"already_decided":      fault.AlreadyDecided.New("This action was denied before."),
	"action_executing":     fault.ActionExecuting.New("An action of this session is being executed."),
	"action_expired":       fault.ActionExpired.New("This action waited for too long."),
	"action_stale":         fault.ActionStale.New("The target is no longer what was shown."),
	"cluster_unavailable":  fault.ClusterUnavailable.New("The cluster does not answer."),
	"store_unavailable":    fault.StoreUnavailable.New("The store does not answer.").WithCause(errors.New("dial 10.0.0.7: password hunter2")),
	"draining":             problem.Draining.New("The service is shutting down.").After(time.Second),
	"rate_limited":         problem.RateLimited.New("Too many requests.").After(2500*time.Millisecond).WithHeader("X-RateLimit-Limit", "120"),
	"unknown_route":        echo.ErrNotFound,
	"method_not_allowed":   echo.ErrMethodNotAllowed,
	"unknown_error":        errors.New("pq: password hunter2"),
	"wrapped":              fmt.Errorf("begin turn: %w", fault.Busy()),
	"title_as_message":     problem.Forbidden.New(""),
	"several_fields":       fault.Invalid(problem.Field{Loc: []string{"body", "messages", "3", "content"}, Msg: "must be a string"}, problem.Field{Loc: []string{"body", "user"}, Msg: "must be a string"}),
	"whole_body":           fault.Invalid(problem.Field{Loc: []string{"body"}, Msg: "not UTF-8"}),
	"header_field":         fault.InvalidHeader("X-Session-ID", "must be sent once"),
	"long_place":           fault.Invalid(problem.Field{Loc: []string{"body", strings.Repeat("é", 101)}, Msg: "is there twice"}),
	"markup_in_the_detail": fault.SessionNotFound.New(`<b>"&`),
}

func answerError(t *testing.T, method string, err error) *http.Response {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = fault.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.Response().Header().Set("X-Request-ID", "req-1")
			return next(c)
		}
	})
	e.Any("/v1/*", func(echo.Context) error { return err })
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, "/v1/sessions/a?key=hunter2", nil))
	return w.Result()
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, err := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := assistanttest.DumpResponse(t, answerError(t, http.MethodGet, err))
			assistanttest.CheckGolden(t, name+".http", got)
			if strings.Contains(string(got), "hunter2") {
				t.Error("tells the cause")
			}
		})
	}
}

func TestDocumentsAreShort(t *testing.T) {
	t.Parallel()
	err := fault.Invalid(problem.Field{Loc: []string{"body", strings.Repeat("x", 1<<20)}, Msg: strings.Repeat("y", 1<<20)})
	if n := len(assistanttest.DumpResponse(t, answerError(t, http.MethodPost, err))); n > 8000 {
		t.Errorf("%d bytes; want n <= 8000", n)
	}
	if len(err.Errors[0].Msg) != 1<<20 || len(err.Errors[0].Loc[1]) != 1<<20 {
		t.Error("the error itself was changed")
	}
}

// The two error formats of a document must agree.
func TestErrorMember(t *testing.T) {
	t.Parallel()
	types := map[int]string{401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}
	for name, err := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answerError(t, http.MethodPost, err)
			var doc struct {
				Status       int
				Detail, Code string
				Errors       []problem.Field
				Error        map[string]any
			}
			if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
				t.Fatal(err)
			}
			want := types[resp.StatusCode]
			if want == "" {
				want = "invalid_request_error"
			}
			if len(doc.Error) != 4 || doc.Error["message"] != doc.Detail || doc.Error["code"] != doc.Code || doc.Error["type"] != want || doc.Status != resp.StatusCode {
				t.Errorf(`%+v; want len(doc.Error) == 4 && doc.Error["message"] == doc.Detail && doc.Error["code"] == doc.Code && doc.Error["type"] == want && doc.Status == resp.StatusCode`, doc)
			}
			if param, has := doc.Error["param"]; !has || (param == nil) != (len(doc.Errors) == 0) {
				t.Errorf("param %v of %v; want has && (param == nil) == (len(doc.Errors) == 0)", param, doc.Errors)
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	body, err := io.ReadAll(answerError(t, http.MethodHead, fault.Busy()).Body)
	if err != nil || len(body) > 0 {
		t.Errorf("%q, %v; want len(body) <= 0", body, err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	slug := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, f := range assistanttest.Failures() {
		if !slug.MatchString(f.Code) || seen[f.Code] || !strings.HasSuffix(f.Message, ".") {
			t.Errorf(`%+v; want slug.MatchString(f.Code) && !seen[f.Code] && strings.HasSuffix(f.Message, ".")`, f)
		}
		seen[f.Code] = true
	}
	source, err := os.ReadFile("failure.go")
	if err != nil {
		t.Fatal(err)
	}
	if declared := regexp.MustCompile(`= Failure\{"`).FindAll(source, -1); len(seen) != len(declared) {
		t.Errorf("assistanttest.Failures has %d failures, failure.go declares %d; want len(seen) == len(declared)", len(seen), len(declared))
	}
}
