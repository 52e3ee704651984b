// Package exchange is one request and its answer: the fields, digest and log line that
// every answer has, and the error that a panic becomes. Handlers write through it only.
package exchange

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/accesslog"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
)

// Interface is the Server header: the service and the version of its interface.
const Interface = document.ServiceName + "/0.1"

// aboutFields are on every answer.
var aboutFields = httpd.Header{
	{Name: "X-SVC-API-Version", Value: document.APIVersion},
	{Name: "X-SVC-Read-Only", Value: "true"},
}

// Server holds what all exchanges share.
type Server struct {
	Version   string // of the build
	Admission *admission.Control
	AccessLog *accesslog.Log
	Counters  *metrics.Counters
	Log       *slog.Logger

	fields httpd.Header // of every answer but the page's
}

// NewServer returns a Server whose answers name the version.
func NewServer(s Server) *Server {
	s.fields = append(loopback.BaseHeaders(Interface, s.Version), aboutFields...)
	return &s
}

// Serve answers one request by handle. A handler that panics is an internal error.
func (s *Server) Serve(w *httpd.Writer, r *httpd.Request, handle func(*Exchange)) {
	x := &Exchange{Request: r, server: s, w: w, id: loopback.RequestID(r), began: time.Now()}
	defer x.logAccess()
	defer x.slot.Release()
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		s.Log.Error("request panicked", slog.String("request_id", x.id), slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
		if !x.answered {
			x.Fail(catalogue.New(catalogue.InternalError))
		}
	}()
	handle(x)
}

// Exchange is one request and its answer.
type Exchange struct {
	Request *httpd.Request

	server *Server
	w      *httpd.Writer
	id     string
	began  time.Time
	slot   admission.Slot // of /healthz: none

	answered bool
	status   int
	sent     int64
}

// logAccess writes the line of the access log.
func (x *Exchange) logAccess() {
	x.server.AccessLog.Write(accesslog.Entry{RequestID: x.id, Method: x.Request.Method, Path: x.Request.Path,
		Status: x.status, Bytes: x.sent, Took: time.Since(x.began), At: x.began})
}

// logFault logs the cause of a server error, which the caller does not see.
func (x *Exchange) logFault(f *catalogue.Fault) {
	if f.Entry().Status < 500 || f.Cause == nil || errors.Is(f.Cause, context.Canceled) {
		return
	}
	cause := f.Cause.Error()
	var fault *store.Error
	if errors.As(f.Cause, &fault) {
		cause = fault.Describe() // the code is a separate attribute
	}
	x.server.Log.Error("request failed", slog.String("request_id", x.id), slog.String("code", string(f.Code)), slog.String("err", cause))
}
