package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service/listener"
)

// Version is the program's version; the linker sets it.
var Version = "dev"

// DefaultBodyLimit limits request bodies, in bytes.
const DefaultBodyLimit = 1 << 20

// Options configure how a service listens and what it offers.
type Options struct {
	Name    string       // for logs and metrics
	Version string       // default Version
	Addr    string       // host:port
	Log     *slog.Logger // default: discard

	// Listener overrides Addr; Run closes it.
	Listener net.Listener
	// MaxConns limits the port's connections; the default is that of package listener.
	MaxConns int
	// Registry collects the metrics; default a new one.
	Registry *prometheus.Registry
	// BodyLimit limits request bodies in bytes; default 1 MiB.
	BodyLimit int64
	// BodyLimits overrides BodyLimit for routes, by their pattern ("/webhooks/:forge").
	BodyLimits map[string]int64
	// PassCodings are the routes whose bodies reach the handler in the coding that they were sent in: it passes them on.
	PassCodings map[string]bool
	// AllowedHosts are the Host values served, without port; empty or "*" is all.
	// Probes and metrics are served under any host, since orchestrators probe by address.
	AllowedHosts []string
	// DrainDelay is how long the service still serves after a stop was requested, with /readyz at 503: balancers need
	// that long to send elsewhere. 0: not at all.
	DrainDelay time.Duration
	// Drain limits how long requests, and then workers, may take to finish; default 20 s.
	Drain time.Duration
	// OpenAPI is the API's description in YAML; without it no reference pages are served.
	OpenAPI []byte
	// AccessLog chooses the requests to log; nil logs all but probes and metrics.
	AccessLog func(echo.Context) bool
	// Tracing makes the spans of requests and workers; nil: there are none.
	Tracing trace.TracerProvider
	// ReadyBody replaces the body of /readyz.
	ReadyBody func(ready bool, checks map[string]string) any
}

// Server is one service's HTTP server with its workers. Add routes to Echo, then Run.
type Server struct {
	Echo     *echo.Echo
	Registry *prometheus.Registry

	opt     Options
	log     *slog.Logger
	http    *http.Server
	metrics *metrics
	hosts   map[string]bool // nil: all
	probes  probes
	tracing trace.TracerProvider                 // nil: off
	after   func(time.Duration) <-chan time.Time // time.After, except in tests

	up       atomic.Bool            // the service's own routes answer; before that only probes do
	waiting  atomic.Pointer[string] // the reason that /readyz gives until then; nil before Listen
	leaving  atomic.Bool            // a stop was requested: /readyz answers 503, and connections end
	draining atomic.Bool            // new requests are refused
	inFlight inFlight
	// served are the routes by method, set before draining is.
	served map[[2]string]bool

	mu      sync.Mutex   // guards all below
	ln      net.Listener // set by Listen
	ended   chan error   // gets the error of serving; set by Listen
	onDrain []func()
	onClose []func()
	workers []worker
	running *run // set by Run
}

type worker struct {
	name string
	fn   func(context.Context) error
}

// run holds the state that lives from Run's start to its end.
type run struct {
	ctx  context.Context // ends when workers shall stop
	wg   sync.WaitGroup
	fail context.CancelCauseFunc // begins the stop
}

// New builds a server with the shared routes and middleware.
func New(opt Options) *Server {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Version == "" {
		opt.Version = Version
	}
	if opt.Registry == nil {
		opt.Registry = prometheus.NewRegistry()
	}
	if opt.BodyLimit <= 0 {
		opt.BodyLimit = DefaultBodyLimit
	}
	if opt.Drain <= 0 {
		opt.Drain = 20 * time.Second
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard)         // echo logs what we log or answer ourselves
	e.IPExtractor = echo.ExtractIPDirect() // forwarded headers are the caller's to forge
	e.HTTPErrorHandler = problem.Handler(opt.Log)
	s := &Server{
		Echo: e, Registry: opt.Registry, opt: opt, log: opt.Log,
		metrics: newMetrics(opt.Registry, opt.Name, opt.Version), hosts: hostSet(opt.AllowedHosts),
		tracing: opt.Tracing, after: time.After,
	}
	s.inFlight.zero = make(chan struct{}, 1)
	e.Use(s.middleware)
	s.http = listener.Server(http.HandlerFunc(s.serve), opt.Log, slog.LevelWarn)
	s.routes()
	return s
}

// hostSet is nil when every host is allowed.
func hostSet(hosts []string) map[string]bool {
	set := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		h = strings.ToLower(strings.TrimSpace(h))
		if h == "*" {
			return nil
		}
		if h != "" {
			set[h] = true
		}
	}
	if len(set) == 0 {
		return nil
	}
	return set
}

// Go adds a worker that Run starts, or starts it now if Run did. The service
// stops when it returns an error or panics; its context ends after the last
// request did.
func (s *Server) Go(name string, fn func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := worker{name, fn}
	s.workers = append(s.workers, w)
	if s.running != nil {
		s.start(s.running, w)
	}
}

// start is called with mu held.
func (s *Server) start(r *run, w worker) {
	r.wg.Go(func() {
		err := runGuarded(r.ctx, w.fn)
		if err == nil || (r.ctx.Err() != nil && errors.Is(err, context.Canceled)) {
			return
		}
		s.log.Error("worker failed", slog.String("worker", w.name), slog.Any("err", err))
		r.fail(fmt.Errorf("%s: %w", w.name, err))
	})
}

// runGuarded turns a panic into an error, so that the others still stop in order.
func runGuarded(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(ctx)
}

// Tracing makes the spans of work outside HTTP; nil: there are none.
func (s *Server) Tracing() trace.TracerProvider { return s.tracing }

// Run listens, serves and runs the workers until ctx ends or one of them fails, then stops in the order of the package
// comment. It returns nil after a stop that ctx requested and that ended in time. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	s.up.Store(true) // all routes are there
	if err := s.Listen(""); err != nil {
		s.closeAll()
		return err
	}
	failed, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	r := &run{ctx: WithTracing(work, s.tracing), fail: fail}

	s.mu.Lock()
	s.running = r
	for _, w := range s.workers {
		s.start(r, w)
	}
	addr, ended := s.ln.Addr().String(), s.ended
	s.mu.Unlock()

	served := make(chan struct{})
	go func() { // ends with Shutdown or Close below
		defer close(served)
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve %s: %w", addr, err))
		}
	}()
	s.log.Info("listening", slog.String("service", s.opt.Name), slog.String("addr", addr), slog.String("version", s.opt.Version))

	select {
	case <-failed.Done():
	case <-ctx.Done():
		s.leave(failed.Done())
	}
	cause := context.Cause(failed) // nil after a requested stop
	began := time.Now()
	err := s.drain(context.WithoutCancel(ctx))
	<-served
	endWork()
	err = errors.Join(err, s.awaitWorkers(r))
	s.closeAll()
	s.log.Info("stopped", slog.String("service", s.opt.Name), slog.Duration("took", time.Since(began)))
	return errors.Join(cause, err)
}

// Listen opens the listener and serves the probes alone until Run serves everything: /livez answers, and /readyz
// reports what the service is waiting for. Run calls it, unless it was called.
func (s *Server) Listen(waiting string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting.Store(&waiting)
	if s.ln != nil {
		return nil
	}
	ln, err := s.listen()
	if err != nil {
		return err
	}
	s.ln, s.ended = ln, make(chan error, 1)
	go func() { s.ended <- s.http.Serve(ln) }() // ends with Close, or Run's stop
	return nil
}

// Close ends what Listen began, of a server that is not run.
func (s *Server) Close() error { return s.http.Close() }

// Handler serves requests as those of the listener, also while the service starts and drains.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// serve is the handler of all requests.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.up.Load() {
		s.Echo.ServeHTTP(w, r)
		return
	}
	s.serveStarting(w, r)
}

func (s *Server) listen() (net.Listener, error) {
	if s.opt.Listener != nil {
		return listener.New(s.opt.Listener, s.opt.MaxConns), nil
	}
	return listener.Listen(s.opt.Addr, s.opt.Name, s.opt.MaxConns)
}

func registerRuntime(reg *prometheus.Registry) {
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			var already prometheus.AlreadyRegisteredError
			if !errors.As(err, &already) { // a registry shared by two servers has them
				panic(err)
			}
		}
	}
}
