package problem

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// From turns any error into a problem. It knows *Error, *echo.HTTPError (a
// route that does not exist, a method that is not served), a body over its
// limit, a full disk and a passed deadline; all else is a bare 500 whose cause
// is only logged.
func From(err error) *Error {
	var p *Error
	if errors.As(err, &p) {
		return p
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return BodyTooLarge.Errorf("The request body is larger than %d bytes.", tooLarge.Limit).WithCause(err)
	}
	var he *echo.HTTPError
	if errors.As(err, &he) {
		return fromEcho(he)
	}
	if detail, full := DescribeFullDisk(err); full {
		return DiskFull.New(detail).WithCause(err).After(5 * time.Second)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded.New("The request took longer than its deadline.").WithCause(err)
	case errors.Is(err, context.Canceled):
		return ClientClosed.New("The caller closed the connection.").WithCause(err)
	}
	return Internal.New("The service failed to answer; its log has the cause under this request id.").WithCause(err)
}

func fromEcho(he *echo.HTTPError) *Error {
	switch he.Code {
	case http.StatusNotFound:
		return NotFound.New("There is no such route; /openapi.json lists them.")
	case http.StatusMethodNotAllowed:
		return MethodNotAllowed.New("This route does not serve this method; the Allow header lists those it serves.")
	case http.StatusInternalServerError:
		return From(errors.Join(he.Internal, errors.New("echo: internal error")))
	}
	e := KindOf(he.Code).New("")
	if msg, ok := he.Message.(string); ok && he.Code < 500 {
		e.Detail = msg
	}
	e.Cause = he.Internal
	return e
}

// shared are the kinds that a bare status can mean.
var shared = []Kind{
	BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, Conflict, BodyTooLarge, UnsupportedMedia,
	Misdirected, Validation, RateLimited, ClientClosed, Internal, BadGateway, Unavailable, DeadlineExceeded,
}

// KindOf is the shared kind of a status; for others the code is the status
// text in snake case.
func KindOf(status int) Kind {
	for _, k := range shared {
		if k.Status == status {
			return k
		}
	}
	title := http.StatusText(status)
	if title == "" {
		title = "Status " + strconv.Itoa(status)
	}
	code := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == ' ' || r == '-':
			return '_'
		case r == '\'':
			return -1
		}
		return r
	}, title)
	return Kind{Code: code, Status: status, Title: title}
}

// Handler writes errors as problem documents and logs each once: unknown ones
// as errors, other 5xx as warnings, the caller's own faults at debug level.
func Handler(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		req, res := c.Request(), c.Response()
		ctx := req.Context()
		if res.Committed { // a stream that broke: no status can be sent any more
			log.WarnContext(ctx, "response failed after its first byte", slog.String("path", req.URL.Path), slog.Any("err", err))
			return
		}
		p := From(err)
		level := slog.LevelDebug
		switch {
		case p.Kind.Code == Internal.Code:
			level = slog.LevelError
		case p.Status() >= 500:
			level = slog.LevelWarn
		}
		log.LogAttrs(ctx, level, "request refused", slog.Int("status", p.Status()), slog.String("code", p.Kind.Code),
			slog.String("method", req.Method), slog.String("path", req.URL.Path), slog.Any("err", p))
		if werr := p.Write(res, req); werr != nil {
			log.DebugContext(ctx, "problem document not delivered", slog.Any("err", werr))
		}
	}
}

// Write sends the document. The request id is the one the response already
// carries in X-Request-ID.
func (e *Error) Write(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	for name, values := range e.Header {
		h[name] = values
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(max(1, int64((e.RetryAfter+time.Second-1)/time.Second)), 10))
	}
	h.Set("Content-Type", ContentType)
	body := e.JSON(r.URL.EscapedPath(), h.Get("X-Request-Id"))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.Status())
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(body)
	return err
}
