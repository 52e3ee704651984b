package governance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"

	api "github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/alert"
	"github.com/mlp-platform/platform/services/control-plane/internal/event"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/registry"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// evalSource is the alert source for evaluations.
const evalSource = "eval"

// maxShownMetrics limits the failed metrics that an audit fact names.
const maxShownMetrics = 20

// Evals stores the runs.
type Evals struct {
	store *store.Store
	now   func() time.Time
}

// NewEvals returns Evals stored in db; now is the clock.
func NewEvals(db *store.Store, now func() time.Time) *Evals { return &Evals{store: db, now: now} }

// EvalRun is an evaluation that has ended. Model is upper-case.
type EvalRun struct {
	Model, Version, Suite string
	Status                api.EvalStatus
	Metrics               []api.EvalMetric
	ID                    *string // of the run, if it has one: unique in a tenant
}

// Record writes a run. A run with a known id and the same content returns the existing record; with other content it is
// 409.
func (s *Evals) Record(ctx context.Context, p auth.Principal, r EvalRun) (store.Eval, error) {
	metrics, err := json.Marshal(r.Metrics)
	if err != nil {
		return store.Eval{}, fmt.Errorf("evaluation: encode metrics: %w", err)
	}
	var row store.Eval
	err = s.store.InTx(ctx, func(tx store.Tx) (err error) {
		row, err = tx.InsertEval(ctx, store.InsertEvalParams{
			ID: uuid.Must(uuid.NewV7()), Tenant: p.Tenant, ModelID: r.Model, Version: r.Version, Suite: r.Suite, Status: string(r.Status),
			Metrics: metrics, RunID: r.ID, Now: s.now(), UpdatedBy: p.Name,
		})
		if err == nil {
			return tx.Emit(ctx, event.Audit(p.Tenant, p.Name, "eval.recorded", event.Model(r.Model), event.OK, auditEvalFacts(row, r.Metrics, metrics)))
		}
		if !store.None(err) {
			return err
		}
		if row, err = tx.EvalOfRun(ctx, store.EvalOfRunParams{Tenant: p.Tenant, RunID: r.ID}); err != nil {
			return err
		}
		same, err := r.is(row)
		if err == nil && !same {
			err = fault.EvalConflict.New(fmt.Sprintf("Run %s is already recorded with other content; a record never changes. Record the new run under a new id.", *r.ID)).
				With(map[string]any{"id": row.ID})
		}
		return err
	})
	return row, err
}

// is reports whether the row is this run.
func (r EvalRun) is(row store.Eval) (bool, error) {
	metrics, err := DecodeMetrics(row)
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

// auditEvalFacts identify the metrics by their digest, since 500 of them are too large for a ledger entry; the record
// itself never changes.
func auditEvalFacts(row store.Eval, metrics []api.EvalMetric, encoded []byte) map[string]any {
	sum := sha256.Sum256(encoded)
	failed := FailedMetrics(metrics)
	if len(failed) > maxShownMetrics {
		failed = failed[:maxShownMetrics]
	}
	return map[string]any{
		"eval_id": row.ID, "version": row.Version, "suite": row.Suite, "status": row.Status, "run_id": row.RunID,
		"metrics": len(metrics), "failed": failed, "metrics_sha256": hex.EncodeToString(sum[:]),
	}
}

// DecodeMetrics parses the metrics of a row.
func DecodeMetrics(row store.Eval) ([]api.EvalMetric, error) {
	var out []api.EvalMetric
	if err := json.Unmarshal(row.Metrics, &out); err != nil {
		return nil, fmt.Errorf("evaluation %s: decode metrics: %w", row.ID, err)
	}
	return out, nil
}

// FailedMetrics names the metrics that did not pass.
func FailedMetrics(metrics []api.EvalMetric) []string {
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
func (s *Evals) Firing(ctx context.Context) ([]alert.Alert, error) {
	rows, err := s.store.LatestFailingEvals(ctx)
	if err != nil {
		return nil, err
	}
	var out []alert.Alert
	for _, row := range rows {
		metrics, err := DecodeMetrics(row)
		if err != nil {
			return nil, err
		}
		for _, m := range metrics {
			if m.Passed {
				continue
			}
			out = append(out, alert.Alert{
				Source: evalSource, Key: row.ModelID + ":" + row.Suite + ":" + m.Metric, Severity: alert.Warn, Tenant: row.Tenant,
				Title:  fmt.Sprintf("%s version %s: metric %s of suite %s failed", row.ModelID, row.Version, m.Metric, row.Suite),
				Labels: map[string]string{"model": row.ModelID, "version": row.Version, "suite": row.Suite, "metric": m.Metric},
			})
		}
	}
	return out, nil
}

// MaxMetrics limits the metrics of a run.
const MaxMetrics = 500

// suitePattern excludes ':', which separates the parts of an alert's key.
var suitePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/@+-]{0,127}$`)

const suiteRule = "must be 1 to 128 letters, digits, spaces or any of . _ / @ + -, and begin with a letter or digit"

// evalInput is api.EvalInput with pointers, which distinguish 0 and false from absent.
type evalInput struct {
	Model   string         `json:"model"`
	Version string         `json:"version"`
	Suite   string         `json:"suite"`
	Status  api.EvalStatus `json:"status"`
	Metrics *[]metricInput `json:"metrics"`
	RunID   *string        `json:"run_id"`
}

type metricInput struct {
	Metric   string   `json:"metric"`
	Value    *float64 `json:"value"`
	Baseline *float64 `json:"baseline"`
	Passed   *bool    `json:"passed"`
}

func (b evalInput) run() (EvalRun, error) {
	var faults []problem.Field
	bad := func(msg string, loc ...string) {
		faults = append(faults, problem.Field{Loc: append([]string{"body"}, loc...), Msg: msg})
	}
	r := EvalRun{Model: registry.ID(b.Model), Version: b.Version, Suite: b.Suite, Status: b.Status, ID: b.RunID, Metrics: []api.EvalMetric{}}
	if !registry.ValidName(b.Model) {
		bad(registry.NameRule, "model")
	}
	if !wire.Label(b.Version) {
		bad(wire.LabelRule, "version")
	}
	if !suitePattern.MatchString(b.Suite) {
		bad(suiteRule, "suite")
	}
	if !b.Status.Valid() {
		bad("must be passed, failed or error", "status")
	}
	if b.RunID != nil && !wire.Label(*b.RunID) {
		bad(wire.LabelRule, "run_id")
	}
	var given []metricInput
	switch {
	case b.Metrics == nil:
		bad("is missing; [] is a run without metrics", "metrics")
	case len(*b.Metrics) > MaxMetrics:
		bad(fmt.Sprintf("has %d entries; at most %d", len(*b.Metrics), MaxMetrics), "metrics")
	default:
		given = *b.Metrics
	}
	seen := map[string]bool{}
	for i, m := range given {
		at := strconv.Itoa(i)
		switch {
		case !wire.Label(m.Metric):
			bad(wire.LabelRule, "metrics", at, "metric")
		case seen[m.Metric]:
			bad("is there twice", "metrics", at, "metric")
		}
		seen[m.Metric] = true
		if m.Value == nil {
			bad("must be a number", "metrics", at, "value")
		}
		if m.Passed == nil {
			bad("must be true or false", "metrics", at, "passed")
		}
		if m.Value != nil && m.Passed != nil {
			r.Metrics = append(r.Metrics, api.EvalMetric{Metric: m.Metric, Value: *m.Value, Baseline: m.Baseline, Passed: *m.Passed})
		}
	}
	return r, fault.InvalidAll(faults)
}

func viewEval(r store.Eval) (api.Eval, error) {
	metrics, err := DecodeMetrics(r)
	out := api.Eval{
		Id: r.ID, Tenant: r.Tenant, Model: r.ModelID, Version: r.Version, Suite: r.Suite, Status: api.EvalStatus(r.Status),
		Metrics: metrics, RunId: r.RunID, UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy,
	}
	if n := len(metrics); n > 0 {
		rate := float64(n-len(FailedMetrics(metrics))) / float64(n)
		out.PassRate = &rate
	}
	return out, err
}
