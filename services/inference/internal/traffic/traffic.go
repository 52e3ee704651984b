package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/announce"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/store"
)

const (
	// lookEvery is how often a replica polls for changes by others.
	lookEvery = 500 * time.Millisecond
	// lookTimeout limits one look.
	lookTimeout = 5 * time.Second
)

// Config of New; all parts are required.
type Config struct {
	Pool    *pgxpool.Pool
	Catalog *catalog.Catalog // knows which of a rule's aliases are loaded
	Log     *slog.Logger
}

// Traffic is safe for concurrent use.
type Traffic struct {
	cfg     Config
	queries *store.Queries
	rules   atomic.Pointer[map[string]*Rule]   // by upper-case name; never changed in place
	shadows atomic.Pointer[map[string]*Shadow] // likewise

	mu             sync.Mutex // guards all below, and storing rules and shadows
	revision       int64      // of rules; 0 before the first load
	shadowRevision int64      // of shadows; likewise
}

// New returns rules that are empty until Load.
func New(cfg Config) (*Traffic, error) {
	if err := service.RequireParts("traffic", cfg); err != nil {
		return nil, err
	}
	t := &Traffic{cfg: cfg, queries: store.New(cfg.Pool)}
	t.rules.Store(&map[string]*Rule{})
	t.shadows.Store(&map[string]*Shadow{})
	return t, nil
}

// Rule is the rule of a model, by its upper-case name; nil without one.
func (t *Traffic) Rule(model string) *Rule { return (*t.rules.Load())[model] }

// Run polls for changes until ctx ends.
func (t *Traffic) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := t.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing { // once for each outage
			t.cfg.Log.WarnContext(ctx, "traffic rules stay as they are: the database cannot be asked", slog.Any("err", err))
		}
		failing = err != nil
	}
}

// look loads the rules if they have changed.
func (t *Traffic) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	revision, err := t.queries.TrafficRevision(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	known := revision == t.revision && revision == t.shadowRevision
	t.mu.Unlock()
	if known {
		return nil
	}
	return t.Load(ctx)
}

// Load reads all rules.
func (t *Traffic) Load(ctx context.Context) error {
	if err := t.loadShadows(ctx); err != nil {
		return err
	}
	rows, err := t.queries.AllTrafficRules(ctx)
	if err != nil {
		return fmt.Errorf("load the traffic rules: %w", err)
	}
	rules := map[string]*Rule{}
	revision := int64(0)
	for _, row := range rows {
		revision = row.Revision
		if row.Model == nil {
			continue
		}
		w, err := decodeWeights(row.Rules)
		if err != nil {
			return fmt.Errorf("load the traffic rules of %s: %w", *row.Model, err)
		}
		rules[*row.Model] = NewRule(w)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if revision > t.revision { // a slower read must not restore older rules
		t.revision = revision
		t.rules.Store(&rules)
	}
	return nil
}

func decodeWeights(raw []byte) (Weights, error) {
	var w Weights
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, err
	}
	return w, nil
}

// errNoRules means that a model has no rules.
var errNoRules = errors.New("the model has no traffic rules")

// change replaces a model's rules, or deletes them for nil weights, with event and audit fact in the same
// transaction, and puts them to work in this replica.
func (t *Traffic) change(ctx context.Context, model string, w Weights) (store.TrafficRule, error) {
	var row store.TrafficRule
	err := postgres.InTx(ctx, t.cfg.Pool, func(tx pgx.Tx) error {
		q := t.queries.WithTx(tx)
		if _, err := q.RaiseTrafficRevision(ctx); err != nil {
			return err
		}
		previous, err := currentWeights(ctx, q, model)
		if err != nil {
			return err
		}
		actor, _ := announce.Actor(ctx)
		action := "traffic.set"
		if w == nil {
			action = "traffic.clear"
			n, err := q.DeleteTrafficRule(ctx, model)
			if err != nil {
				return err
			}
			if n == 0 {
				return errNoRules
			}
		} else {
			raw, err := json.Marshal(w)
			if err != nil {
				return err
			}
			row = store.TrafficRule{Model: model, Rules: raw, UpdatedAt: time.Now().UTC().Truncate(time.Microsecond), UpdatedBy: actor}
			if err := q.SetTrafficRule(ctx, store.SetTrafficRuleParams(row)); err != nil {
				return err
			}
		}
		now := w
		if now == nil {
			now = Weights{}
		}
		fact := announce.Audit(ctx, action, "model:"+model, "ok", map[string]any{"old": previous, "new": now})
		if maps.Equal(now, previous) {
			return announce.Insert(ctx, tx, fact) // nothing changes for those who follow the rules
		}
		return announce.Insert(ctx, tx, announce.Traffic(model, actor, now, previous), fact)
	})
	if err != nil {
		return store.TrafficRule{}, err
	}
	if err := t.look(ctx); err != nil { // committed: Run brings it within half a second
		t.cfg.Log.WarnContext(ctx, "traffic rules not loaded after their change", slog.String("model", model), slog.Any("err", err))
	}
	return row, nil
}

// currentWeights are the rules before a change; none are empty weights.
func currentWeights(ctx context.Context, q *store.Queries, model string) (Weights, error) {
	row, err := q.TrafficRule(ctx, model)
	if errors.Is(err, pgx.ErrNoRows) {
		return Weights{}, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeWeights(row.Rules)
}
