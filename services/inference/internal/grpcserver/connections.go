package grpcserver

import (
	"context"

	"google.golang.org/grpc/stats"

	"github.com/mlp-platform/platform/services/inference/internal/catalog"
)

// connectionKey holds the gate of the messages that arrive over one connection.
type connectionKey struct{}

// connections gives each connection its gate; that is all it does with what gRPC tells it.
type connections struct{}

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, &catalog.Gate{})
}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (connections) HandleRPC(context.Context, stats.RPCStats) {}

// HandleConn implements stats.Handler.
func (connections) HandleConn(context.Context, stats.ConnStats) {}
