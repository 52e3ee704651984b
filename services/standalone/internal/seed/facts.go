package seed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/modelrepo"
)

const (
	// recordsSuite names the evaluation: the metrics that the training run computed on its test rows.
	recordsSuite = "held-out test"
	// The samples train in this process, through the scheduler that simulates a cluster's.
	jobCluster, jobPartition = "local", "inline"
	// monthlyBudgetUSD of a sample's project. Mock figures count towards no budget, so only real jobs reach it.
	monthlyBudgetUSD = 50.0

	recordsPage   = 200
	holderTimeout = 10 * time.Second // inference's poll interval
)

// errRunOpen is temporary: the control plane reads the end of a run within its poll interval.
var errRunOpen = errors.New("the control plane does not know the end of the training run yet")

// facts are the platform's facts about a served version, each from its source.
type facts struct {
	model  Model
	holder inference.LoadedModel
	meta   controlplane.ModelMeta
	run    *controlplane.Run // nil if no run of this platform trained the version
}

// recordFacts writes the governance and facility records of the version that holds the model's alias, unless they exist
// already: a person's record is never replaced.
func (s seeder) recordFacts(ctx context.Context, m Model) (version string, err error) {
	f := facts{model: m}
	if f.holder, err = s.findHolder(ctx, m); err != nil {
		return "", err
	}
	version = f.holder.ModelVersion
	if f.meta, err = readAnswer[controlplane.ModelMeta](ctx, s, func() (*http.Response, error) { return s.cp.GetModelMeta(ctx, m.Name) }); err != nil {
		return "", fmt.Errorf("read the definition: %w", err)
	}
	if f.run, err = s.findTrainingRun(ctx, m, version); err != nil {
		return "", err
	}
	for _, step := range []struct {
		what  string
		write func(context.Context, facts) error
	}{
		{"job", s.recordJob}, {"cost", s.recordCost}, {"evaluation", s.recordEvaluation},
		{"compliance", s.recordCompliance}, {"budget", s.recordBudget},
	} {
		if err := step.write(ctx, f); err != nil {
			return "", fmt.Errorf("record the %s: %w", step.what, err)
		}
	}
	return version, nil
}

// readAnswer sends a request until it succeeds or fails for good.
func readAnswer[T any](ctx context.Context, s seeder, send func() (*http.Response, error)) (out T, err error) {
	err = s.retrying(ctx, func() (err error) {
		out, err = wire.Decode[T](send())
		return err
	})
	return out, err
}

// sendRecord is readAnswer for an answer whose content is not needed.
func sendRecord(ctx context.Context, s seeder, send func() (*http.Response, error)) error {
	_, err := readAnswer[struct{}](ctx, s, send)
	return err
}

// findHolder returns the version that inference serves under the model's alias.
func (s seeder) findHolder(ctx context.Context, m Model) (inference.LoadedModel, error) {
	for deadline := time.Now().Add(holderTimeout); ; {
		list, err := readAnswer[[]inference.LoadedModel](ctx, s, func() (*http.Response, error) {
			return s.inf.ListModels(ctx, &inference.ListModelsParams{Alias: &m.Alias})
		})
		if err != nil {
			return inference.LoadedModel{}, fmt.Errorf("ask which version is served: %w", err)
		}
		for _, l := range list {
			if strings.EqualFold(l.ModelName, m.Name) && strings.EqualFold(l.Alias, m.Alias) {
				return l, nil
			}
		}
		if time.Now().After(deadline) {
			return inference.LoadedModel{}, fmt.Errorf("no version is served as %s, so there is nothing to record; see %s/health", m.Alias, s.o.Serving)
		}
		if err := waitFor(ctx, pollEvery); err != nil {
			return inference.LoadedModel{}, err
		}
	}
}

// findTrainingRun finds the run that trained the version; nil if it came from elsewhere.
func (s seeder) findTrainingRun(ctx context.Context, m Model, version string) (found *controlplane.Run, err error) {
	err = s.retrying(ctx, func() error {
		limit, params := recordsPage, controlplane.ListRunsParams{Model: &m.Name}
		for params.Limit = &limit; ; {
			page, err := wire.Decode[controlplane.RunList](s.cp.ListRuns(ctx, &params))
			if err != nil {
				return err
			}
			i := slices.IndexFunc(page.Items, func(r controlplane.Run) bool { return orEmpty(r.ModelVersion) == version })
			if i >= 0 {
				if found = &page.Items[i]; found.StartedAt == nil || found.EndedAt == nil {
					return errRunOpen
				}
				return nil
			}
			if page.NextCursor == nil {
				return nil
			}
			params.Cursor = page.NextCursor
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find the training run of version %s: %w", version, err)
	}
	return found, nil
}

// recordJob reports the training run as the batch job that it was: one core of this machine, inline.
func (s seeder) recordJob(ctx context.Context, f facts) error {
	if f.run == nil {
		return nil
	}
	state := controlplane.JobState(f.run.StateType)
	if !state.Valid() { // the orchestrator knows more states than the schedulers
		state = controlplane.UNKNOWN
	}
	cluster, partition := jobCluster, jobPartition
	var one, none int32 = 1, 0
	in := controlplane.JobInput{
		Cluster: &cluster, Partition: &partition, Model: &f.model.Name, Dataset: &f.run.DatasetName, State: state,
		Resources: &controlplane.JobResourcesInput{Nodes: &one, Gpus: &none, Cpus: &one},
		// Nothing waits for the mock scheduler: a job starts when it is submitted.
		Timing:    &controlplane.JobTimingInput{Submit: f.run.StartedAt, Start: f.run.StartedAt, End: f.run.EndedAt},
		FlowRunId: &f.run.FlowRunId,
	}
	if state == controlplane.COMPLETED {
		in.ExitCode = &none
	}
	if f.holder.RunId != "" {
		in.TrackerRunId = &f.holder.RunId
	}
	return sendRecord(ctx, s, func() (*http.Response, error) { return s.cp.PutJob(ctx, controlplane.Mock, f.run.FlowRunId, in) })
}

// recordCost reports the core hours that the run took. Its GPU hours are left to the control plane: of the mock
// scheduler they are a synthetic figure, marked as such and in no sum.
func (s seeder) recordCost(ctx context.Context, f facts) error {
	if f.run == nil {
		return nil
	}
	limit := 1
	known, err := readAnswer[controlplane.CostList](ctx, s, func() (*http.Response, error) {
		return s.cp.ListCosts(ctx, &controlplane.ListCostsParams{Model: &f.model.Name, Version: &f.holder.ModelVersion, Limit: &limit})
	})
	if err != nil || len(known.Items) > 0 {
		return err
	}
	hours := f.run.EndedAt.Sub(*f.run.StartedAt).Hours()
	in := controlplane.CostInput{
		Model: f.model.Name, Version: f.holder.ModelVersion, Scheduler: controlplane.Mock, JobId: f.run.FlowRunId, CpuHours: &hours,
	}
	if f.holder.RunId != "" {
		in.RunId = &f.holder.RunId
	}
	return sendRecord(ctx, s, func() (*http.Response, error) { return s.cp.RecordCost(ctx, in) })
}

// recordEvaluation records the training run's metrics on rows that it did not train on.
func (s seeder) recordEvaluation(ctx context.Context, f facts) error {
	version, limit := f.holder.ModelVersion, recordsPage
	known, err := readAnswer[controlplane.EvalList](ctx, s, func() (*http.Response, error) {
		return s.cp.ListEvals(ctx, &controlplane.ListEvalsParams{Model: &f.model.Name, Limit: &limit})
	})
	if err != nil || slices.ContainsFunc(known.Items, func(e controlplane.Eval) bool { return e.Version == version }) {
		return err
	}
	gate, err := readAnswer[controlplane.Gate](ctx, s, func() (*http.Response, error) {
		return s.cp.GetGate(ctx, f.model.Name, &controlplane.GetGateParams{Version: &version})
	})
	if err != nil {
		return err
	}
	metrics := judgeMetrics(gate.Eval.Metrics, f.rung())
	if len(metrics) == 0 {
		return nil // its run is gone from the tracker
	}
	status := controlplane.EvalStatusPassed
	if slices.ContainsFunc(metrics, func(m controlplane.EvalMetricInput) bool { return !m.Passed }) {
		status = controlplane.EvalStatusFailed
	}
	run := strings.Join([]string{"seed", f.model.Name, version}, ":")
	in := controlplane.EvalInput{Model: f.model.Name, Version: version, Suite: recordsSuite, Status: status, Metrics: metrics, RunId: &run}
	return sendRecord(ctx, s, func() (*http.Response, error) { return s.cp.RecordEval(ctx, in) })
}

// rung returns the rung of the model's ladder for its alias, if any.
func (f facts) rung() *controlplane.Rung {
	i := slices.IndexFunc(f.meta.Lifecycle, func(r controlplane.Rung) bool { return strings.EqualFold(r.Name, f.model.Alias) })
	if i < 0 {
		return nil
	}
	return &f.meta.Lifecycle[i]
}

// judgeMetrics returns the test metrics that have something to be compared with: a baseline, which they must beat,
// or the threshold of the rung, which they must reach. Of two baselines the harder one counts.
func judgeMetrics(metrics map[string]float64, rung *controlplane.Rung) []controlplane.EvalMetricInput {
	var out []controlplane.EvalMetricInput
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		direction, known := modelrepo.MetricDirection(name)
		if !known {
			continue // a metric of validation, a baseline, or a figure of the trainer's own
		}
		m := controlplane.EvalMetricInput{Metric: name, Value: metrics[name], Passed: true}
		for _, prefix := range []string{modelrepo.BaselineFixed, modelrepo.BaselineRunning} {
			if base, ok := metrics[prefix+name]; ok && (m.Baseline == nil || isBetter(direction, base, *m.Baseline)) {
				m.Baseline = &base
			}
		}
		judged := m.Baseline != nil
		if judged {
			m.Passed = isBetter(direction, m.Value, *m.Baseline)
		}
		if rung != nil && rung.Metric == name { // reaching the threshold is enough
			judged = true
			m.Passed = m.Passed && !isBetter(string(rung.Direction), rung.Threshold, m.Value)
		}
		if judged {
			out = append(out, m)
		}
	}
	return out
}

func isBetter(direction string, a, b float64) bool {
	if direction == modelrepo.Higher {
		return a > b
	}
	return a < b
}

// recordCompliance classifies the version and binds the record to the bytes that inference loaded.
func (s seeder) recordCompliance(ctx context.Context, f facts) error {
	version, limit := f.holder.ModelVersion, recordsPage
	known, err := readAnswer[controlplane.ComplianceList](ctx, s, func() (*http.Response, error) {
		return s.cp.ListCompliance(ctx, &controlplane.ListComplianceParams{Model: &f.model.Name, Limit: &limit})
	})
	if err != nil || slices.ContainsFunc(known.Items, func(c controlplane.Compliance) bool { return c.Version == version }) {
		return err
	}
	in := controlplane.ComplianceInput{RiskClass: controlplane.Minimal, ProvenanceHash: f.holder.Digest}
	if f.model.Readme != "" {
		in.TechnicalFilePath = &f.model.Readme
	}
	return sendRecord(ctx, s, func() (*http.Response, error) { return s.cp.PutCompliance(ctx, f.model.Name, version, in) })
}

// recordBudget gives the model's project a monthly budget.
func (s seeder) recordBudget(ctx context.Context, f facts) error {
	if f.meta.Project == "" {
		return nil
	}
	limit, params := recordsPage, controlplane.ListBudgetsParams{}
	for params.Limit = &limit; ; {
		page, err := readAnswer[controlplane.BudgetList](ctx, s, func() (*http.Response, error) { return s.cp.ListBudgets(ctx, &params) })
		if err != nil || slices.ContainsFunc(page.Items, func(b controlplane.Budget) bool { return b.Project == f.meta.Project }) {
			return err
		}
		if page.NextCursor == nil {
			break
		}
		params.Cursor = page.NextCursor
	}
	usd := monthlyBudgetUSD
	return sendRecord(ctx, s, func() (*http.Response, error) {
		return s.cp.PutBudget(ctx, f.meta.Project, controlplane.BudgetInput{CostBudget: &usd})
	})
}
