package inference

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/monitor"
)

func messaging(ctx context.Context, srv *service.Server, cfg Config, pool *pgxpool.Pool, watch *monitor.Monitor, changed chan<- string, log *slog.Logger) error {
	return nil
}
