package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

// source is that of alerts.
const source = "eval"

// shown bounds the failed metrics that an audit fact names.
const shown = 20

// Service keeps the runs.
type Service struct {
	Store *store.Store
	Now   func() time.Time
}

// Run is an evaluation that has ended. Model is upper-case.
type Run struct {
	Model, Version, Suite string
	Status                api.EvalStatus
	Metrics               []api.EvalMetric
	ID                    *string // of the run, where it has one: once in a tenant
}

// Record writes a run. A run of the same id that says the same is that record;
// one that says something else is 409.
func (s *Service) Record(ctx context.Context, p auth.Principal, r Run) (store.Eval, error) {
	metrics, err := json.Marshal(r.Metrics)
	if err != nil {
		return store.Eval{}, fmt.Errorf("evaluation: encode metrics: %w", err)
	}
	var row store.Eval
	err = s.Store.InTx(ctx, func(tx store.Tx) (err error) {
		row, err = tx.InsertEval(ctx, store.InsertEvalParams{
			ID: uuid.Must(uuid.NewV7()), Tenant: p.Tenant, ModelID: r.Model, Version: r.Version, Suite: r.Suite, Status: string(r.Status),
			Metrics: metrics, RunID: r.ID, Now: s.Now(), UpdatedBy: p.Name,
		})
		if err == nil {
			return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "eval.recorded", event.Model(r.Model), event.OK, facts(row, r.Metrics, metrics)))
		}
		if !store.None(err) {
			return err
		}
		if row, err = tx.EvalOfRun(ctx, store.EvalOfRunParams{Tenant: p.Tenant, RunID: r.ID}); err != nil {
			return err
		}
		same, err := r.is(row)
		if err == nil && !same {
			err = fault.EvalConflict.New(fmt.Sprintf("Run %s was recorded before, and said something else; a record never changes. Record a new run under an id of its own.", *r.ID)).
				With(map[string]any{"id": row.ID})
		}
		return err
	})
	return row, err
}

// is says whether the row is this run.
func (r Run) is(row store.Eval) (bool, error) {
	metrics, err := Metrics(row)
	if err != nil || row.ModelID != r.Model || row.Version != r.Version || row.Suite != r.Suite || row.Status != string(r.Status) || len(metrics) != len(r.Metrics) {
		return false, err
	}
	for i, m := range metrics {
		have := r.Metrics[i]
		if m.Metric != have.Metric || m.Value != have.Value || m.Passed != have.Passed || (m.Baseline == nil) != (have.Baseline == nil) ||
			m.Baseline != nil && *m.Baseline != *have.Baseline {
			return false, nil
		}
	}
	return true, nil
}

// facts bind the metrics by their digest, since 500 of them are more than a
// ledger entry should hold; the record itself never changes.
func facts(row store.Eval, metrics []api.EvalMetric, encoded []byte) map[string]any {
	sum := sha256.Sum256(encoded)
	failed := Failed(metrics)
	if len(failed) > shown {
		failed = failed[:shown]
	}
	return map[string]any{
		"eval_id": row.ID, "version": row.Version, "suite": row.Suite, "status": row.Status, "run_id": row.RunID,
		"metrics": len(metrics), "failed": failed, "metrics_sha256": hex.EncodeToString(sum[:]),
	}
}

// Metrics are those of a row.
func Metrics(row store.Eval) ([]api.EvalMetric, error) {
	var out []api.EvalMetric
	if err := json.Unmarshal(row.Metrics, &out); err != nil {
		return nil, fmt.Errorf("evaluation %s: decode metrics: %w", row.ID, err)
	}
	return out, nil
}

// Failed names the metrics that did not pass.
func Failed(metrics []api.EvalMetric) []string {
	out := []string{}
	for _, m := range metrics {
		if !m.Passed {
			out = append(out, m.Metric)
		}
	}
	return out
}

// Firing implements alert.Source: the failed metrics of each model's latest run
// of each suite, in each tenant.
func (s *Service) Firing(ctx context.Context) ([]alert.Alert, error) {
	rows, err := s.Store.LatestFailingEvals(ctx)
	if err != nil {
		return nil, err
	}
	var out []alert.Alert
	for _, row := range rows {
		metrics, err := Metrics(row)
		if err != nil {
			return nil, err
		}
		for _, m := range metrics {
			if m.Passed {
				continue
			}
			out = append(out, alert.Alert{
				Source: source, Key: row.ModelID + ":" + row.Suite + ":" + m.Metric, Severity: alert.Warn, Tenant: row.Tenant,
				Title:  fmt.Sprintf("%s version %s: metric %s of suite %s failed", row.ModelID, row.Version, m.Metric, row.Suite),
				Labels: map[string]string{"model": row.ModelID, "version": row.Version, "suite": row.Suite, "metric": m.Metric},
			})
		}
	}
	return out, nil
}
