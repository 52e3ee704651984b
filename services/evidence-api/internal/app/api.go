package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/accesslog"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/exchange"
	"github.com/mlp-platform/platform/services/evidence-api/internal/inspect"
	"github.com/mlp-platform/platform/services/evidence-api/internal/metrics"
	"github.com/mlp-platform/platform/services/evidence-api/internal/page"
	"github.com/mlp-platform/platform/services/evidence-api/internal/reads"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

// Options configure the application.
type Options struct {
	Token     string
	Version   string // of the build
	Settings  status.Settings
	Reader    *store.Reader // nil: no store
	Streams   *stream.Hub   // nil: no store
	Admission *admission.Control
	Launches  *loopback.Launches
	Report    []byte // the report that the page opens with
	AccessLog *accesslog.Log
	Log       *slog.Logger
	Lifetime  context.Context // ends when requests are cut: nothing waits for the store after that
}

// App answers the requests of one server.
type App struct {
	Options
	server   *exchange.Server
	counters *metrics.Counters
	page     *page.Handler
	inspect  *inspect.Handler
	reads    *reads.Handler
	stream   *stream.Handler
	status   []byte // form C1; neither changes while the process lives
	openapi  []byte
}

// New creates the application.
func New(o Options) (*App, error) {
	counters := &metrics.Counters{}
	a := &App{
		Options:  o,
		counters: counters,
		server: exchange.NewServer(exchange.Server{
			Version: o.Version, Admission: o.Admission, AccessLog: o.AccessLog, Counters: counters, Log: o.Log,
		}),
		page:    &page.Handler{Token: o.Token, Report: o.Report, Launches: o.Launches},
		inspect: &inspect.Handler{RequestTimeout: o.Settings.RequestTimeout, Counters: counters},
		reads:   reads.NewHandler(o.Lifetime, o.Reader, o.Settings.RequestTimeout),
		stream:  &stream.Handler{Hub: o.Streams, RequestTimeout: o.Settings.RequestTimeout, Lifetime: o.Lifetime},
	}
	var err error
	if a.status, err = exchange.EncodeDocument(status.New(o.Settings)); err != nil {
		return nil, fmt.Errorf("write the status document: %w", err)
	}
	if a.openapi, err = controltower.OpenAPI(o.Version); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	return a, nil
}

// Serve answers one request.
func (a *App) Serve(w *httpd.Writer, r *httpd.Request) { a.server.Serve(w, r, a.route) }
