// Package owner knows the tenant of each model, as registered at the control plane: the records of a model's requests,
// and the rules for its traffic, belong to that tenant alone.
package owner

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	readEvery   = 10 * time.Second
	readTimeout = 5 * time.Second
	pageSize    = 500
)

// Config of a Register. Without ControlPlaneURL every model belongs to the tenant default.
type Config struct {
	ControlPlaneURL   string
	ControlPlaneToken service.Secret
	Pool              *pgxpool.Pool
	Log               *slog.Logger
}

// Register reads the owners from the control plane and keeps the last answer, also across restarts. It is safe for
// concurrent use.
type Register struct {
	cfg    Config
	client *controlplane.Client // nil: the control plane is not queried

	mu    sync.Mutex // guards known
	known map[string]string
}

// Open loads the stored owners.
func Open(ctx context.Context, cfg Config) (*Register, error) {
	r := &Register{cfg: cfg, known: map[string]string{}}
	rows, err := store.New(cfg.Pool).Owners(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the owners of models: %w", err)
	}
	for _, row := range rows {
		r.known[row.Model] = row.Tenant
	}
	if cfg.ControlPlaneURL != "" {
		if r.client, err = controlplane.NewClient(cfg.ControlPlaneURL, controlplane.WithHTTPClient(service.HTTPClient(readTimeout))); err != nil {
			return nil, fmt.Errorf("CONTROL_PLANE_URL: %w", err)
		}
	}
	return r, nil
}

// Run reads the owners until ctx ends.
func (r *Register) Run(ctx context.Context) error {
	if r.client == nil {
		return nil
	}
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for told := false; ; {
		err := r.refresh(ctx)
		if err != nil && !told && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "owners of models not read; the last ones hold", slog.Any("err", err))
		}
		told = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Register) refresh(ctx context.Context) error {
	now, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	same := maps.Equal(now, r.known)
	r.known = now
	r.mu.Unlock()
	if same {
		return nil
	}
	return postgres.InTx(ctx, r.cfg.Pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		models := slices.Sorted(maps.Keys(now))
		if err := q.KeepOwners(ctx, models); err != nil {
			return err
		}
		for _, m := range models { // in one order, so that two replicas do not wait for each other
			if err := q.SetOwner(ctx, store.SetOwnerParams{Model: m, Tenant: now[m]}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *Register) read(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, limit := map[string]string{}, pageSize
	params := controlplane.ListModelOwnersParams{Limit: &limit}
	for {
		page, err := wire.Decode[controlplane.ModelOwnerList](r.client.ListModelOwners(ctx, &params, wire.Bearer(r.cfg.ControlPlaneToken.Reveal())))
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			out[strings.ToUpper(o.Model)] = o.Tenant
		}
		if page.NextCursor == nil || len(page.Items) == 0 {
			return out, nil
		}
		params.Cursor = page.NextCursor
	}
}

// Of is the tenant that a model belongs to.
func (r *Register) Of(model string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if tenant, ok := r.known[catalog.UpperName(model)]; ok {
		return tenant
	}
	return auth.LegacyTenant
}

// key is that of the register in a request's context.
const key = "model owners"

// Provide lets Visible answer in lists.
func (r *Register) Provide(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Set(key, r)
		return next(c)
	}
}

// Only answers 404 to clients of another tenant than that of the model in the path.
func (r *Register) Only(next echo.HandlerFunc) echo.HandlerFunc {
	return r.Provide(func(c echo.Context) error {
		if model := c.Param("model_name"); !Visible(c, model) {
			return fault.ModelNotLoaded.Errorf("Model %s is not known here; check the name.", problem.Shorten(catalog.UpperName(model)))
		}
		return next(c)
	})
}

// Visible reports whether the caller may see a model's records: the model is of the caller's tenant, or the caller is
// one of the platform's own services. A service that is open on loopback has no tenants.
func Visible(c echo.Context, model string) bool {
	p, _ := auth.FromContext(c.Request().Context())
	r, ok := c.Get(key).(*Register)
	return !ok || p.Tenant == "" || p.Tenant == auth.PlatformTenant || r.Of(model) == p.Tenant
}
