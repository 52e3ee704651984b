package serving

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
)

// ReadBody takes the body into dst, within the size that the server's middleware has set and the request's own
// deadline: a caller that sends its body slowly must not hold its place among the model's requests any longer.
func (call *Call) ReadBody(c echo.Context, dst []byte) ([]byte, error) {
	r := c.Request()
	setReadDeadline(c, call.Deadline())
	dst = dst[:0]
	n := int(max(r.ContentLength, 0)) // the middleware has bounded it
	if cap(dst) < n {
		dst = make([]byte, 0, n)
	}
	var err error
	if r.ContentLength >= 0 {
		dst = dst[:n]
		_, err = io.ReadFull(r.Body, dst)
	} else {
		dst, err = io.ReadAll(r.Body)
	}
	switch {
	case err == nil:
		setReadDeadline(c, time.Time{}) // else it would end the request's context while the model runs
		return dst, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return dst, problem.DeadlineExceeded.New(fmt.Sprintf("The request body did not arrive within %s.", call.Limit)).WithCause(err)
	}
	return dst, service.BodyFault(err)
}

// OutcomeOfBody returns the outcome to count for a body that could not be read.
func OutcomeOfBody(err error) int {
	if problem.DeadlineExceeded.Has(err) {
		return metrics.Timeout
	}
	return metrics.Invalid
}

// setReadDeadline limits reading the body; the zero time removes the limit. net/http's writer has the method; a test's
// recorder need not.
func setReadDeadline(c echo.Context, t time.Time) {
	if w, ok := c.Response().Writer.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = w.SetReadDeadline(t) // fails only on a connection that is gone
	}
}

// CheckMedia refuses media types that a browser sends without a preflight request, and those that are not JSON.
func CheckMedia(r *http.Request) error {
	ct := r.Header["Content-Type"]
	if len(ct) == 0 || ct[0] == "application/json" {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct[0])
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return problem.UnsupportedMedia.New("Send the body as JSON, with the header Content-Type: application/json.")
}
