package app

import (
	"context"
	"log/slog"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/inference/internal/grpcserver"
	"github.com/mlp-platform/platform/services/inference/internal/openinference"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// serveGRPC serves the Open Inference Protocol over gRPC if INFERENCE_GRPC_ADDR is set.
func serveGRPC(cfg Config, srv *service.Server, a *auth.Authenticator, tensors *openinference.Handlers, log *slog.Logger) error {
	ln := cfg.GRPCListener
	if ln == nil {
		if cfg.GRPCAddr == "" {
			return nil
		}
		var err error
		if ln, err = listener.Listen(cfg.GRPCAddr, name+", for gRPC (INFERENCE_GRPC_ADDR),", 0); err != nil {
			return err
		}
	}
	s, err := grpcserver.New(grpcserver.Config{
		Auth: a, Scope: scopePredict, Open: openinference.OpenMethods, Enter: srv.Enter, Registry: srv.Registry, Log: log, Tracing: srv.Tracing(), Timeout: cfg.timeout(),
		// Together they hold as much as the bodies of one model's requests over HTTP.
		Receiving: max(1, (cfg.MaxInflight+cfg.QueueMax)*service.DefaultBodyLimit/openinference.MaxBody), MaxMessage: openinference.MaxBody,
		Check: openinference.CheckMessage,
	})
	if err != nil {
		_ = ln.Close()
		return err
	}
	oippb.RegisterGRPCInferenceServiceServer(s, &openinference.RPC{Handlers: tensors})
	srv.OnClose(func() { _ = ln.Close() }) // of a service that ends before it runs
	srv.Go("gRPC", func(ctx context.Context) error { return s.Run(ctx, ln) })
	return nil
}
