// Package app wires the evidence API: configuration, routes, and the server from its
// start to the end of its drain.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/store"
	"github.com/mlp-platform/platform/libs/loopback"
	"github.com/mlp-platform/platform/libs/loopback/httpd"
	"github.com/mlp-platform/platform/services/evidence-api/internal/accesslog"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/status"
	"github.com/mlp-platform/platform/services/evidence-api/internal/stream"
)

// spareConns is how many connections may be open besides those that are being answered:
// for request heads still on their way, and for answers that refuse a request.
const spareConns = 256

// Run serves until ctx ends, then drains and returns nil. The server never writes: its
// caller creates or migrates the store first, with [store.Create].
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg = cfg.withDefaults()
	if err := cfg.Check(); err != nil {
		return err
	}
	if cfg.Token == "" {
		cfg.Token = Token(loopback.NewToken())
	}
	if cfg.Report == nil {
		sample, err := canon.P(fixture.Report())
		if err != nil {
			return fmt.Errorf("write the sample report: %w", err)
		}
		cfg.Report = sample
	}
	listener := cfg.Listener
	if listener == nil {
		var err error
		if listener, err = loopback.Listen(cfg.Port); err != nil {
			return err
		}
	}
	err := serveTower(ctx, cfg, listener, log)
	_ = listener.Close() // also if the server never took ownership
	return err
}

func serveTower(ctx context.Context, cfg Config, listener net.Listener, log *slog.Logger) error {
	settings := status.Settings{
		RequestTimeout: cfg.RequestTimeout, MaxConcurrentRequests: cfg.MaxConcurrentRequests, MaxStreams: cfg.MaxStreams,
		DrainTimeout: cfg.DrainTimeout, Heartbeat: cfg.Heartbeat, MaxStream: cfg.MaxStream,
	}
	slots := admission.New(cfg.MaxConcurrentRequests, cfg.MaxStreams)
	lifetime, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	options := Options{
		Token: string(cfg.Token), Version: cfg.Version, Settings: settings, Admission: slots,
		Launches: &loopback.Launches{}, Report: cfg.Report, AccessLog: accesslog.New(cfg.AccessLog), Log: log,
		Lifetime: lifetime,
	}
	endStreams := func() {}
	if cfg.StorePath != "" {
		options.Reader = store.NewServerReader(cfg.StorePath)
		options.Streams = stream.New(options.Reader, stream.Config{Heartbeat: cfg.Heartbeat, MaxStream: cfg.MaxStream, Log: log})
		endStreams = options.Streams.Shutdown
		defer func() {
			options.Streams.Wait()
			if err := options.Reader.Close(); err != nil {
				log.Warn("closing the store failed", slog.Any("err", err))
			}
		}()
	}
	tower, err := New(options)
	if err != nil {
		return err
	}
	server := &httpd.Server{
		Handler: tower.Serve, RequestTimeout: cfg.RequestTimeout, Log: log,
		MaxConns: cfg.MaxConcurrentRequests + cfg.MaxStreams + spareConns,
	}
	// The listener outlives ctx: while the server drains it still says so.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving, listener) }()

	url := "http://" + listener.Addr().String()
	log.Info("listening", slog.String("url", url))
	if cfg.Started != nil {
		cfg.Started(Tower{URL: url, Launch: func() string { return url + "/?launch=" + options.Launches.New() }})
	}
	select {
	case err := <-ended: // the listener failed
		endStreams()
		return errors.Join(errors.New("the server ended unexpectedly"), err)
	case <-ctx.Done():
	}
	log.Info("draining")
	slots.Drain()
	endStreams()
	timer := time.NewTimer(cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-slots.Idle():
	case <-timer.C:
		log.Warn("requests were cut at the end of the drain time")
		cut()
		server.Abort()
	case <-cfg.Abort:
		log.Warn("requests were cut")
		cut()
		server.Abort()
	}
	stop()
	return <-ended
}
