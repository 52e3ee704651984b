// Package admission knows which versions the control plane has admitted to Production. An alias at the tracker is no
// permission: every client of the tracker can move it.
package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	readTimeout = 5 * time.Second
	pageSize    = 500
	// maxPages ends a list that never does.
	maxPages = 1000
)

// Admission is the version that may serve a model's Production, with the digest of its files if the gate judged one.
type Admission struct{ Version, Digest string }

// Config of a Register; all fields are required but Token.
type Config struct {
	ControlPlaneURL   string
	ControlPlaneToken service.Secret
	Pool              *pgxpool.Pool
	Log               *slog.Logger
}

// Register reads the admissions from the control plane and keeps the last that it read, also across restarts, for
// when the control plane is away. It is safe for concurrent use.
type Register struct {
	client *controlplane.Client
	token  service.Secret
	pool   *pgxpool.Pool
	log    *slog.Logger

	mu    sync.Mutex // guards those below
	known map[string]Admission
	fault string // why the last reading failed
}

// Open loads the stored admissions.
func Open(ctx context.Context, cfg Config) (*Register, error) {
	client, err := controlplane.NewClient(cfg.ControlPlaneURL, controlplane.WithHTTPClient(service.HTTPClient(readTimeout)))
	if err != nil {
		return nil, fmt.Errorf("CONTROL_PLANE_URL: %w", err)
	}
	r := &Register{client: client, token: cfg.ControlPlaneToken, pool: cfg.Pool, log: cfg.Log, known: map[string]Admission{}}
	rows, err := store.New(cfg.Pool).Admissions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the admissions: %w", err)
	}
	for _, row := range rows {
		a := Admission{Version: row.Version}
		if row.Digest != nil {
			a.Digest = *row.Digest
		}
		r.known[row.Model] = a
	}
	return r, nil
}

// Admitted returns the admitted versions of Production by upper-case model name. It queries the control plane; if that
// fails, the last answer stays in force.
func (r *Register) Admitted(ctx context.Context) map[string]Admission {
	now, err := r.read(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && r.fault != err.Error() {
			r.fault = err.Error()
			r.log.WarnContext(ctx, "admissions not read; the last ones hold", slog.Any("err", err))
		}
		return maps.Clone(r.known)
	}
	r.fault = ""
	if !maps.Equal(now, r.known) {
		if err := r.keep(ctx, now); err != nil {
			r.log.WarnContext(ctx, "admissions not kept; a restart without the control plane would know the former ones", slog.Any("err", err))
		}
		r.known = now
	}
	return maps.Clone(now)
}

// Fault is why the control plane could not be read; empty if it could.
func (r *Register) Fault() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

func (r *Register) read(ctx context.Context) (map[string]Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out := map[string]Admission{}
	alias, holding, limit := "Production", true, pageSize
	params := controlplane.ListAliasHistoryParams{Alias: &alias, Holding: &holding, Limit: &limit}
	for range maxPages {
		page, err := wire.Decode[controlplane.AliasHistory](r.client.ListAliasHistory(ctx, &params, wire.Bearer(r.token.Reveal())))
		if err != nil {
			return nil, err
		}
		for _, h := range page.Items {
			if h.Version == nil || h.To != nil || h.Alias != alias {
				return nil, errors.New("the control plane does not list present holders: it is older than this service")
			}
			a := Admission{Version: *h.Version}
			if h.Digest != nil {
				a.Digest = *h.Digest
			}
			out[strings.ToUpper(h.Model)] = a
		}
		if page.NextCursor == nil {
			return out, nil
		}
		params.Cursor = page.NextCursor
	}
	return nil, fmt.Errorf("the control plane lists more than %d holders", maxPages*pageSize)
}

// keep writes the admissions down.
func (r *Register) keep(ctx context.Context, now map[string]Admission) error {
	return postgres.InTx(ctx, r.pool, func(tx pgx.Tx) error {
		q := store.New(tx)
		models := slices.Sorted(maps.Keys(now))
		if err := q.KeepAdmissions(ctx, models); err != nil {
			return err
		}
		for _, model := range models { // in one order, so that two replicas do not wait for each other
			a := now[model]
			p := store.SetAdmissionParams{Model: model, Version: a.Version}
			if a.Digest != "" {
				p.Digest = &a.Digest
			}
			if err := q.SetAdmission(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
}
