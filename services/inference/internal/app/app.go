// Package app wires the inference service: connections, parts and routes.
package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/auth"
	onnx "github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/outbox/admin"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
	"github.com/mlp-platform/platform/libs/tracker"
	"github.com/mlp-platform/platform/services/inference/internal/admission"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/artifact"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/hook"
	"github.com/mlp-platform/platform/services/inference/internal/inventory"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
	"github.com/mlp-platform/platform/services/inference/internal/openinference"
	"github.com/mlp-platform/platform/services/inference/internal/owner"
	"github.com/mlp-platform/platform/services/inference/internal/passed"
	"github.com/mlp-platform/platform/services/inference/internal/predict"
	"github.com/mlp-platform/platform/services/inference/internal/pyfunc"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
	"github.com/mlp-platform/platform/services/inference/internal/store"
	"github.com/mlp-platform/platform/services/inference/internal/traffic"
	"github.com/mlp-platform/platform/services/inference/internal/trial"
)

// name of the service in logs, metrics and events.
const name = "inference"

// options describes the service's foundation.
func options(cfg Config, log *slog.Logger) startup.Options {
	return startup.Options{
		Name: name, Schema: store.Schema, Migrations: []postgres.Set{store.Migrations()},
		Base: cfg.Base, Addr: cfg.Addr, Listener: cfg.Listener, Log: log,
		Server: service.Options{
			OpenAPI: api.Document, AllowedHosts: cfg.allowedHosts(),
			BodyLimits: map[string]int64{v2Model + "/infer": openinference.MaxBody, v2Version + "/infer": openinference.MaxBody},
			// A line per prediction would cost as much as the prediction; its metrics and snapshot contain more.
			AccessLog: func(c echo.Context) bool { return !isPrediction(c.Path()) || c.Response().Status >= 500 },
		},
	}
}

// Migrate brings the service's schema up to date.
func Migrate(ctx context.Context, cfg Config) error {
	return startup.Migrate(ctx, options(cfg, slog.New(slog.DiscardHandler)))
}

// Schema is the service's schema with every migration that this program knows.
func Schema() postgres.Schema {
	return options(Config{}, slog.New(slog.DiscardHandler)).Tables()
}

// Run serves until ctx ends. The schema must have been migrated.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Validate(); err != nil { // a Config need not come from LoadConfig
		return err
	}
	base, err := startup.Open(ctx, options(cfg, log))
	if err != nil {
		return err
	}
	if err := wire(ctx, cfg, base, log); err != nil {
		base.Close()
		return err
	}
	return base.Run(ctx)
}

// wire creates the parts, adds their routes and starts their work.
func wire(ctx context.Context, cfg Config, base *startup.Foundation, log *slog.Logger) error {
	srv := base.Server
	set := metrics.New(srv.Registry)
	events := announce.NewWriter(base.Pool, set, log)
	admissions, err := openAdmissions(ctx, cfg, base, log)
	if err != nil {
		return err
	}
	cat, err := newCatalog(cfg, catalogParts{base.Pool, admissions, set, events, log})
	if err != nil {
		return err
	}
	base.OnClose(cat.Close)
	srv.Registry.MustRegister(catalog.NewCollector(cat))
	owners, err := owner.Open(ctx, owner.Config{ControlPlaneURL: cfg.ControlPlaneURL, ControlPlaneToken: cfg.ControlPlaneToken, Pool: base.Pool, Log: log})
	if err != nil {
		return err
	}
	snapshots := snapshot.New(base.Pool, cfg.SnapshotQueue, set, log)
	splits, err := traffic.New(traffic.Config{Pool: base.Pool, Catalog: cat, Log: log})
	if err != nil {
		return err
	}
	if err := splits.Load(ctx); err != nil { // before the first request, which must not get another alias than the next
		return err
	}
	every := cmp.Or(cfg.DriftEvery, monitor.Every)
	watch, inputs := monitor.New(base.Pool, cat, set, log, every), monitor.NewInputs(base.Pool, cat, set, log, every)

	authenticator := cfg.authenticator(base.Coordinator)
	for _, w := range authenticator.Warnings() {
		log.WarnContext(ctx, "weak credential", slog.String("why", w))
	}
	shadows, err := shadow.New(shadow.Config{Traffic: splits, Catalog: cat, Snapshots: snapshots, Metrics: set})
	if err != nil {
		return err
	}
	changed := make(chan string, 64)
	core, err := serving.New(serving.Config{
		Catalog: cat, Snapshots: snapshots, Traffic: splits, Shadows: shadows, Metrics: set, Log: log, Timeout: cfg.timeout(), Admit: cfg.MaxInflight + cfg.QueueMax,
	})
	if err != nil {
		return err
	}
	tensors := openinference.New(core, func() (string, bool) {
		check := checkAliases(cat, time.Now())
		if srv.Draining() {
			check = service.Check{Status: service.Fail, Detail: "the service is shutting down"}
		}
		return check.Detail, check.Status != service.Fail
	})
	addRoutes(srv.Echo, authenticator, handlers{
		predictions: predict.New(core), tensors: tensors,
		models: inventory.New(cat, events), drift: watch, inputs: inputs, traffic: splits,
		owners: owners, hooks: hook.New(cfg.TrackerWebhookSecret, changed), outbox: admin.Handlers{Pool: base.Pool, Source: announce.Source},
	})
	addChecks(srv, cat)
	if cfg.Link != nil {
		cfg.Link.Attach(srv.Handler())
	}

	if err := serveGRPC(cfg, srv, authenticator, tensors, log); err != nil {
		return err
	}
	srv.Go("aliases", func(ctx context.Context) error { return cat.Run(ctx, changed) })
	srv.Go("owners of models", owners.Run)
	srv.Go("snapshots", snapshots.Run)
	srv.Go("traffic rules", splits.Run)
	srv.Go("shadows", shadows.Run)
	srv.Go("events", events.Run)
	return connectEvents(base, []*monitor.Monitor{watch, inputs}, changed, log)
}

// openAdmissions is nil where the tracker's aliases alone decide.
func openAdmissions(ctx context.Context, cfg Config, base *startup.Foundation, log *slog.Logger) (catalog.Admissions, error) {
	if !cfg.gateRequired() {
		return nil, nil
	}
	r, err := admission.Open(ctx, admission.Config{ControlPlaneURL: cfg.ControlPlaneURL, ControlPlaneToken: cfg.ControlPlaneToken, Pool: base.Pool, Log: log})
	if err != nil {
		return nil, err
	}
	base.Server.CheckLocal("admissions", func() service.Check {
		if fault := r.Fault(); fault != "" {
			return service.Check{Status: service.Warn, Detail: "the control plane did not return the admitted versions; its last answer stays in force: " + fault}
		}
		return service.Check{Status: service.OK}
	})
	return r, nil
}

// catalogParts are the dependencies of the version catalog.
type catalogParts struct {
	pool       *pgxpool.Pool
	admissions catalog.Admissions
	metrics    *metrics.Set
	events     *announce.Writer
	log        *slog.Logger
}

func newCatalog(cfg Config, p catalogParts) (*catalog.Catalog, error) {
	client := tracker.New(cfg.TrackingURI, service.HTTPClient(30*time.Second), tracker.Token(cfg.TrackingToken.Reveal()))
	artifacts, err := artifact.New(cfg.ModelCacheDir, client, cfg.RequireDigest)
	if err != nil {
		return nil, err
	}
	aliases, err := catalog.ParseAliases(cfg.PreloadAliases)
	if err != nil {
		return nil, err
	}
	trials, err := trial.New(trial.Config{
		Dir: cfg.ModelCacheDir, Memory: int64(cfg.ModelMemoryMB) << 20, Time: time.Duration(cfg.ModelTrialSeconds) * time.Second,
	})
	if err != nil {
		return nil, err
	}
	if !slices.Equal(cfg.ORTProviders, []string{"cpu"}) && onnx.Init("") == nil { // without a library, each load says so
		if err := cfg.engine().CheckLibrary(); err != nil {
			return nil, fmt.Errorf("ORT_PROVIDERS: %w", err)
		}
	}
	python, err := newPyfunc(cfg, p.log)
	if err != nil {
		return nil, err
	}
	replica := replicaName()
	return catalog.New(catalog.Config{
		Tracker: client, Artifacts: artifacts, Trials: trials, Pyfunc: python, Metrics: p.metrics, Log: p.log, Aliases: aliases, Resident: cfg.ModelsResidentMax, Admissions: p.admissions,
		Passed: passed.New(p.pool, p.log),
		Poll:   time.Duration(cfg.ReloadPollSeconds) * time.Second, Patience: cfg.timeout(),
		RunLimit: time.Duration(cfg.RunTimeoutMS) * time.Millisecond, Threads: cfg.ORTThreads, Engine: cfg.engine(), Sessions: cfg.sessions(runtime.GOMAXPROCS(0)),
		BatchRows: cfg.BatchMax, BatchWait: time.Duration(cfg.BatchWaitUS) * time.Microsecond, Waiting: cfg.MaxInflight + cfg.QueueMax,
		Notify: func(e catalog.Event) {
			p.events.Put(announce.Load(announce.Loaded{Model: e.Model, Alias: e.Alias, Version: e.Version, Reason: e.Reason, Replica: replica}))
		},
	}), nil
}

func newPyfunc(cfg Config, log *slog.Logger) (*pyfunc.Servers, error) {
	endpoints, err := pyfunc.ParseEndpoints(cfg.PyfuncEndpoints)
	if err != nil {
		return nil, fmt.Errorf("PYFUNC_ENDPOINTS_JSON: %w", err)
	}
	command, err := pyfunc.ParseCommand(cfg.PyfuncCommand)
	if err != nil {
		return nil, fmt.Errorf("PYFUNC_COMMAND: %w", err)
	}
	return pyfunc.New(pyfunc.Config{
		Endpoints: endpoints, Command: command, Dir: cfg.ModelCacheDir, RunLimit: time.Duration(cfg.RunTimeoutMS) * time.Millisecond,
		Sessions: cfg.sessions(runtime.GOMAXPROCS(0)), Log: log,
	})
}

func isPrediction(route string) bool {
	switch route {
	case "/predict/:model_name", "/infer-pipeline/infer", v2Model + "/infer", v2Version + "/infer":
		return true
	}
	return false
}

// replicaName identifies a process of the service.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// handlers are those of the service's own routes; all are required.
type handlers struct {
	predictions *predict.Handlers
	tensors     *openinference.Handlers
	models      *inventory.Handlers
	drift       *monitor.Monitor
	inputs      *monitor.Monitor
	traffic     *traffic.Traffic
	owners      *owner.Register
	hooks       *hook.Handlers
	outbox      admin.Handlers
}

// addRoutes adds the service's own routes; libs/service has added those that all services share.
func addRoutes(e *echo.Echo, a *auth.Authenticator, h handlers) {
	open := !a.Configured()
	may := func(scope string) []echo.MiddlewareFunc {
		if open {
			return nil
		}
		return []echo.MiddlewareFunc{a.Require(scope)}
	}
	write := append(may(scopeAdmin), sameOrigin)
	// A model's records and rules belong to its owner: others get 404, and their lists omit them.
	read, change, list := append(may(scopePredict), h.owners.Only), append(slices.Clip(write), h.owners.Only), append(may(scopePredict), h.owners.Provide)
	service.Get(e, "/health", h.models.Health)
	service.Get(e, "/models", h.models.Models, may(scopePredict)...)
	e.POST("/predict/:model_name", h.predictions.Predict, may(scopePredict)...)
	e.POST("/infer-pipeline/infer", h.predictions.Pipeline, may(scopePredict)...)
	addV2Routes(e, h.tensors, may(scopePredict))
	e.POST("/reload", h.models.Reload, write...)
	e.POST("/reload/:model_name", h.models.Reload, change...)
	service.Get(e, "/drift/status", h.drift.Status, list...)
	service.Get(e, "/series/:model_name", h.drift.Series, read...)
	e.POST("/drift/:model_name/baseline", h.drift.SetBaseline, change...)
	e.POST("/drift/:model_name/reset", h.drift.Reset, change...)
	service.Get(e, "/drift/input/status", h.inputs.Status, list...)
	service.Get(e, "/drift/input/:model_name/report", h.inputs.Report, read...)
	e.POST("/drift/input/:model_name/baseline", h.inputs.SetBaseline, change...)
	e.POST("/drift/input/:model_name/reset", h.inputs.Reset, change...)
	service.Get(e, "/traffic-rules", h.traffic.List, list...)
	service.Get(e, "/traffic-rules/:model_name", h.traffic.Get, read...)
	e.POST("/traffic-rules/:model_name", h.traffic.Set, change...)
	e.PUT("/traffic-rules/:model_name", h.traffic.Set, change...)
	e.DELETE("/traffic-rules/:model_name", h.traffic.Delete, change...)
	service.Get(e, "/shadow-rules", h.traffic.ListShadows, list...)
	service.Get(e, "/shadow-rules/:model_name", h.traffic.GetShadow, read...)
	e.PUT("/shadow-rules/:model_name", h.traffic.SetShadow, change...)
	e.DELETE("/shadow-rules/:model_name", h.traffic.DeleteShadow, change...)
	e.POST("/webhooks/tracker", h.hooks.Tracker) // proved by its signature
	service.Get(e, "/outbox", h.outbox.List, may(scopeAdmin)...)
	e.POST("/outbox/republish", h.outbox.Republish, write...)
	e.POST("/outbox/:id/replay", h.outbox.Replay, write...)
	e.DELETE("/outbox/:id", h.outbox.Drop, write...)
}

// addV2Routes adds the routes of the Open Inference Protocol.
func addV2Routes(e *echo.Echo, h *openinference.Handlers, predict []echo.MiddlewareFunc) {
	e.HTTPErrorHandler = openinference.AddError(e.HTTPErrorHandler)
	service.Get(e, "/v2/health/live", h.Live)
	service.Get(e, "/v2/health/ready", h.ReadyState)
	service.Get(e, "/v2", h.Server, predict...)
	e.POST("/v2/repository/index", h.Index, predict...)
	for _, path := range []string{v2Model, v2Version} {
		service.Get(e, path, h.Model, predict...)
		service.Get(e, path+"/ready", h.ModelReady, predict...)
		e.POST(path+"/infer", h.Infer, predict...)
	}
}

// The paths of a model and of one of its versions.
const (
	v2Model   = "/v2/models/:model_name"
	v2Version = v2Model + "/versions/:version"
)

// sameOrigin keeps other web pages in a user's browser from using a service that is open on loopback.
func sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	protection := http.NewCrossOriginProtection()
	return func(c echo.Context) error {
		if err := protection.Check(c.Request()); err != nil {
			return fault.CrossOrigin.New("Web pages of another origin may not send this request.").WithCause(err)
		}
		return next(c)
	}
}

// addChecks adds the readiness checks: ready once the aliases were scanned and their versions tried. A later failure of
// a dependency does not keep loaded models from answering.
func addChecks(srv *service.Server, cat *catalog.Catalog) {
	srv.CheckLocal("aliases", func() service.Check { return checkAliases(cat, time.Now()) })
}

// longLoad is how long a version may load before readiness warns of it.
const longLoad = time.Minute

func checkAliases(cat *catalog.Catalog, now time.Time) service.Check {
	s := cat.State()
	age := now.Sub(s.LastScan).Round(time.Second)
	switch {
	case s.LastScan.IsZero() && s.LastError != "":
		return service.Check{Status: service.Fail, Detail: "the registry could not be read yet: " + s.LastError}
	case s.LastScan.IsZero() || !s.Settled:
		return service.Check{Status: service.Fail, Detail: "what the registry names is still being loaded"}
	case s.LastError != "":
		return service.Check{Status: service.Warn, Detail: fmt.Sprintf("the registry was last read %s ago: %s", age, s.LastError)}
	case s.Overdue:
		return service.Check{Status: service.Warn, Detail: fmt.Sprintf("the registry was last read %s ago", age)}
	}
	if f := cat.Failures(""); len(f) > 0 {
		return service.Check{Status: service.Warn, Detail: fmt.Sprintf("%d aliases do not hold their version; /health lists them", len(f))}
	}
	for _, f := range cat.Followers() {
		if f.Loading != "" && now.Sub(f.Since) > longLoad {
			return service.Check{Status: service.Warn, Detail: fmt.Sprintf("version %s of %s has been loading for %s", f.Loading, f.Model, now.Sub(f.Since).Round(time.Second))}
		}
	}
	return service.Check{Status: service.OK}
}
