// Package busapp wires the bus bridge: its connections, routes and workers.
package busapp

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/nats-io/nats.go"

	api "github.com/mlp-platform/platform/clients/go/busbridge"
	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/otlp"
	"github.com/mlp-platform/platform/services/inference/internal/bus"
)

// name of the bridge in logs, metrics and at the broker.
const name = "bus-bridge"

// Run serves until ctx ends.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Validate(); err != nil { // a Config need not come from LoadConfig
		return err
	}
	tracing, endTracing, err := otlp.Open(ctx, cfg.Tracing, name, log)
	if err != nil {
		return err
	}
	defer endTracing()
	srv := service.New(service.Options{
		Name: name, Tracing: tracing, Addr: cfg.Addr, Listener: cfg.Listener, Log: log, OpenAPI: api.Document,
		AllowedHosts: cfg.allowedHosts(), Drain: time.Duration(cfg.DrainSeconds) * time.Second,
	})
	conn, err := outbox.ConnectNATS(cfg.BusURL.Reveal(), name,
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			log.Warn("the bus reports an error", slog.String("subject", subject), slog.Any("err", err))
		}))
	if err != nil {
		return fmt.Errorf("BUS_NATS_URL: %w", err)
	}
	defer conn.Close()
	bridge, err := newBridge(cfg, conn, srv, log)
	if err != nil {
		return err
	}
	addRoutes(srv.Echo, &cfg, bridge)
	srv.CheckLocal("bus", bridge.CheckBus)
	srv.CheckLocal("models", bridge.CheckModels)
	srv.Go("models", bridge.RunDirectory)
	srv.Go("messages", bridge.Run)
	return srv.Run(ctx)
}

func newBridge(cfg Config, conn *nats.Conn, srv *service.Server, log *slog.Logger) (*bus.Bridge, error) {
	mode, err := bus.ParseMode(cfg.Mode)
	if err != nil {
		return nil, err
	}
	// The deadline of a message bounds each call.
	toServing := service.HTTPClient(0)
	if cfg.Link != nil {
		toServing = service.HTTPClientOver(cfg.Link, 0)
	}
	serving, err := inference.NewClient(cfg.ServingURL, inference.WithHTTPClient(toServing), inference.WithRequestEditorFn(wire.Bearer(cfg.ServingToken.Reveal())))
	if err != nil {
		return nil, fmt.Errorf("SERVING_URL: %w", err)
	}
	control, err := controlplane.NewClient(cfg.ControlPlaneURL, controlplane.WithHTTPClient(service.HTTPClient(0)), controlplane.WithRequestEditorFn(wire.Bearer(cfg.ControlPlaneToken.Reveal())))
	if err != nil {
		return nil, fmt.Errorf("CONTROL_PLANE_URL: %w", err)
	}
	return bus.New(bus.Config{
		Conn: conn, Serving: serving, ControlPlane: control, Mode: mode, Timeout: cfg.timeout(), Drain: time.Duration(cfg.DrainSeconds) * time.Second, MaxInflight: cfg.MaxInflight,
		Registry: srv.Registry, Log: log,
	})
}

func addRoutes(e *echo.Echo, cfg *Config, bridge *bus.Bridge) {
	service.Get(e, "/health", bridge.Health)
	a := cfg.authenticator()
	if !a.Configured() {
		service.Get(e, "/stats", bridge.Stats)
		return
	}
	service.Get(e, "/stats", bridge.Stats, a.Require(scopeRead))
}
