package status

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
)

// Get serves GET /status.
func (s *Service) Get(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
	defer cancel()
	p, _ := auth.FromContext(ctx)
	seen := make([]api.NeighbourStatus, len(s.neighbours))
	out := api.Status{Services: make(map[string]api.NeighbourStatus, len(s.neighbours))}
	var all sync.WaitGroup
	for i, n := range s.neighbours {
		all.Go(func() { seen[i] = s.probe(ctx, n) })
	}
	all.Go(func() {
		n, err := s.store.CountPendingApprovals(ctx, p.Tenant)
		if err != nil {
			s.log.WarnContext(ctx, "status: pending approvals not readable", slog.Any("err", err))
			return
		}
		out.PendingApprovals = &n
	})
	all.Wait()
	for i, n := range s.neighbours {
		out.Services[n.Key] = seen[i]
	}
	return c.JSON(http.StatusOK, out)
}
