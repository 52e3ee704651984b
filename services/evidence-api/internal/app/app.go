// Package app answers the requests of the evidence API: who may ask, what is asked,
// and the document that says it. It writes nothing anywhere.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/accesslog"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

// Interface is the Server header: who answers, and in which version of the interface.
const Interface = document.ServiceName + "/0.1"

// Options are what the application is made of.
type Options struct {
	Token     string
	Version   string // of the build
	Settings  status.Settings
	Reader    *store.Reader // nil: no store
	Streams   *stream.Hub   // nil: no store
	Admission *admission.Control
	Launches  *loopback.Launches
	Report    []byte // what the page opens with
	AccessLog *accesslog.Log
	Log       *slog.Logger
	Lifetime  context.Context // ends when requests are cut: nothing waits for the store any more
}

// App is the application.
type App struct {
	Options
	counters metrics.Counters
	memo     memo
	fields   httpd.Header // of every answer but the page's
	status   []byte       // form C1; neither changes while the process lives
	openapi  []byte
}

// New makes the application.
func New(o Options) (*App, error) {
	a := &App{Options: o, fields: append(loopback.BaseHeaders(Interface, o.Version), about...)}
	var err error
	if a.status, err = encodeDocument(status.New(o.Settings)); err != nil {
		return nil, fmt.Errorf("write the status document: %w", err)
	}
	if a.openapi, err = controltower.OpenAPI(o.Version); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return a, nil
}

// about tells of the interface on every answer.
var about = httpd.Header{
	{Name: "X-SVC-API-Version", Value: document.APIVersion},
	{Name: "X-SVC-Read-Only", Value: "true"},
}

// Serve answers one request. A handler that panics is an internal error.
func (a *App) Serve(w *httpd.Writer, r *httpd.Request) {
	x := &exchange{app: a, w: w, r: r, id: loopback.RequestID(r), began: time.Now()}
	defer x.end()
	defer x.slot.Release()
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		a.Log.Error("request panicked", slog.String("request_id", x.id), slog.Any("cause", cause), slog.String("stack", string(debug.Stack())))
		if !x.answered {
			x.fail(catalogue.New(catalogue.InternalError))
		}
	}()
	x.serve()
}

// exchange is one request and its answer.
type exchange struct {
	app   *App
	w     *httpd.Writer
	r     *httpd.Request
	id    string
	began time.Time
	slot  admission.Slot // of /healthz: none

	answered bool
	status   int
	sent     int64
}

// end counts and logs what came of the request. A stream was counted when it began.
func (x *exchange) end() {
	x.app.AccessLog.Write(accesslog.Entry{RequestID: x.id, Method: x.r.Method, Path: x.r.Path,
		Status: x.status, Bytes: x.sent, Took: time.Since(x.began), At: x.began})
}

// report puts what the caller is not told into the log.
func (x *exchange) report(f *catalogue.Fault) {
	if f.Entry().Status < 500 || f.Cause == nil || errors.Is(f.Cause, context.Canceled) {
		return
	}
	cause := f.Cause.Error()
	var fault *store.Error
	if errors.As(f.Cause, &fault) {
		cause = fault.Describe() // the code is an attribute of its own
	}
	x.app.Log.Error("request failed", slog.String("request_id", x.id), slog.String("code", string(f.Code)), slog.String("err", cause))
}
